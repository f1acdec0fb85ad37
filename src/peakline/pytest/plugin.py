"""The hooks. Loading this costs next to nothing: what is needed is imported when a test uses it."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from peakline.errors import PeaklineError, UsageError, faults_of
from peakline.pytest.marks import FRAMEWORKS, LIMITS, MARKS, choose_framework, wanted_by
from peakline.safe_text import for_log
from peakline.text import size_text

if TYPE_CHECKING:
    from peakline.check.allowance import Run
    from peakline.pytest.baselines import Baselines
    from peakline.pytest.marks import Wanted
    from peakline.pytest.recorder import Framework, Recorder

_BASELINES = pytest.StashKey["Baselines"]()
_RECORDER = pytest.StashKey["Recorder"]()
_LARGEST = 10
"""So many tests are shown by ``--peakline-summary``."""
_PEAK, _GROWTH, _BROKEN, _PROFILE, _FIGURES = (
    "peakline_peak_bytes",
    "peakline_growth_per_step_bytes",
    "peakline_broken",
    "peakline_profile",
    "peakline_figures",
)
"""Properties of a test's report: they are in JUnit's XML, and reach xdist's controller."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options and settings."""
    group = parser.getgroup("peakline", "device memory (Peakline)")
    group.addoption(
        "--peakline-dir",
        metavar="DIR",
        help="Keep the profile of every test that was profiled in DIR.",
    )
    group.addoption(
        "--peakline-summary",
        action="store_true",
        help="Show the tests with the largest peaks, not only those that broke a limit.",
    )
    group.addoption(
        "--peakline-tf-bfc",
        action="store_true",
        help="Give TensorFlow's CPU device the allocator that reports its memory (sets "
        "TF_CPU_ALLOCATOR_USE_BFC=1 before anything is imported).",
    )
    group.addoption(
        "--peakline-baseline",
        metavar="FILE",
        help="Compare what profiled tests take with their earlier runs, which are in FILE.",
    )
    group.addoption(
        "--peakline-update-baseline",
        action="store_true",
        help="Add this run of the tests that pass to the file of --peakline-baseline.",
    )
    group.addoption(
        "--peakline-reset-baseline",
        action="store_true",
        help="Begin the entries of the profiled tests that run anew with this run.",
    )
    parser.addini(
        "peakline_baseline", "The same as --peakline-baseline, from the root.", default=""
    )
    parser.addini(
        "peakline_framework",
        "What tests are profiled with where no mark says: jax, tensorflow or torch. Default: the "
        "one that is imported.",
        default="",
    )
    parser.addini(
        "peakline_tensorflow_bfc",
        "The same as --peakline-tf-bfc, for every run.",
        type="bool",
        default=False,
    )


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    """Choose TensorFlow's allocator before a conftest can import TensorFlow."""
    options = early_config.known_args_namespace
    if options.peakline_tf_bfc or early_config.getini("peakline_tensorflow_bfc"):
        from peakline.pytest.frameworks import use_bfc

        try:
            use_bfc()
        except PeaklineError as error:
            raise pytest.UsageError(f"peakline: {error}") from None
    yield


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marks."""
    reset = config.getoption("peakline_reset_baseline")
    if reset or config.getoption("peakline_update_baseline"):
        path = _baseline_file(config)
        if path is None:
            raise pytest.UsageError("--peakline-update-baseline needs --peakline-baseline FILE")
        # Under xdist the figures of all tests reach the process that is no worker.
        if not hasattr(config, "workerinput"):
            from peakline.pytest.baselines import Collector

            config.pluginmanager.register(Collector(path, _FIGURES, anew=reset))
    for signature, text in MARKS.items():
        config.addinivalue_line("markers", f"{signature}: {text}")
    setting = config.getini("peakline_framework")
    if setting and setting not in FRAMEWORKS:
        raise pytest.UsageError(
            f"peakline_framework is {setting!r}; there is: {', '.join(FRAMEWORKS)}"
        )


@pytest.fixture
def peakline_profile(request: pytest.FixtureRequest) -> Recorder:
    """Profile this test: divide it into steps, and query the profile about its memory."""
    return _recorder_of(request.node)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Profile the test's body where it is marked so, and hold its limits."""
    if not (_RECORDER in item.stash or any(item.get_closest_marker(name) for name in LIMITS)):
        return (yield)
    problem = ""
    try:
        wanted = wanted_by(item)
        setting = item.config.getini("peakline_framework")
        framework = _framework(choose_framework(wanted, setting, getattr(item, "module", None)))
        recorder = _recorder_of(item)
        recorder.start(framework)
    except PeaklineError as error:
        problem = str(error)
    if problem:
        pytest.fail(f"peakline: {problem}", pytrace=False)
    try:
        result = yield
    except BaseException:
        # The test's own failure, or its skip, is what counts; what it used may still explain it.
        _keep(item, recorder, quietly=True)
        raise
    if getattr(item, "_excinfo", None):
        # A test of unittest's, which keeps its failure to itself until the report is made.
        _keep(item, recorder, quietly=True)
    else:
        _judge(item, recorder, wanted)
    return result


