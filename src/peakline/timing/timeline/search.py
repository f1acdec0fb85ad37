"""Search by name over all events of a timeline, and the event that a link means.

A link means an event by its name, or a moment, or both; never another one instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.deadline import checked
from peakline.patterns import Pattern
from peakline.tables import Profile
from peakline.timing.timeline.index import Timeline
from peakline.trace.frames import frame_of
from peakline.trace.pixels import pixel_edges

BEGINS, HOLDS, LONGEST, NONE = "begins", "holds", "longest", "none"
_EAGER = "EagerLocalExecute: "


@dataclass(frozen=True)
class Meant:
    """``event`` is its place in the trace, -1 for none.

    ``how`` says why it is the one: it ``begins`` at the moment, ``holds`` it, or is the ``longest``
    of its name; ``none`` otherwise. ``count`` events have the name, where one was given.
    """

    event: int
    how: str
    count: int


def meant(
    profile: Profile,
    timeline: Timeline,
    name: str | None = None,
    *,
    at_ps: int | None = None,
    end_ps: int | None = None,
    lines: Int64Array | None = None,
    device: str | None = None,
) -> Meant:
    """The event called ``name`` at ``at_ps``, on ``lines`` (places in the trace; None: all).

    It begins then, or else it is the innermost that holds the moment; with ``end_ps`` it also ends
    then. Without a moment it is the longest of the name. Without a name it begins at the moment,
    and only one does, or all that do lie in one another: then it is the innermost. An op's events
    may be called ``op:Type`` or ``%op = ...``, or otherwise where the profile says what they were
    for. Where some are on the plane called ``device``, only those count.
    """
    trace = timeline.trace
    if name is None and at_ps is None:
        return Meant(-1, NONE, 0)
    hits = _named(profile, timeline, name) if name is not None else _beginning(timeline, at_ps or 0)
    if lines is not None:
        chosen = np.zeros(len(trace.lines), np.bool_)
        chosen[lines] = True
        hits = hits[chosen[trace.lines_of(hits)]]
    if device is not None and hits.size:
        is_there = _on_plane(timeline, hits, device)
        hits = hits[is_there] if is_there.any() else hits
    count = int(hits.size) if name is not None else 0
    if at_ps is None:
        if not hits.size:
            return Meant(-1, NONE, count)
        return Meant(int(hits[np.argmax(trace.end[hits] - trace.start[hits])]), LONGEST, count)
    start, end = trace.start[hits], trace.end[hits]
    if end_ps is not None:
        is_whole = end == end_ps
        hits, start, end = hits[is_whole], start[is_whole], end[is_whole]
    begins = hits[start == at_ps]
    if begins.size:
        result = int(begins[-1]) if name is None else int(begins[0])
        if name is not None or _is_nested(timeline, begins, result):
            return Meant(result, BEGINS, count)
        return Meant(-1, NONE, count)
    holds = np.flatnonzero((start <= at_ps) & (end > at_ps))
    if not holds.size:
        return Meant(-1, NONE, count)
    return Meant(int(hits[holds[np.argmax(start[holds])]]), HOLDS, count)


def _named(profile: Profile, timeline: Timeline, name: str) -> Int64Array:
    """The events called so; where there are none, those of an op of that name, or of a function
    that findings call so: ``load_batch (train.py:151)``.
    """
    names = timeline.trace.name
    code = names.code_of(name)
    hits = np.flatnonzero(names.codes == code) if code >= 0 else np.zeros(0, np.int64)
    if hits.size:
        return hits
    wanted = name.removeprefix("%")
    is_op = [
        wanted in text and wanted in (_bare(text), text.rpartition(":")[0])
        for text in checked(names.values)
    ]
    if not any(is_op):
        is_op = [
            (frame := frame_of(text)) is not None and frame.title == name
            for text in checked(names.values)
        ]
    if not any(is_op):
        return _executions(profile, name)
    # The last place is that of events without a name.
    return np.flatnonzero(np.array([*is_op, False])[names.codes])


def _executions(profile: Profile, name: str) -> Int64Array:
    """The executions of an op whose events have other names, as a kernel has."""
    from peakline.timing.ops.device import framework_executions
    from peakline.timing.ops.host import host_executions

    result = [np.zeros(0, np.int64)]
    for runs in (framework_executions(profile), host_executions(profile)):
        numbers = [number for number, key in enumerate(runs.keys) if key.name == name]
        result.append(runs.event[np.isin(runs.op, numbers)].astype(np.int64))
    return np.concatenate(result)


def _bare(text: str) -> str:
    """An instruction's own name, or that of an op that ran eagerly."""
    return text.removeprefix(_EAGER).partition(" = ")[0].removeprefix("%")


