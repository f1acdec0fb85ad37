"""A stretch of a trace in a few rows that a person can read: the longest events, nested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray
from peakline.deadline import check_deadline
from peakline.trace import intervals
from peakline.trace.events import Nesting, Trace

_GAPS = 100
"""A gap on a line is given where it takes one part in so many of the stretch, the longest ones."""


@dataclass(frozen=True)
class ExcerptRow:
    """An event, or a gap: a time when nothing ran on the line (``event`` -1, no name).

    ``event`` is the place in the trace, ``depth`` how many events it lies in. ``hidden`` counts
    the shorter events inside that are not shown, those inside shown ones not counted again.
    A gap is cut at the edges of the stretch, an event is not.
    """

    event: int
    depth: int
    name: str
    start_ps: int
    end_ps: int
    own_ps: int
    hidden: int


@dataclass(frozen=True)
class ExcerptLine:
    """One line: how many of its events lie in the stretch, how much of it they cover, and rows.

    The rows are those of its longest events. ``hidden`` counts the events that are not shown and
    lie in none that is.
    """

    line: int
    events: int
    busy_ps: int
    hidden: int
    rows: tuple[ExcerptRow, ...]


@dataclass(frozen=True)
class Excerpt:
    """The lines with events in the stretch; ``shown`` of ``events`` have rows."""

    start_ps: int
    end_ps: int
    events: int
    shown: int
    lines: tuple[ExcerptLine, ...]


def excerpt_of(
    trace: Trace,
    nesting: Nesting,
    start_ps: int,
    end_ps: int,
    *,
    lines: Sequence[int] | None = None,
    limit: int = 200,
    min_ps: int = 0,
) -> Excerpt:
    """The longest events that overlap ``start_ps:end_ps`` and last ``min_ps`` or more.

    At most ``limit``, of every line about as many, so that none hides another. What a shown event
    lies in is no shorter, and so is shown too. ``lines`` are places in the trace (None: all).
    """
    chosen = range(len(trace.lines)) if lines is None else lines
    parts = {}
    for line in chosen:
        check_deadline()
        there = _overlapping(trace, line, start_ps, end_ps)
        if there.size:
            parts[line] = there
    busy = {line: _busy(trace, nesting, there, (start_ps, end_ps)) for line, there in parts.items()}
    shares = _shares(
        [there.size for there in parts.values()], [*map(intervals.total, busy.values())], limit
    )
    is_shown = np.zeros(trace.size, np.bool_)
    for there, share in zip(parts.values(), shares, strict=True):
        is_shown[there[_longest(trace.end[there] - trace.start[there], share, min_ps)]] = True
    gap_ps = max(min_ps, (end_ps - start_ps) // _GAPS, 1)
    made = tuple(
        _line(trace, nesting, line, there, is_shown, busy[line], (start_ps, end_ps), gap_ps)
        for line, there in parts.items()
    )
    events = sum(there.size for there in parts.values())
    return Excerpt(start_ps, end_ps, events, int(np.count_nonzero(is_shown)), made)


def _shares(counts: list[int], busy_ps: list[int], limit: int) -> list[int]:
    """How many rows each line gets: as many as the others, if it has so many events.

    Where not all get one more, those get it that are the busiest.
    """
    shares, left = [0] * len(counts), limit
    order = sorted(range(len(counts)), key=lambda k: counts[k])
    for done, k in enumerate(order):
        level = left // (len(order) - done)
        if counts[k] > level:
            # This one and all that have more.
            for other in order[done:]:
                shares[other] = level
            left -= level * (len(order) - done)
            break
        shares[k] = counts[k]
        left -= shares[k]
    for k in sorted(order, key=lambda k: -busy_ps[k]):
        more = min(left, 1, counts[k] - shares[k])
        shares[k] += more
        left -= more
    return shares


def _busy(
    trace: Trace, nesting: Nesting, there: AnyArray, span: tuple[int, int]
) -> intervals.Intervals:
    """When something ran on a line; ``there`` are its events that overlap ``span``."""
    top = there[nesting.parent[there] < 0]
    return intervals.within(intervals.union(trace.start[top], trace.end[top]), *span)


def _overlapping(trace: Trace, line: int, start_ps: int, end_ps: int) -> AnyArray:
    part = trace.lines[line].events
    first = part.start
    stop = first + int(np.searchsorted(trace.start[part], end_ps))
    start, end = trace.start[first:stop], trace.end[first:stop]
    result: AnyArray = first + np.flatnonzero((end > start_ps) | (start >= start_ps))
    return result


def _longest(lengths: AnyArray, limit: int, min_ps: int) -> AnyArray:
    """The places of the longest, in order; of equal ones the first, which holds the others."""
    places: AnyArray = np.flatnonzero(lengths >= min_ps)
    if places.size <= limit:
        return places
    own = lengths[places]
    least = np.partition(own, own.size - limit)[own.size - limit] if limit else np.inf
    keep = own > least
    equal = np.flatnonzero(own == least)[: limit - int(np.count_nonzero(keep))]
    keep[equal] = True
    return places[keep]


def _line(
    trace: Trace,
    nesting: Nesting,
    line: int,
    there: AnyArray,
    is_shown: BoolArray,
    busy: intervals.Intervals,
    span: tuple[int, int],
    gap_ps: int,
) -> ExcerptLine:
    owners, counts = np.unique(_owners(nesting, there, is_shown), return_counts=True)
    hidden = dict(zip(owners.tolist(), counts.tolist(), strict=True))
    depth = {-1: -1}
    rows = []
    for event in there[is_shown[there]].tolist():
        depth[event] = depth.get(int(nesting.parent[event]), -1) + 1
        rows.append(
            ExcerptRow(
                event,
                depth[event],
                trace.name[event] or "",
                int(trace.start[event]),
                int(trace.end[event]),
                int(nesting.own_ps[event]),
                hidden.get(event, 0),
            )
        )
    whole = (np.array([span[0]], np.int64), np.array([span[1]], np.int64))
    begins, ends = intervals.without(whole, busy)
    # Of the gaps no more than events, so that they do not crowd these out.
    for k in _longest(ends - begins, len(rows), gap_ps).tolist():
        begin, end = int(begins[k]), int(ends[k])
        rows.append(ExcerptRow(-1, 0, "", begin, end, end - begin, 0))
    rows.sort(key=lambda row: row.start_ps)
    return ExcerptLine(line, int(there.size), intervals.total(busy), hidden.get(-1, 0), tuple(rows))


def _owners(nesting: Nesting, there: AnyArray, is_shown: BoolArray) -> AnyArray:
    """The innermost shown event that each event which is not shown lies in, -1 for none."""
    owner = nesting.parent[there[~is_shown[there]]].astype(np.int64)
    # All of these lie in the stretch too: what holds an event overlaps what the event overlaps.
    first = int(there[0])
    step = np.where(is_shown[there[0] : there[-1] + 1], np.arange(first, there[-1] + 1), -1)
    above = nesting.parent[first : int(there[-1]) + 1]
    step = np.where(step >= 0, step, above).astype(np.int64)
    while True:
        inside = owner >= 0
        further = np.where(inside, step[np.where(inside, owner, first) - first], -1)
        if (further == owner).all():
            return owner
        owner = further
        jump = step >= 0
        step = np.where(jump, step[np.where(jump, step, first) - first], -1)
