"""Ops wait for memory until another thread frees some."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from peakline import memory
from peakline.findings.kind import Kind, columns
from peakline.memory.fit.late_allocations import late_allocations
from peakline.text import allocator_text, counted, size_text, time_text
from peakline.trace.intervals import union

if TYPE_CHECKING:
    from peakline.findings.context import Findings
    from peakline.findings.time_context import TimeContext
    from peakline.memory.fit.waits import Wait

KIND = Kind(
    "allocation_wait",
    __doc__,
    about="time",
    phrase="ops wait for memory",
    severity="warning",
    least=0.01,
    much=0.05,
    section="steps",
    columns=columns(
        "allocator", "op", "shape", "bytes", "count", "share", "wall_ps", "gain_ps", "gain_share",
        "step", wait_ps="Waited", begin_ps="From",
    ),
    saves="gain_share",
)  # fmt: skip

_ROWS = 20


def find(context: TimeContext) -> Findings:
    """Of each allocator that several threads share, by what its requests waited for."""
    if "allocator_events" not in context.profile.tables or not late_allocations(context.profile):
        return
    by_allocator: dict[str, list[Wait]] = {}
    for wait in memory.waits_of(context.profile):
        by_allocator.setdefault(wait.allocator, []).append(wait)
    wall = context.facts.wall_ps // context.facts.lanes if context.facts.count else 0
    wall = wall or context.profile.duration_ps
    for allocator, waits in by_allocator.items():
        lost = _waited(waits)
        share = min(lost / wall, 1.0) if wall else 0.0
        if share < KIND.least:
            continue
        longest = max(waits, key=lambda wait: wait.wait_ps)
        yield KIND.finding(
            f"{allocator_text(allocator)}: {counted(len(waits), 'request')} waited for memory that "
            f"other threads held, {time_text(lost)} in all; the longest "
            f"{time_text(longest.wait_ps)} for {size_text(longest.bytes)} of "
            f"{longest.op or 'an op'}",
            {
                "allocator": allocator,
                "op": longest.op,
                "shape": longest.shape,
                "bytes": longest.bytes,
                "count": len(waits),
                "wait_ps": lost,
                "wall_ps": wall,
                "share": share,
                "gain_ps": lost,
                "gain_share": share,
            },
            "The memory is too small for what the threads do at once: peakline fit says how much "
            "they need without waiting. Give it more, or let fewer ops run at a time.",
            tuple(
                {
                    "op": wait.op,
                    "shape": wait.shape,
                    "bytes": wait.bytes,
                    "begin_ps": wait.begin_ps,
                    "wait_ps": wait.wait_ps,
                }
                for wait in sorted(waits, key=lambda wait: -wait.wait_ps)[:_ROWS]
            ),
        )


def _waited(waits: list[Wait]) -> int:
    """The time in which one or more requests waited."""
    begin = np.array([wait.begin_ps for wait in waits], np.int64)
    length = np.array([wait.wait_ps for wait in waits], np.int64)
    begins, ends = union(begin, begin + length)
    return int((ends - begins).sum())