def _recorder_of(item: pytest.Item) -> Recorder:
    """The one recorder of a test, which is closed after the test."""
    if _RECORDER not in item.stash:
        from peakline.pytest.recorder import Recorder

        recorder = Recorder()
        item.stash[_RECORDER] = recorder

        def close() -> None:
            del item.stash[_RECORDER]
            recorder.close()

        item.addfinalizer(close)
    return item.stash[_RECORDER]


def _framework(name: str) -> Framework:
    if name == "jax":
        from peakline.pytest.frameworks import Jax

        return Jax()
    if name == "torch":
        from peakline.pytest.frameworks import Torch

        return Torch()
    from peakline.pytest.frameworks import TensorFlow

    return TensorFlow()


def _baseline_file(config: pytest.Config) -> Path | None:
    """The file of baselines; one of the settings is named from the root."""
    named = config.getoption("peakline_baseline")
    if named:
        return Path(config.invocation_params.dir, named)
    setting: str = config.getini("peakline_baseline")
    return config.rootpath / setting if setting else None


def _baselines(config: pytest.Config) -> Baselines | None:
    """What is in the file, read once; None without one."""
    path = _baseline_file(config)
    if path is None:
        return None
    if _BASELINES not in config.stash:
        from peakline.pytest.baselines import read_baselines

        config.stash[_BASELINES] = read_baselines(path)
    return config.stash[_BASELINES]


def _runs_before(item: pytest.Item, wanted: Wanted) -> Sequence[Run] | None:
    """The runs of a test to hold it to; None where there is nothing to compare."""
    result = _baselines(item.config)
    if result is None:
        if wanted.baseline:
            raise UsageError("no file of baselines: name it with --peakline-baseline FILE")
        return None
    before = result.runs.get(item.nodeid, [])
    option = item.config.getoption
    if option("peakline_reset_baseline") or (not before and option("peakline_update_baseline")):
        return None
    return before if before or wanted.baseline else None


def _judge(item: pytest.Item, recorder: Recorder, wanted: Wanted) -> None:
    """Fail the test where a limit fails or cannot be measured."""
    problem = ""
    try:
        with faults_of(item.nodeid):
            recorder.stop()
            stored = _keep(item, recorder)
            has_file = _baseline_file(item.config) is not None
            if not (wanted.is_limit or has_file or item.config.getoption("peakline_summary")):
                return
            from peakline.pytest.verdict import verdict_of

            verdict = verdict_of(recorder, wanted, item.nodeid, _runs_before(item, wanted))
    except PeaklineError as error:
        problem = str(error)
    if problem:
        pytest.fail(f"peakline: {problem}", pytrace=False)
    for name, value in (
        (_PEAK, verdict.peak_bytes),
        (_GROWTH, verdict.growth_bytes),
        (_BROKEN, "; ".join(verdict.broken) or None),
    ):
        if value is not None:
            item.user_properties.append((name, value))
    if has_file and verdict.figures:
        import json

        from peakline.pytest.baselines import figures_document

        item.user_properties.append((_FIGURES, json.dumps(figures_document(verdict.figures))))
    if verdict.failure:
        where = f"\nprofile: {stored}" if stored else ""
        pytest.fail(for_log(f"{verdict.failure}{where}"), pytrace=False)


def _keep(item: pytest.Item, recorder: Recorder, *, quietly: bool = False) -> Path | None:
    """Copy the profile to the folder of ``--peakline-dir``; None without one."""
    folder = item.config.getoption("peakline_dir")
    if not folder:
        return None
    # Several tests may have the same name but for characters that a file name cannot have.
    number = hashlib.sha256(item.nodeid.encode()).hexdigest()[:8]
    name = re.sub(r"[^\w.-]+", "-", item.nodeid)[-120:].strip("-.")
    target: Path = item.config.invocation_params.dir / folder / f"{name}-{number}"
    try:
        with faults_of(item.nodeid):
            source = recorder.path
        target = target.with_name(target.name + source.name[source.name.index(".") :])
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    except PeaklineError:
        if quietly:
            return None
        raise
    except OSError as error:
        raise UsageError(f"{target}: cannot be written: {error.strerror}") from None
    item.user_properties.append((_PROFILE, str(target)))
    return target


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show the tests that broke a limit, or with ``--peakline-summary`` the largest."""
    every = terminalreporter.config.getoption("peakline_summary")
    shown = []
    for outcome, reports in terminalreporter.stats.items():
        for report in reports:
            if getattr(report, "when", None) == "call":
                properties = dict(report.user_properties)
                if _BROKEN in properties or (every and _PEAK in properties):
                    mark = "" if _BROKEN not in properties else "  BROKEN"
                    if mark and outcome == "xfailed":
                        mark += ", as expected"
                    shown.append((properties.get(_PEAK), report.nodeid, properties, mark))
    if not shown:
        return
    shown.sort(key=lambda row: (-(row[0] or 0), row[1]))
    terminalreporter.section("device memory (Peakline)")
    terminalreporter.line(f"{'PEAK':>10}  {'PER STEP':>10}  TEST")
    for peak, test, properties, mark in shown[:_LARGEST]:
        growth = properties.get(_GROWTH)
        sizes = ["" if size is None else size_text(size) for size in (peak, growth)]
        terminalreporter.line(for_log(f"{sizes[0]:>10}  {sizes[1]:>10}  {test}{mark}"))
    if len(shown) > _LARGEST:
        terminalreporter.line(f"and {len(shown) - _LARGEST} more")
