"""The hooks. Loading this costs next to nothing: what is needed is imported when a test uses it."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from peakline.errors import PeaklineError, UsageError
from peakline.pytest.marks import FRAMEWORKS, LIMITS, MARKS, choose_framework, wanted_by

if TYPE_CHECKING:
    from peakline.pytest.marks import Wanted
    from peakline.pytest.recorder import Framework, Recorder

_RECORDER = pytest.StashKey["Recorder"]()
_LARGEST = 10
"""So many tests are shown by ``--peakline-summary``."""
_PEAK, _GROWTH, _BROKEN, _PROFILE = (
    "peakline_peak_bytes",
    "peakline_growth_per_step_bytes",
    "peakline_broken",
    "peakline_profile",
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
    parser.addini(
        "peakline_framework",
        "What tests are profiled with where no mark says: jax or tensorflow. Default: the one "
        "that is imported.",
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
        from peakline.pytest.on_tensorflow import use_bfc

        try:
            use_bfc()
        except PeaklineError as error:
            raise pytest.UsageError(f"peakline: {error}") from None
    yield


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marks."""
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
        from peakline.pytest.on_jax import Jax

        return Jax()
    from peakline.pytest.on_tensorflow import TensorFlow

    return TensorFlow()


def _judge(item: pytest.Item, recorder: Recorder, wanted: Wanted) -> None:
    """Fail the test where a limit fails or cannot be measured."""
    problem = ""
    try:
        recorder.stop()
        stored = _keep(item, recorder)
        if not (wanted.is_limit or item.config.getoption("peakline_summary")):
            return
        from peakline.pytest.verdict import verdict_of

        verdict = verdict_of(recorder, wanted)
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
    if verdict.failure:
        where = f"\nprofile: {stored}" if stored else ""
        pytest.fail(f"{verdict.failure}{where}", pytrace=False)


def _keep(item: pytest.Item, recorder: Recorder, *, quietly: bool = False) -> Path | None:
    """Copy the profile to the folder of ``--peakline-dir``; None without one."""
    folder = item.config.getoption("peakline_dir")
    if not folder:
        return None
    # Several tests may have the same name but for characters that a file name cannot have.
    number = hashlib.sha256(item.nodeid.encode()).hexdigest()[:8]
    name = re.sub(r"[^\w.-]+", "-", item.nodeid)[-120:].strip("-.")
    target: Path = item.config.invocation_params.dir / folder / f"{name}-{number}.xplane.pb"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(recorder.path, target)
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
    from peakline.text import size_text

    shown.sort(key=lambda row: (-(row[0] or 0), row[1]))
    terminalreporter.section("device memory (Peakline)")
    terminalreporter.line(f"{'PEAK':>10}  {'PER STEP':>10}  TEST")
    for peak, test, properties, mark in shown[:_LARGEST]:
        growth = properties.get(_GROWTH)
        sizes = ["" if size is None else size_text(size) for size in (peak, growth)]
        terminalreporter.line(f"{sizes[0]:>10}  {sizes[1]:>10}  {test}{mark}")
    if len(shown) > _LARGEST:
        terminalreporter.line(f"and {len(shown) - _LARGEST} more")
