"""Memory over time: what was in use while each step ran, and at its end."""

from __future__ import annotations

import numpy as np

from peakline.arrays import Int64Array
from peakline.figures.over_time import usage_rows
from peakline.memory.marks import Marks
from peakline.memory.peak.explained import AllocatorPeak
from peakline.memory.peak.moments import NEAR, find_high_moments
from peakline.render.document.model import Row, Table, columns_of
from peakline.render.html.context import Part
from peakline.render.html.html import Markup, clip, code, join, tag
from peakline.text import size_text, time_text

_ROWS = 12
_SMALL, _SMALL_SHARE = 1 << 20, 0.01
"""Nobody has to know how often an allocator with less than this comes near its peak."""


def memory_over_time(part: Part) -> Markup | None:
    """The figure of memory over time; nothing where all records are of one moment."""
    history, context = part.history, part.context
    rows = usage_rows(history, part.number)
    times = history.events.array("time_ps")[rows]
    if context.is_moment or rows.size < 2 or times[0] == times[-1]:
        return None
    used = history.used[rows]
    words = _sentence(part, times, used)
    growth = part.details.growth
    equivalent = (
        _by_time(part, times, used) if growth is None else _by_step(part, growth.marks, rows, used)
    )
    drawn = context.drawings.of_part(
        "memory_over_time", part, "Memory in use over time", equivalent
    )
    return join([tag("p", words), _near(part), drawn])


def _sentence(part: Part, times: Int64Array, used: Int64Array) -> str:
    return (
        f"From {size_text(int(used[0]))} at {time_text(int(times[0]))} to "
        f"{size_text(int(used[-1]))} at {time_text(int(times[-1]))}; the most is "
        f"{size_text(part.peak.peak_bytes)} at {time_text(part.peak.peak_time_ps)}."
    )


def _near(part: Part) -> Markup | None:
    """How often memory comes near the peak, and of what it is then.

    Nothing for an allocator that is small beside the largest, or at all.
    """
    largest = max(peak.peak_bytes for peak in part.context.answer.allocators)
    if part.peak.peak_bytes < max(_SMALL, _SMALL_SHARE * largest):
        return None
    moments = find_high_moments(part.history, part.number)
    times = sum(len(moment.times_ps) for moment in moments)
    if times < 2:
        return None
    told = f"Memory comes within {1 - NEAR:.0%} of the peak {times:,} times"
    if len(moments) == 1:
        return tag("p", f"{told}, made of the same each time: what lowers one lowers all.")
    # Mixes that read the same are shown as one: nobody could distinguish them.
    mixes: dict[tuple[str, str], AllocatorPeak] = {}
    for moment in moments:
        op, most = moment.memory.largest_op or ("", 0)
        share = f"{most / max(moment.memory.peak_bytes, 1):.0%}" if op else ""
        mixes.setdefault((op, share), moment.memory)
    if len(mixes) == 1:
        (op, share), _ = mixes.popitem()
        return tag(
            "p", told, *((f", each time with {share} of it from ", code(op)) if op else ()), "."
        )
    items = [
        tag(
            "li",
            f"{size_text(memory.peak_bytes)} at {time_text(memory.peak_time_ps)}, ",
            *((f"{share} of it from ", code(op)) if op else ("from no op that is known",)),
        )
        for (op, share), memory in mixes.items()
    ]
    told += f", made of {len(mixes)} different mixes. To lower the peak, all of them must fall:"
    return join([tag("p", told), tag("ul", *items)])


def _by_step(part: Part, marks: Marks, rows: Int64Array, used: Int64Array) -> Markup:
    """Per step the most in use and what is left at its end; the step of the peak among them.

    In a step without a record memory stays as it was. Steps in a row that read the same are one
    row of the table.
    """
    bounds = np.searchsorted(rows, np.append(marks.start, marks.rows))
    places = np.flatnonzero(bounds[1:] > 0)
    if not places.size:
        return _by_time(part, part.history.events.array("time_ps")[rows], used)
    left = used[bounds[places + 1] - 1]
    # What was in use before a step's first record still is when the step begins.
    first = np.maximum(bounds[places] - 1, 0)
    ends = bounds[places + 1]
    most = np.array(
        [used[a:b].max() for a, b in zip(first.tolist(), ends.tolist(), strict=True)], np.int64
    )
    runs = _alike(most, left)
    chosen = _evenly(len(runs), max(range(len(runs)), key=lambda k: int(most[runs[k][0]])))
    cells: list[Row] = []
    for begin, last in (runs[k] for k in chosen):
        name = marks.label(int(places[begin]))
        if last > begin:
            name += f" to {marks.label(int(places[last]))}"
        fullest = begin + int(most[begin : last + 1].argmax())
        cells.append((name, int(most[fullest]), int(left[last])))
    few = ""
    if len(chosen) < len(runs):
        few = f" ({len(chosen)} of {len(runs):,}, the one with the most among them)"
    columns = columns_of("step", most_in_use="bytes", in_use_at_its_end="bytes")
    caption = f"Memory in use by step{few}; steps are {clip(marks.detail)}"
    if len(runs) < places.size:
        caption += "; those in a row with the same values stand together"
    if places.size < len(marks):
        caption += f"; the first {len(marks) - places.size:,} end before the first record"
    return part.context.tables.write(Table(caption, columns, cells))


def _alike(most: Int64Array, left: Int64Array) -> list[tuple[int, int]]:
    """The first and last place of every run of steps whose two values read the same."""
    runs: list[tuple[int, int]] = []
    before = None
    for k, (high, low) in enumerate(zip(most.tolist(), left.tolist(), strict=True)):
        told = size_text(high), size_text(low)
        if told == before:
            runs[-1] = (runs[-1][0], k)
        else:
            runs.append((k, k))
        before = told
    return runs


def _by_time(part: Part, times: Int64Array, used: Int64Array) -> Markup:
    """The most and the least in use in equal parts of the time."""
    edges = np.linspace(int(times[0]), int(times[-1]), _ROWS + 1)
    bounds = np.searchsorted(times, edges)
    bounds[-1] = times.size
    cells: list[Row] = []
    for first, end, start, stop in zip(bounds, bounds[1:], edges, edges[1:], strict=False):
        # What was in use before the first record of a part still is when the part begins.
        own = used[max(int(first) - 1, 0) : max(int(end), 1)]
        cells.append((int(start), int(stop), int(own.max()), int(own.min())))
    columns = columns_of(**{"from": "ps"}, to="ps", most_in_use="bytes", least_in_use="bytes")
    return part.context.tables.write(Table("Memory in use by time", columns, cells))


def _evenly(total: int, also: int) -> list[int]:
    """At most so many places as a table has rows, evenly, ``also`` among them."""
    if total <= _ROWS:
        return list(range(total))
    places = np.linspace(0, total - 1, _ROWS - 1).astype(int).tolist()
    return sorted({*places, also})
