"""Search by name over all events of a timeline."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.deadline import checked
from peakline.timing.timeline.index import Timeline
from peakline.trace.pixels import pixel_edges


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
        from peakline.patterns import Pattern

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
    found = np.searchsorted(edges[1:-1], np.maximum(time, start_ps), side="right")
    return found.astype(np.int64, copy=False)


def _first(events: Int64Array, start: Int64Array) -> int:
    """The event that begins first; of several the one that stands first."""
    return int(events[np.argmin(start)]) if events.size else -1


def _last(events: Int64Array, start: Int64Array) -> int:
    return int(events[events.size - 1 - np.argmax(start[::-1])]) if events.size else -1
