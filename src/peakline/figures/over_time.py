"""Memory in use over time: a step line per allocator over the steps of the job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from peakline.arrays import AnyArray, Int64Array, IntpArray
from peakline.figures.drawn import (
    DrawnAllocator,
    band_shapes,
    drawn_allocators,
    find_bands,
    step_name,
)
from peakline.figures.look import (
    ALARM,
    COLOURS,
    INK,
    MUTED,
    Drawing,
    axis,
    bytes_unit,
    drawing,
    duration_text,
    level_mark,
    plain,
    points,
    step_line,
    time_unit,
)
from peakline.memory.peak.moments import find_high_moments
from peakline.text import share_text, size_text

if TYPE_CHECKING:
    from peakline.findings.memory_answer import MemoryAnswer
    from peakline.tables import Profile


_BUCKETS = 1300
"""Buckets of all lines together: 4 points of 21 bytes each, 120 KB at most."""
_LEAST_BUCKETS = 150
_LINES = 8
_CAPACITY = 0.3
"""A capacity is drawn where the peak takes this share of it; beyond, it would flatten the line."""
_MOMENTS = 24
"""So many moments near the peak are marked, of all lines together."""
_ALIKE = 12
"""Where more moments than this are made of the same (every step peaks), only the fullest is."""
_SEEN = 0.05
"""Moments are marked on the lines whose peak takes this share of the highest one."""


@dataclass(frozen=True, eq=False)
class Usage:
    """An allocator's memory in use: bytes after the records at ``time_ps`` (picoseconds)."""

    time_ps: Int64Array
    used: Int64Array


def read_usage(chosen: DrawnAllocator, buckets: int) -> Usage | None:
    """Memory in use of one allocator, 4 points per bucket at most; None if all is at one time."""
    history = chosen.history
    rows = history.usage_rows(chosen.number)
    time = history.events.array("time_ps")[rows]
    if rows.size < 2 or time[0] == time[-1]:
        return None
    used = history.used[rows]
    places = places_to_draw(time, used, buckets)
    return Usage(time[places], used[places])


