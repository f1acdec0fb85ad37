"""What an allocator hands out in every step, against the most it has in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from peakline.arrays import Int64Array
from peakline.figures.drawn import DrawnAllocator, drawn_allocators
from peakline.figures.look import (
    ALARM,
    COLOURS,
    Drawing,
    axis,
    drawing,
    level_mark,
    step_axis,
    step_bars,
)
from peakline.figures.text import bytes_unit, fit, plain
from peakline.text import size_text

if TYPE_CHECKING:
    from peakline.findings.memory_answer import MemoryAnswer
    from peakline.memory.growth.series import AllocatorGrowth
    from peakline.tables import Profile

_BARS = 128


def churn(
    profile: Profile, *, allocator: str | None = None, answer: MemoryAnswer | None = None
) -> Drawing | None:
    """Bytes that one allocator allocated in each step, and how much of it the step gave back.

    A bar stands for one step, or for the mean of several in a row where there are more than 128.
    The line is the peak of memory in use. The allocator is the one with the highest peak, of those
    with steps, where none is named.

    None where the profile has fewer than two steps, or nothing is allocated in them. Raises
    NotFoundError for an unknown allocator.
    """
    for chosen in drawn_allocators(profile, allocator, answer):
        growth = chosen.details.growth
        if growth is None:
            continue
        given_back, retained = handed_out(chosen, growth)
        if not (given_back.any() or retained.any()):
            continue
        return _draw(chosen, growth, given_back, retained)
    return None


def handed_out(chosen: DrawnAllocator, growth: AllocatorGrowth) -> tuple[Int64Array, Int64Array]:
    """Bytes allocated between one mark and the next: those freed before the next, and the rest."""
    history = chosen.history
    rows = history.rows_of(chosen.number)
    bounds = np.append(growth.marks.start, growth.marks.rows)
    size = history.allocated[rows]
    ends = history.lifetimes.end[rows]
    place = np.searchsorted(bounds, rows, "right")
    next_mark = np.append(bounds, history.rows)[np.minimum(place, bounds.size)]
    same = (ends >= 0) & (ends < next_mark)
    cuts = np.searchsorted(rows, bounds)
    back, retained = (
        np.diff(np.append(0, np.cumsum(part))[cuts])
        for part in (np.where(same, size, 0), np.where(same, 0, size))
    )
    return back, retained


def _draw(
    chosen: DrawnAllocator,
    growth: AllocatorGrowth,
    given_back: Int64Array,
    retained: Int64Array,
) -> Drawing:
    steps = given_back.size
    together = -(-steps // _BARS)
    firsts = np.arange(0, steps, together)
    counts = np.diff(np.append(firsts, steps)) * growth.stride
    back, rest = (np.add.reduceat(part, firsts) / counts for part in (given_back, retained))
    peak = growth.peak_bytes
    size, unit = bytes_unit(max(float((back + rest).max()), peak))
    labels = [plain(fit(growth.marks.label(k), 24)) for k in firsts.tolist()]
    mean = float((given_back + retained).sum()) / (steps * growth.stride)
    times = f", {mean / peak:.1f} times the peak" if mean >= 0.1 * peak > 0 else ""
    of = "the mean of a step" if together * growth.stride > 1 else "a step"
    traces = [
        step_bars(name, colour, value / size, labels, f"%{{y:,.6~r}} {unit}, from step %{{text}}")
        for name, colour, value in (
            ("freed in the same step", COLOURS[4], back),
            ("live beyond the step", COLOURS[0], rest),
        )
    ]
    line, word = level_mark(f"peak in use {size_text(peak)}", ALARM, peak / size, "dot")
    return drawing(
        traces,
        title="Allocated in every step",
        subtitle=plain(f"{chosen.name}: {size_text(mean)} in a step on average{times}", 400),
        description=(
            f"Bars of the bytes that {chosen.name} hands out in each of {steps * growth.stride} "
            f"steps, {size_text(mean)} on average; the peak of memory in use is {size_text(peak)}."
        ),
        barmode="stack",
        bargap=0.15,
        xaxis=step_axis(labels, of),
        yaxis=axis(f"Allocated ({unit})", rangemode="tozero"),
        shapes=[line],
        annotations=[word],
        showlegend=True,
    )
