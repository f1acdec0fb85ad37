"""Which events the time of steps goes to: every moment of a window to one event, or to none.

The part of a moment is that of the table ``step_breakdown``; its event is the innermost one, on the
first line that says so: the device's lines in their order, the threads of the steps, then others.
So the time of a part is that of its events and of what no event explains. Where no event says what
goes on, what the threads of the steps were in meanwhile counts: frames, and waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, Int64Array
from peakline.tables import Profile
from peakline.tables.joins import ranges, summed
from peakline.timing.step_breakdown import PARTS, layers_of
from peakline.trace.activity_names import Activity
from peakline.trace.activity_sets import (
    NEVER,
    LineSets,
    device_lines_between,
    device_sets_of,
    either,
    host_lines_between,
    host_sets_of,
    thread_events_between,
)
from peakline.trace.events import Trace, nesting_of, trace_of
from peakline.trace.intervals import Intervals, intersection, union, within, without
from peakline.trace.nesting import nest_lines


@dataclass(frozen=True, eq=False)
class WindowSelfTimes:
    """Events (places in the trace) and windows they lie in, with their self time there (ps)."""

    event: Int64Array
    window: Int64Array
    ps: Int64Array


def window_self_times(
    profile: Profile, event: Int64Array, begin: Int64Array, end: Int64Array
) -> WindowSelfTimes:
    """The self time of each ``event`` in each window that it lies in, also in part.

    Windows are in order of time and do not overlap. Raises InputError when the profile cannot be
    read.
    """
    trace, nesting = trace_of(profile), nesting_of(profile)
    which, window = lying_in(trace.start[event], trace.end[event], begin, end)
    result = event[which]
    is_whole = (trace.start[result] >= begin[window]) & (trace.end[result] <= end[window])
    ps = np.where(is_whole, nesting.own_ps[result], 0)
    part = np.flatnonzero(~is_whole)
    if part.size:
        own = result[part], window[part]
        ps[part] = _clipped(trace.start[own[0]], trace.end[own[0]], begin[own[1]], end[own[1]])
        ps[part] -= _covered_inside(profile, *own, begin, end)
    return WindowSelfTimes(result, window, ps)


def lying_in(
    start: AnyArray, stop: AnyArray, begin: Int64Array, end: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Pairs of an event, ``start`` to ``stop``, and a window that it shares a moment with."""
    first = np.searchsorted(end, start, "right")
    last = np.maximum(np.searchsorted(begin, stop, "left"), first)
    return np.repeat(np.arange(first.size), last - first), ranges(first, last)


def _clipped(start: AnyArray, stop: AnyArray, begin: AnyArray, end: AnyArray) -> Int64Array:
    shared: Int64Array = np.maximum(np.minimum(stop, end) - np.maximum(start, begin), 0)
    return shared


def _covered_inside(
    profile: Profile, event: Int64Array, window: Int64Array, begin: Int64Array, end: Int64Array
) -> Int64Array:
    """How much of a window the children of an event cover, for pairs of both."""
    trace, parent = trace_of(profile), nesting_of(profile).parent
    wanted = np.zeros(trace.size, np.bool_)
    wanted[event] = True
    child = np.flatnonzero((parent >= 0) & wanted[np.maximum(parent, 0)])
    start, stop = _disjoint(trace.start[child], trace.end[child], parent[child])
    which, inside = lying_in(start, stop, begin, end)
    shared = _clipped(start[which], stop[which], begin[inside], end[inside])
    windows = begin.size
    keys = event * windows + window
    every, place = np.unique(keys, return_inverse=True)
    own = parent[child][which].astype(np.int64) * windows + inside
    at = np.minimum(np.searchsorted(every, own), every.size - 1)
    known = every[at] == own
    return summed(at[known], shared[known], every.size)[place]


def _disjoint(
    start: Int64Array, stop: Int64Array, group: AnyArray
) -> tuple[Int64Array, Int64Array]:
    """Intervals of which those of one ``group``, in order of time, begin where one before them
    ended: what they cover together is what they cover one by one.
    """
    order = np.lexsort((start, group))
    _, rank = np.unique(stop[order], return_inverse=True)
    numbers = np.unique(group[order], return_inverse=True)[1]
    reach = np.maximum.accumulate(numbers * (rank.size + 1) + rank)
    before = np.concatenate([[-1], reach[:-1]])
    same = np.concatenate([[False], numbers[1:] == numbers[:-1]])
    ends = np.unique(stop[order])
    until = ends[np.where(same, before - numbers * (rank.size + 1), 0)] if ends.size else ends
    begin = np.where(same, np.maximum(start[order], until), start[order])
    result = np.empty((2, start.size), np.int64)
    result[:, order] = np.stack([begin, np.maximum(stop[order], begin)])
    return result[0], result[1]


_PART = {name: number for number, name in enumerate(PARTS)}


