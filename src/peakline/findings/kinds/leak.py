"""Memory that every step leaves more of, to the end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from peakline.findings.growth import COLUMNS, evidence_of, named, room_text, rows_of, titles, total
from peakline.findings.kind import Kind, columns
from peakline.memory.growth.grown import worth
from peakline.memory.growth.pattern import MIN_RISES
from peakline.memory.origins.stacks import signature_codes
from peakline.memory.peak.per_example import is_held_by_recorder
from peakline.text import size_text

if TYPE_CHECKING:
    from peakline.findings.context import Findings, MemoryContext
    from peakline.findings.finding import Finding
    from peakline.memory.growth.series import AllocatorGrowth, GroupGrowth

KIND = Kind(
    "leak",
    __doc__,
    about="memory",
    phrase="memory grows with every step",
    severity="warning",
    section="growth",
    columns=COLUMNS | columns("capacity_bytes", steps_left="Steps until the capacity is reached"),
    saves="kept_bytes",
)

_JOINS = ("aten::cat", "aten::concat", "aten::concatenate")
_JOINED = (
    "What each {unit} adds is joined to it by a copy of the whole: bound how much is held (a "
    "window, a ring of the newest), allocate that once, and write what is new in place "
    "(index_copy_, a slice)."
)
_FOLDED = re.compile(r"__cf__\d+$")
_RETRACED = (
    "These are constants that were folded into newly compiled functions: a function is traced anew "
    "in each {unit}. Give it fixed shapes or an `input_signature`, pass tensors and no Python "
    "numbers as arguments, and make it once, outside the loop."
)


def find(context: MemoryContext) -> Findings:
    """Of each allocator with steps, all signatures that leak together."""
    for one in context.allocators:
        growth = one.growth
        if growth is None:
            continue
        leaks = [group for group in one.grown.leak if not _is_recorders(context, growth, group)]
        if leaks:
            # What is given to transforms is held as they are, and so may these be.
            is_sure = len(leaks) == len(one.grown.leak)
            finding = _leak(growth, leaks)
            yield finding if is_sure else replace(finding, severity="info")


def _is_recorders(context: MemoryContext, growth: AllocatorGrowth, group: GroupGrowth) -> bool:
    """Whether only the recording holds it."""
    history, runs = context.history, context.op_events
    if history is None or runs is None:
        return False
    codes = signature_codes(history, evidence_of(growth, group))
    return is_held_by_recorder(history, codes, runs)


def _leak(growth: AllocatorGrowth, result: Sequence[GroupGrowth]) -> Finding:
    rate = sum(group.pattern.bytes_per_step for group in result)
    worst, rows, unit = result[0], worth(result), growth.marks.unit
    room = room_text(growth)
    few = ""
    if growth.steps < MIN_RISES:
        sure = f"confidence {worst.pattern.confidence:.0%}"
        few = f"; in {growth.steps} steps, none released ({sure})"
    return KIND.finding(
        f"{named(growth)}: {_rate(growth, rows, rate)} since "
        f"{growth.marks.title(worst.pattern.since)}: {titles(rows)}{few}"
        f"{room and f'; {room}'}",
        {
            **evidence_of(growth, worst),
            "bytes_per_step": round(rate),
            "kept_bytes": total(result),
            "confidence": round(worst.pattern.confidence, 3),
            "peak_bytes": growth.peak_bytes,
            "capacity_bytes": growth.capacity_bytes,
            "steps_left": growth.steps_left,
        },
        _RETRACED.format(unit=unit)
        if _FOLDED.search(worst.signature.op)
        else _JOINED.format(unit=unit)
        if worst.signature.op in _JOINS
        else f"Something keeps what each {unit} makes: look for a list, a dictionary, a history or "
        "a captured variable that holds these tensors, and keep numbers or copies of what is "
        "needed.",
        rows_of(growth, rows),
    )


def _rate(growth: AllocatorGrowth, result: Sequence[GroupGrowth], rate: float) -> str:
    """How much stays, and in how many steps where most bring nothing."""
    unit, steps = growth.marks.unit, len(growth.marks) - result[0].pattern.since
    if not all(group.pattern.sparse for group in result):
        return f"{size_text(rate)} more stay in memory with every {unit}"
    about = f"about {size_text(rate)} per {unit}"
    rises = {group.pattern.rises for group in result}
    if len(rises) == growth.stride == 1:
        (number,) = rises
        about += f" ({size_text(total(result) / number)} in {number} of {steps} {unit}s)"
    return f"{about} more stay in memory"