def memory_over_time(
    profile: Profile, *, allocator: str | None = None, answer: MemoryAnswer | None = None
) -> Drawing | None:
    """Memory in use over time, per allocator, with the steps, the peak and the capacity.

    The peak is exact, and the picture is that of all records: of every slice of time the first,
    least, largest and last value are drawn. Moments made of something else that come near the peak
    are marked too. At most 8 allocators are drawn, those with the highest peaks. None where the
    profile has no records, or all of one time. Raises NotFoundError for an unknown allocator.
    """
    result = drawn_allocators(profile, allocator, answer)
    shown = result[:_LINES]
    buckets = max(_BUCKETS // max(len(shown), 1), _LEAST_BUCKETS)
    drawn = [
        (chosen, course) for chosen in shown if (course := read_usage(chosen, buckets)) is not None
    ]
    if not drawn:
        return None
    first = drawn[0][0]
    bands = find_bands(first)
    start = min(int(course.time_ps[0]) for _, course in drawn)
    end = max(int(course.time_ps[-1]) for _, course in drawn)
    lines = [(chosen, _until(course, end)) for chosen, course in drawn]
    time_size, time_name = time_unit(end - start)
    top = max(chosen.peak.peak_bytes for chosen, _ in lines)
    size, unit = bytes_unit(max(int(course.used.max()) for _, course in lines))
    shapes, notes = band_shapes(bands, time_size, (start, end))
    names = first.step_names
    traces: list[dict[str, Any]] = []
    for k, (chosen, course) in enumerate(lines):
        traces += _traces(
            chosen,
            course,
            COLOURS[k],
            (size, unit),
            time_size,
            most=_MOMENTS // len(lines) if chosen.peak.peak_bytes >= _SEEN * top else 0,
            is_first=k == 0,
        )
    capacities = _drawn_capacities([chosen for chosen, _ in lines], top)
    for chosen, capacity in capacities:
        whose = f", {plain(chosen.name, 40)}" if len(capacities) > 1 else ""
        text = f"capacity {size_text(capacity)}{whose}"
        line, word = level_mark(text, INK, capacity / size, "dash")
        shapes.append(line)
        notes.append(word)
    summary, room = _summary(first, names), (end - start) * 0.01
    more = f"; {len(result) - len(shown)} more allocators" if len(result) > len(shown) else ""
    return drawing(
        traces,
        title="Memory in use over time",
        subtitle=plain(summary, 400) + more,
        description=(
            f"Step line of memory in use from {duration_text(start)} to {duration_text(end)}, "
            f"{len(lines)} allocator(s). "
            + " ".join(f"{_summary(chosen, names)}." for chosen, _ in lines)
        ),
        height=402 + 18 * len(lines),
        xaxis=axis(
            f"Time since the profile's start ({time_name})",
            range=[(start - room) / time_size, (end + room) / time_size],
        ),
        yaxis=axis(f"Memory in use ({unit})", rangemode="tozero"),
        shapes=shapes,
        annotations=notes,
        showlegend=True,
    )


def _until(course: Usage, end: int) -> Usage:
    """The same, with its last value up to the end of the longest one."""
    if int(course.time_ps[-1]) == end:
        return course
    return Usage(np.append(course.time_ps, end), np.append(course.used, course.used[-1]))


def _traces(
    chosen: DrawnAllocator,
    course: Usage,
    colour: str,
    scale: tuple[int, str],
    time_size: int,
    *,
    most: int,
    is_first: bool,
) -> list[dict[str, Any]]:
    size, unit = scale
    names = chosen.step_names
    name = plain(chosen.name)
    line = step_line(
        f"{plain(chosen.name, 60)}, peak {size_text(chosen.peak.peak_bytes)}",
        colour,
        course.time_ps / time_size,
        course.used / size,
        legendgroup=name,
        hovertemplate=f"%{{y:,.6~r}} {unit} at %{{x:,.9~r}}<extra>{name}</extra>",
    )
    peak = chosen.peak
    step = step_name(peak.peak_step, names)
    marker = points(
        "peak",
        [peak.peak_time_ps / time_size],
        [peak.peak_bytes / size],
        {"symbol": "triangle-down", "size": 12, "color": ALARM},
        legendgroup=name,
        showlegend=is_first,
        hovertemplate=f"peak {size_text(peak.peak_bytes)} ({peak.peak_bytes:,} bytes)<br>"
        + plain(f"at {duration_text(peak.peak_time_ps)}" + (f", step {step}" if step else ""))
        + f"<extra>{name}</extra>",
    )
    return [line, marker, *_moments(chosen, colour, size, time_size, most)]


def _moments(
    chosen: DrawnAllocator, colour: str, size: int, time_size: int, most: int
) -> list[dict[str, Any]]:
    """The moments near the peak, each with what it has most of."""
    history = chosen.history
    rows = history.rows_of(chosen.number)
    rows = rows[history.measured[rows]]
    times = history.events.array("time_ps")[rows]
    names = chosen.step_names
    x: list[float] = []
    y: list[float] = []
    texts: list[str] = []
    for number, moment in enumerate(
        find_high_moments(chosen.history, chosen.number) if most else ()
    ):
        memory = moment.memory
        largest = memory.peak_buffers[0].op if memory.peak_buffers else ""
        like = "as at the peak" if number == 0 else f"most of it: {largest or '(no op)'}"
        moments = list(zip(moment.times_ps, moment.steps, strict=True))
        if len(moments) > _ALIKE:
            moments = [one for one in moments if one[0] == memory.peak_time_ps][:1]
        for time, step in moments:
            if time == chosen.peak.peak_time_ps or len(x) == most:
                continue
            at = slice(*np.searchsorted(times, (time, time + 1)))
            used = int(history.used[rows[at]].max())
            x.append(time / time_size)
            y.append(used / size)
            where = step_name(step, names)
            sentence = f"near the peak, {size_text(used)}" + (f", step {where}" if where else "")
            texts.append(plain(f"{sentence}; {like}"))
    if not x:
        return []
    edge = {"width": 1.5, "color": MUTED}
    return [
        points(
            "near the peak",
            x,
            y,
            {"symbol": "diamond-open", "size": 9, "color": colour, "line": edge},
            legendgroup=plain(chosen.name),
            text=texts,
            hovertemplate="%{text}<extra></extra>",
        )
    ]


def _drawn_capacities(chosen: list[DrawnAllocator], top: int) -> list[tuple[DrawnAllocator, int]]:
    """The capacities that are drawn, one per value."""
    first: dict[int, DrawnAllocator] = {}
    for one in chosen:
        capacity = one.peak.capacity_bytes
        if capacity and top >= _CAPACITY * capacity:
            first.setdefault(capacity, one)
    return [(one, capacity) for capacity, one in first.items()][:4]


def _summary(chosen: DrawnAllocator, names: dict[int, str]) -> str:
    peak = chosen.peak
    step = step_name(peak.peak_step, names)
    sentence = (
        f"{chosen.name}: peak {size_text(peak.peak_bytes)} at {duration_text(peak.peak_time_ps)}"
    )
    if step:
        sentence += f" in step {step}"
    if peak.capacity_bytes:
        share = share_text(peak.peak_bytes, peak.capacity_bytes)
        sentence += f", {share} of the capacity {size_text(peak.capacity_bytes)}"
    return sentence


def places_to_draw(time: Int64Array, value: AnyArray, buckets: int) -> IntpArray:
    """The places of a step line that are worth drawing, in order, at most 4 per bucket.

    ``time`` never falls. It is cut into ``buckets`` equal spans, and of each span the first, the
    last, the (first) least and the (first) largest value are chosen: a drawing no wider than
    ``buckets`` dots looks the same as that of all values (M4, Jugel et al., VLDB 2014). Of values
    that repeat the one before nothing is lost when they are left out. The first and the last place
    are always among them.
    """
    if not time.size:
        return np.zeros(0, np.intp)
    retained = np.arange(time.size)
    if time.size > 4 * buckets:
        first, last = int(time[0]), int(time[-1])
        edges = [first + (last - first) * k // buckets for k in range(buckets)]
        starts = np.unique(np.searchsorted(time, np.array(edges, np.int64)))
        ends = np.append(starts[1:], time.size)
        retained = np.concatenate(
            [
                starts,
                ends - 1,
                _first_equal(value, starts, ends, np.minimum.reduceat(value, starts)),
                _first_equal(value, starts, ends, np.maximum.reduceat(value, starts)),
            ]
        )
        retained = np.unique(retained)
    repeats = np.zeros(retained.size, np.bool_)
    repeats[1:-1] = value[retained][1:-1] == value[retained][:-2]
    places: IntpArray = retained[~repeats]
    return places


def _first_equal(
    value: AnyArray, starts: IntpArray, ends: IntpArray, wanted: AnyArray
) -> IntpArray:
    """Per span, the first place that holds the value ``wanted`` of that span."""
    equal = np.flatnonzero(value == np.repeat(wanted, ends - starts))
    first: IntpArray = equal[np.searchsorted(equal, starts)]
    return first
