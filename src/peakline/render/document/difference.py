"""What is said of a step that took longer than the median one: part by part, and what ran."""

from __future__ import annotations

from peakline.findings.step_difference import title_of
from peakline.render.document.model import Row, Table, columns_of
from peakline.text import short_time_text
from peakline.timing.step_difference import StepDifference
from peakline.timing.step_facts import PARTS

_OPS = 12


def difference_tables(difference: StepDifference) -> list[Table]:
    """The parts of both steps, then the ops that differ most; without those that do not differ."""
    times = {"this_step": "run_ps", "median_step": "run_ps", "difference": "figure"}
    if not difference.usual.is_median:
        times = {"this_step": "run_ps", "the_other": "run_ps", "difference": "figure"}
    parts: list[Row] = [
        (one.ps.value, one.ps.usual, _signed(one.ps.difference), PARTS[f"{one.part}_ps"])
        for one in sorted(difference.parts, key=lambda one: -abs(one.ps.difference))
        if one.ps.value or one.ps.usual
    ]
    ops: list[Row] = [
        (
            one.ps.value,
            one.ps.usual,
            _signed(one.ps.difference),
            PARTS[f"{one.part}_ps"],
            title_of(one.name),
        )
        for one in difference.ops[:_OPS]
        if one.ps.difference
    ]
    found = [Table("its time, part by part", columns_of(**times, part=""), parts)]
    if ops:
        columns = columns_of(**times, part="", op="name")
        found.append(Table(f"the ops that differ most, at most {_OPS}", columns, ops))
    return found


def _signed(ps: int) -> str:
    return f"{'+' if ps > 0 else '-' if ps < 0 else ''}{short_time_text(abs(ps))}"