@dataclass(frozen=True, eq=False)
class Segments:
    """Stretches of time, each of one event (a place in the trace); ``part`` is a place in `PARTS`,
    -1 where that is not the question.
    """

    event: Int64Array
    begin: Int64Array
    end: Int64Array
    part: Int64Array

    @classmethod
    def joined(cls, several: Iterable[Segments]) -> Segments:
        """All of ``several``."""
        none = np.zeros(0, np.int64)
        result = [cls(none, none, none, none), *several]
        return cls(
            *(
                np.concatenate([getattr(one, name) for one in result])
                for name in ("event", "begin", "end", "part")
            )
        )

    @property
    def ps(self) -> Int64Array:
        """How long each is."""
        return self.end - self.begin


@dataclass(frozen=True, eq=False)
class Attribution:
    """What the time of windows went to.

    ``pieces`` are stretches of the steps' time, of which no two share a moment; ``event`` are
    all events that lie in a window, also in part (places in the trace, ascending), and ``own_ps``
    their self time there, side by side on their lines.
    """

    pieces: Segments
    event: Int64Array
    own_ps: Int64Array


def attribution_of(profile: Profile, plane: int | None, windows: Intervals) -> Attribution:
    """What the time of ``windows`` (a set) went to, of the device on ``plane`` (its id) and the
    host, or of the host alone.

    Raises InputError when the profile cannot be read.
    """
    trace = trace_of(profile)
    if not windows[0].size:
        none = Segments.joined(())
        return Attribution(none, none.event, none.event)
    span = int(windows[0][0]), int(windows[1][-1])
    sets = next((one for one in device_sets_of(profile) if one.device.plane_id == plane), None)
    of_device = [] if sets is None else list(device_lines_between(profile, sets.device, span))
    of_host = list(host_lines_between(profile, span))
    lines = {False: of_host, True: of_device}
    segments = {
        line.line: _cut(innermost(trace, line.event), windows) for line in (*of_device, *of_host)
    }
    event = {line.line: line.event for line in (*of_device, *of_host)}
    seen: Intervals = NEVER
    pieces = []
    for part, kind, intervals, on_device in layers_of(sets, host_sets_of(profile)):
        left = without(intersection(within(intervals, *span), windows), seen)
        if not left[0].size:
            continue
        seen = either(seen, left)
        for line in lines[on_device]:
            for result in _explained(line, kind, left, segments[line.line]):
                left = without(left, union(result.begin, result.end))
                pieces.append(_as_part(result, _PART[part]))
            if not left[0].size:
                break
    rest = _PART["unknown" if sets is None else "idle"]
    left = without(windows, seen)
    for number, events in thread_events_between(profile, span):
        event[number], segments[number] = events, _cut(innermost(trace, events), windows)
        own = _cut(segments[number], left)
        left = without(left, union(own.begin, own.end))
        pieces.append(_as_part(own, rest))
    every = np.unique(np.concatenate([np.zeros(0, np.int64), *event.values()]))
    spent = window_self_times(profile, every, *windows)
    once, place = np.unique(spent.event, return_inverse=True)
    return Attribution(Segments.joined(pieces), once, summed(place, spent.ps, once.size))


def innermost(trace: Trace, event: Int64Array) -> Segments:
    """When each of the events of one line (places in the trace, ascending) is the innermost."""
    start, end = trace.start[event], trace.end[event]
    parent = np.empty(event.size, np.int32)
    nest_lines(
        start, end, np.array([0, event.size]), np.ones(1, np.bool_), parent,
        np.zeros(0, np.uint16), np.zeros(0, np.int64),
    )  # fmt: skip
    bounds = np.unique(np.concatenate([start, end]))
    begin = bounds[:-1]
    at = np.searchsorted(start, begin, "right") - 1
    # Who has ended by then gives way to what it lies in.
    over = np.flatnonzero((at >= 0) & (end[at] <= begin))
    while over.size:
        at[over] = parent[at[over]]
        over = over[(at[over] >= 0) & (end[at[over]] <= begin[over])]
    known = np.flatnonzero(at >= 0)
    return Segments(
        event[at[known]], begin[known], bounds[1:][known], np.full(known.size, -1, np.int64)
    )


def _cut(segments: Segments, windows: Intervals) -> Segments:
    """What of ``segments`` lies in a set."""
    which, window = lying_in(segments.begin, segments.end, *windows)
    return Segments(
        segments.event[which],
        np.maximum(segments.begin[which], windows[0][window]),
        np.minimum(segments.end[which], windows[1][window]),
        segments.part[which],
    )


def _explained(
    line: LineSets, kind: Activity, left: Intervals, segments: Segments
) -> Iterable[Segments]:
    """What of ``left`` a line explains by what it did of a kind."""
    for own, intervals in line.sets:
        if own == kind:
            yield _cut(segments, intersection(left, intervals))


def _as_part(segments: Segments, part: int) -> Segments:
    return Segments(
        segments.event, segments.begin, segments.end, np.full(segments.event.size, part, np.int64)
    )
