"""What each test took in the runs before: a file with an entry per node id, held as `check` does.

Only memory is compared: the time of a test under a profiler, beside other tests, says little.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from peakline.check.allowance import MOST_RUNS, Key, Run, allowed
from peakline.check.units import BYTES, share_amount
from peakline.errors import InputError, PeaklineError, UsageError
from peakline.memory.growth.grown import LEAK_BYTES
from peakline.repository import write_atomically
from peakline.safe_text import for_log, one_line
from peakline.text import allocator_text, counted, size_text

_TESTS = "peakline_tests"
_GROWTH = "growth per step"


@dataclass
class Baselines:
    """The runs of every test of ``path`` by node id, oldest first."""

    path: Path
    runs: dict[str, list[Run]] = field(default_factory=dict)

    def add(self, test: str, run: Run, *, anew: bool = False) -> None:
        """One more run of a test, or with ``anew`` its only one."""
        before = [] if anew else self.runs.get(test, [])
        self.runs[test] = [*before, run][-MOST_RUNS:]

    def write(self) -> None:
        """Replace the file as a whole; raises UsageError or OutputError where that fails."""
        tests = {test: [figures_document(run) for run in self.runs[test]] for test in self.runs}
        # In the order of names, so that a commit's diff shows what changed.
        document = {_TESTS: dict(sorted(tests.items()))}
        content = (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()
        write_atomically(str(self.path), lambda stream: stream.write(content), replace=True)


class Collector:
    """A plugin that adds the tests that passed to the file at ``path`` when the session ends.

    Their figures are the ``name`` of their properties; ``anew`` replaces what the file has of them.
    """

    def __init__(self, path: Path, name: str, *, anew: bool) -> None:
        self._path, self._name, self._anew = path, name, anew
        self._measured: dict[str, str] = {}
        self._problem = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the figures of a test that passed."""
        if report.when == "call" and report.passed:
            for name, value in report.user_properties:
                if name == self._name:
                    self._measured[report.nodeid] = str(value)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the file anew, once; where that fails the run does, its results shown."""
        if not self._measured:
            return
        try:
            result = read_baselines(self._path)
            for test, figures in self._measured.items():
                result.add(test, read_figures(json.loads(figures)), anew=self._anew)
            result.write()
        except PeaklineError as error:
            self._problem = str(error)
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what was written."""
        what = counted(len(self._measured), "test")
        text = self._problem or f"{self._path}: the figures of {what} were added"
        terminalreporter.line(for_log(f"peakline: {one_line(text)}"), red=bool(self._problem))


def read_baselines(path: Path) -> Baselines:
    """Those of the file; none where it is not there.

    Raises InputError where it is something else.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return Baselines(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        tests = json.loads(content)[_TESTS]
        runs = {test: [read_figures(run) for run in some] for test, some in tests.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(f"{path}: is no file of --peakline-update-baseline: {error}") from None
    return Baselines(path, runs)


def figures_document(run: Run) -> list[dict[str, object]]:
    """A run as a document."""
    return [{"name": name, "of": of, "value": value} for (name, of), value in run.items()]


def read_figures(rows: Sequence[Mapping[str, object]]) -> Run:
    """A run of a document; raises ValueError, TypeError or KeyError for another one."""
    result: dict[Key, float] = {}
    for row in rows:
        name, of, value = row["name"], row["of"], row["value"]
        if not isinstance(name, str) or not isinstance(of, str):
            raise TypeError("a figure has no name")
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise TypeError("a figure has no value")
        result[name, of] = value
    return result


def hold(test: str, run: Run, before: Sequence[Run], tolerance: float | None = None) -> list[str]:
    """What of a ``test``'s ``run`` exceeds its runs ``before``, a line each; none where all passes.

    A test without any fails: it would pass whatever it took.
    """
    if not before:
        line = "baseline: has no entry of this test; --peakline-update-baseline adds it"
        return [f"{line} ({one_line(test)})"]
    lines = []
    for key in dict.fromkeys(key for one in before for key in one):
        values = [one[key] for one in before if key in one]
        may = allowed(values, BYTES, tolerance)
        name, of = key
        where = f"({allocator_text(one_line(of))})"
        if key not in run:
            if key in before[-1]:
                lines.append(f"baseline: {name}: cannot be measured in this run {where}")
            continue
        limit = max(may.limit, LEAK_BYTES) if name == _GROWTH else may.limit
        if run[key] <= limit:
            continue
        spread = "" if may.spread is None else f" ± {size_text(may.spread)}"
        lines.append(
            f"baseline: {name} {size_text(run[key])}, baseline {size_text(may.base)}{spread} "
            f"({counted(may.runs, 'run')}), {size_text(limit)} allowed {where}"
        )
    return lines


def tolerance_of(value: object) -> float | None:
    """The tolerance of a mark: ``"5%"`` or 0.05; raises UsageError for another one."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UsageError(f"peakline: tolerance is '5%' or 0.05, not {value!r}")
    return share_amount(str(value)).value
