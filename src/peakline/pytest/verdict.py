"""What a recording says about a test's limits, as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from peakline import compare
from peakline.check.allowance import Run
from peakline.check.baseline import memory_figures
from peakline.check.limits import check_limits
from peakline.check.verdict import Check, Limits
from peakline.findings.memory_answer import MemoryAnswer
from peakline.pytest.baselines import hold, tolerance_of
from peakline.pytest.marks import GROWTH, PEAK, PROGRAM, Wanted
from peakline.pytest.recorder import Recorder
from peakline.safe_text import one_line
from peakline.text import size_text

_ROWS = 5


@dataclass(frozen=True)
class Verdict:
    """``peak_bytes`` is the largest of any allocator; ``growth_bytes`` the largest per step, None
    where it is not known. ``broken`` is one line for each broken limit, ``failure`` the whole
    message, empty where all limits hold. ``figures`` are what a baseline holds of the test.
    """

    peak_bytes: int | None
    growth_bytes: float | None
    broken: tuple[str, ...]
    failure: str
    figures: Run = field(default_factory=dict)


def verdict_of(
    recorder: Recorder, wanted: Wanted, test: str = "", before: Sequence[Run] | None = None
) -> Verdict:
    """Hold the limits ``wanted`` against what was recorded, and the runs of the ``test`` ``before``
    where they are given.

    Raises NotFoundError for an unknown allocator, InputError for a recording that cannot be read.
    """
    answer = recorder.memory()
    growths = [d.growth.bytes_per_step for d in answer.details if d.growth is not None]
    peak = max((result.peak_bytes for result in answer.allocators), default=None)
    growth = max(growths, default=None)
    unknown = False
    lines: list[str] = []
    broken: list[str] = []
    for mark, limits, allocator in (
        (PEAK, Limits(max_peak_bytes=wanted.peak_bytes), wanted.peak_of),
        (GROWTH, Limits(max_growth_per_step_bytes=wanted.growth_bytes), wanted.growth_of),
    ):
        if limits == Limits():
            continue
        part = answer if allocator is None else recorder.memory(allocator=allocator)
        for check in check_limits(part, limits):
            unsure = check.passed and mark == PEAK and _unsure(check, recorder)
            if check.passed and not unsure:
                continue
            unknown |= mark == GROWTH and check.measured is None
            line = unsure or _line(mark, check, recorder, answer)
            broken.append(line)
            lines += [line, *_rows(check)]
    for check in _of_programs(recorder, wanted):
        if not check.passed:
            where = f" ({check.program})" if check.program else ""
            broken.append(one_line(f"{PROGRAM}: {check.reason}{where}"))
            lines += [broken[-1], *_rows(check)]
    figures = _figures(answer)
    if before is not None:
        more = hold(test, figures, before, tolerance_of(wanted.tolerance))
        if not figures:
            more = [one_line(f"baseline: no memory was recorded. {recorder.silence}")]
        broken += more
        lines += more
    growth = None if unknown else growth
    return Verdict(peak, growth, tuple(broken), "\n".join(lines), figures)


def _figures(answer: MemoryAnswer) -> Run:
    return memory_figures(compare.state_of(answer))


def _of_programs(recorder: Recorder, wanted: Wanted) -> tuple[Check, ...]:
    """The limit held against the programs that ran: JAX records those of other tests too."""
    if wanted.program_bytes is None:
        return ()
    state = compare.with_programs(compare.MemoryState(()), recorder.profile, ran=True)
    return check_limits(state, Limits(max_program_peak_bytes=wanted.program_bytes))


def _unsure(check: Check, recorder: Recorder) -> str:
    """Why a peak that keeps its limit may have been higher; empty where it cannot."""
    most = recorder.at_most.get(check.allocator, 0)
    if most <= check.limit:
        return ""
    return one_line(
        f"{PEAK}: cannot be measured: between {size_text(check.measured or 0)} and "
        f"{size_text(most)} were in use, {size_text(check.limit)} allowed ({check.allocator}). "
        "JAX's heap was read at the steps' ends only, and arrays made in between may have come "
        "and gone: divide the test into smaller steps with the fixture peakline_profile, or "
        "compile more of it together with jax.jit"
    )


def _line(mark: str, check: Check, recorder: Recorder, answer: MemoryAnswer) -> str:
    where = f" ({check.allocator})" if check.allocator else ""
    text = f"{mark}: {check.reason}{where}"
    if check.measured is None:
        if not answer.allocators:
            text += f". {recorder.silence}"
        elif mark == GROWTH and not recorder.steps_taken:
            text += ": divide the test into steps with the fixture peakline_profile"
    return one_line(text)


def _rows(check: Check) -> list[str]:
    """What is behind a broken limit, the largest first."""
    lines = []
    for row in check.rows[:_ROWS]:
        per_step = row.get("bytes_per_step")
        size = row.get("bytes") if per_step is None else per_step
        what = size_text(_number(size)) + ("" if per_step is None else " per step")
        lines.append(one_line(f"  {what:>10}  {_name(row)}"))
    if len(check.rows) > _ROWS:
        lines.append(f"  and {len(check.rows) - _ROWS} more")
    return lines


def _name(row: Mapping[str, object]) -> str:
    parts = [row.get("op") or "(no op)", row.get("data_type"), row.get("shape")]
    return "  ".join(str(part) for part in parts if part)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