def _beginning(timeline: Timeline, at_ps: int) -> Int64Array:
    """The events that begin at a moment, line after line, outer before inner."""
    trace = timeline.trace
    result = [np.zeros(0, np.int64)]
    for line in trace.lines:
        start = trace.start[line.events]
        first, last = np.searchsorted(start, [at_ps, at_ps + 1]).tolist()
        result.append(np.arange(line.first + first, line.first + last))
    return np.concatenate(result)


def _is_nested(timeline: Timeline, events: Int64Array, inner: int) -> bool:
    """Whether all of ``events`` are ``inner`` or around it."""
    around, above = {inner}, int(timeline.nesting.parent[inner])
    while above >= 0:
        around.add(above)
        above = int(timeline.nesting.parent[above])
    return all(event in around for event in events.tolist())


def _on_plane(timeline: Timeline, events: Int64Array, name: str) -> BoolArray:
    trace = timeline.trace
    line = trace.lines_of(events)
    is_plane = np.array([trace.planes[own.plane].name == name for own in trace.lines], np.bool_)
    return is_plane[line]


@dataclass(frozen=True, eq=False)
class Found:
    """The events whose name was looked for; an event is its place in the trace, -1 is none.

    ``names`` are the codes of the names that some event has, the most frequent first, ``counts``
    how many have each. ``first`` and ``last`` are the first and the last event by start,
    ``previous`` and ``next`` those around the given one or the given time. ``bins`` counts per
    pixel the events that begin in it; what began before the viewport and reaches into it counts in
    the first.
    """

    names: Int64Array
    counts: Int64Array
    first: int
    last: int
    previous: int
    next: int
    bins: Int64Array

    @property
    def total(self) -> int:
        """How many events there are."""
        return int(self.counts.sum())


def names_with(timeline: Timeline, text: str, *, is_pattern: bool) -> BoolArray:
    """Per distinct name, whether ``text`` is in it, in any case; a pattern (RE2) may match a part.

    Raises UsageError for a pattern that is none.
    """
    names = timeline.trace.name.values
    if is_pattern:
        return Pattern(text).is_in(names)
    wanted = text.casefold()
    return np.fromiter((wanted in name.casefold() for name in checked(names)), np.bool_, len(names))


def search(
    timeline: Timeline,
    text: str,
    *,
    start_ps: int,
    end_ps: int,
    width: int,
    is_pattern: bool = False,
    lines: Int64Array | None = None,
    at_ps: int | None = None,
    event: int | None = None,
) -> Found:
    """The events called ``text``, on ``lines`` (places in the trace; None: all).

    ``next`` and ``previous`` are counted from ``event`` (its place), else from ``at_ps``, else
    from ``start_ps``: the first that begins then or later, and the last that begins before.
    """
    trace = timeline.trace
    wanted = names_with(timeline, text, is_pattern=is_pattern)
    codes = trace.name.codes
    hits = np.flatnonzero(wanted[codes]) if wanted.any() else np.zeros(0, np.int64)
    if lines is not None:
        chosen = np.zeros(len(trace.lines), np.bool_)
        chosen[lines] = True
        hits = hits[chosen[trace.lines_of(hits)]]
    counts = np.bincount(codes[hits], minlength=wanted.size)
    names = np.flatnonzero(counts)
    names = names[np.argsort(-counts[names], kind="stable")]
    start = trace.start[hits]
    if event is not None:
        time = int(trace.start[event])
        is_later = (start > time) | ((start == time) & (hits > event))
        is_earlier = (start < time) | ((start == time) & (hits < event))
    else:
        is_later = start >= (start_ps if at_ps is None else at_ps)
        is_earlier = ~is_later
    inside = (start < end_ps) & ((trace.end[hits] > start_ps) | (start >= start_ps))
    return Found(
        names,
        counts[names],
        _first(hits, start),
        _last(hits, start),
        _last(hits[is_earlier], start[is_earlier]),
        _first(hits[is_later], start[is_later]),
        np.bincount(pixels_of(start[inside], start_ps, end_ps, width), minlength=width),
    )


def pixels_of(time: Int64Array, start_ps: int, end_ps: int, width: int) -> Int64Array:
    """The pixel of each time before ``end_ps``; what is before ``start_ps`` is on the first."""
    edges = pixel_edges(start_ps, end_ps, width)
    result = np.searchsorted(edges[1:-1], np.maximum(time, start_ps), side="right")
    return result.astype(np.int64, copy=False)


def _first(events: Int64Array, start: Int64Array) -> int:
    """The event that begins first; of several the one that stands first."""
    return int(events[np.argmin(start)]) if events.size else -1


def _last(events: Int64Array, start: Int64Array) -> int:
    return int(events[events.size - 1 - np.argmax(start[::-1])]) if events.size else -1
