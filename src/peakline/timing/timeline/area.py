"""What runs in an area of the timeline, some lines over a stretch of time: by name, and nested."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.deadline import check_deadline
from peakline.kernels.trace_nesting import depths
from peakline.timing.timeline.index import Timeline
from peakline.trace import intervals

_DEEPEST = 64
"""Levels of the flame graph: what lies deeper is hidden."""
_DENSE = 1 << 22
"""So many distinct keys are numbered by a table, not by sorting."""
_BITS = 26
_HALF = (1 << _BITS) - 1


@dataclass(frozen=True)
class NameTime:
    """What the events of one name (its code, -1 for none) come to within the area.

    ``total_ps`` is how long they last, cut at the edges of the stretch, of nested ones each;
    ``self_ps`` is that without what the events directly in them cover. ``longest`` is the place of
    the one with most time in the stretch, of equal ones the first.
    """

    name: int
    count: int
    total_ps: int
    self_ps: int
    longest: int


@dataclass(frozen=True)
class Frame:
    """Events of one name in the same chain of names: ``parent`` is a place in the list, or -1."""

    parent: int
    name: int
    count: int
    total_ps: int
    self_ps: int


@dataclass(frozen=True, eq=False)
class Area:
    """``events`` overlap ``start_ps:end_ps``, or are instants in it.

    ``self_ps`` is the sum of all self times. ``names`` are those with the most self time, of
    ``names_total``. ``frames`` are the nesting, a parent before its children, those with most
    time; ``hidden`` events are in none.
    """

    start_ps: int
    end_ps: int
    events: int
    lines: int
    self_ps: int
    names: tuple[NameTime, ...]
    names_total: int
    frames: tuple[Frame, ...]
    hidden: int


def area_of(
    timeline: Timeline,
    start_ps: int,
    end_ps: int,
    lines: Int64Array | None = None,
    *,
    most_names: int = 1000,
    most_frames: int = 2000,
) -> Area:
    """What ``lines`` (places in the trace; None: all) do from ``start_ps`` to ``end_ps``.

    Takes one pass over the events that begin before the end on these lines.
    """
    trace, nesting = timeline.trace, timeline.nesting
    chosen = range(len(trace.lines)) if lines is None else lines.tolist()
    result = [np.zeros(0, np.int64)]
    for line in chosen:
        check_deadline()
        result.append(_overlapping(timeline, line, start_ps, end_ps))
    events = np.concatenate(result)
    start, end = trace.start[events], trace.end[events]
    total = np.minimum(end, end_ps) - np.maximum(start, start_ps)
    own = nesting.own_ps[events]
    _cut(timeline, events, (start < start_ps) | (end > end_ps), own, start_ps, end_ps)
    code = trace.name.codes[events].astype(np.int64)
    names = _by_name(events, code, total, own)
    frames, hidden = _frames(timeline, events, code, total, own, most_frames)
    return Area(
        start_ps,
        end_ps,
        int(events.size),
        sum(part.size > 0 for part in result),
        int(own.sum()),
        tuple(names[:most_names]),
        len(names),
        frames,
        hidden,
    )


def _overlapping(timeline: Timeline, line: int, start_ps: int, end_ps: int) -> Int64Array:
    """The events of a line that overlap a stretch, or are instants in it, in the trace's order."""
    trace = timeline.trace
    own = trace.lines[line]
    start, end = trace.start[own.events], trace.end[own.events]
    last = int(np.searchsorted(start, end_ps))
    inside = (end[:last] > start_ps) | (start[:last] >= start_ps)
    return own.first + np.flatnonzero(inside)


def _cut(
    timeline: Timeline,
    events: Int64Array,
    is_cut: BoolArray,
    own: Int64Array,
    start_ps: int,
    end_ps: int,
) -> None:
    """Write the self time within the stretch of the events that reach out of it into ``own``."""
    trace = timeline.trace
    places = np.flatnonzero(is_cut)
    if not places.size:
        return
    parent = timeline.nesting.parent[events]
    children = np.flatnonzero(np.isin(parent, events[places]))
    children = children[np.argsort(parent[children], kind="stable")]
    above = parent[children]
    first = np.searchsorted(above, events[places])
    last = np.searchsorted(above, events[places], "right")
    for place, low, high in zip(places.tolist(), first.tolist(), last.tolist(), strict=True):
        inner = events[children[low:high]]
        begin = max(int(trace.start[events[place]]), start_ps)
        stop = min(int(trace.end[events[place]]), end_ps)
        covered = intervals.union(
            np.maximum(trace.start[inner], begin), np.minimum(trace.end[inner], stop)
        )
        own[place] = stop - begin - intervals.total(covered)


def _by_name(
    events: Int64Array, code: Int64Array, total: Int64Array, own: Int64Array
) -> list[NameTime]:
    """Names by self time, the most first."""
    if not events.size:
        return []
    group, size, first = _numbered(code)
    count = np.bincount(group, minlength=size)
    sums = (_sums(group, total, size), _sums(group, own, size))
    most = np.full(size, -1, np.int64)
    np.maximum.at(most, group, total)
    is_most = np.flatnonzero(total == most[group])
    longest = np.zeros(size, np.int64)
    # Backwards: the first of each is written last.
    longest[group[is_most[::-1]]] = events[is_most[::-1]]
    order = np.lexsort((code[first], -sums[0], -sums[1]))
    columns = (code[first], count, *sums, longest)
    return [NameTime(*row) for row in zip(*(one[order].tolist() for one in columns), strict=True)]


def _frames(
    timeline: Timeline,
    events: Int64Array,
    code: Int64Array,
    total: Int64Array,
    own: Int64Array,
    most: int,
) -> tuple[tuple[Frame, ...], int]:
    """The tree of chains of names, level by level, and how many events are in no frame."""
    depth = np.empty(timeline.trace.size, np.int32)
    depths(timeline.nesting.parent, depth)
    level = depth[events]
    order = np.argsort(level, kind="stable")
    bounds = np.searchsorted(level[order], np.arange(_DEEPEST + 1)).tolist()
    above, node = _places_of_parents(timeline, events), np.full(events.size, -1, np.int64)
    names = int(code.max(initial=-1)) + 2
    parts, made = [], 0
    for low, high in pairwise(bounds):
        check_deadline()
        here = order[low:high]
        if not here.size:
            continue
        parent = np.where(above[here] < 0, -1, node[np.maximum(above[here], 0)])
        group, size, first = _numbered((parent + 1) * names + code[here] + 1)
        node[here] = made + group
        made += size
        count = np.bincount(group, minlength=size)
        sums = (_sums(group, total[here], size), _sums(group, own[here], size))
        parts.append((parent[first], code[here][first], count, *sums))
    if not parts:
        return (), 0
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    largest = np.sort(np.lexsort((np.arange(made), -columns[3]))[:most])
    place = {-1: -1}
    frames: list[Frame] = []
    for number, (parent, *facts) in zip(
        largest.tolist(), zip(*(one[largest].tolist() for one in columns), strict=True), strict=True
    ):
        if parent in place:
            place[number] = len(frames)
            frames.append(Frame(place[parent], *facts))
    return tuple(frames), int(events.size) - sum(frame.count for frame in frames)


def _places_of_parents(timeline: Timeline, events: Int64Array) -> Int64Array:
    """Of each event the place among ``events`` (ascending) of the one that it lies in, else -1."""
    parent = timeline.nesting.parent[events].astype(np.int64)
    if not events.size:
        return parent
    at = np.minimum(np.searchsorted(events, parent), events.size - 1)
    return np.where((parent >= 0) & (events[at] == parent), at, -1)


def _numbered(key: Int64Array) -> tuple[Int64Array, int, Int64Array]:
    """Keys as numbers from 0 in ascending order of key, how many there are, and a place of each."""
    least, last = int(key.min()), int(key.max())
    if last - least >= max(_DENSE, 4 * key.size):
        distinct, first, group = np.unique(key, return_index=True, return_inverse=True)
        return group, distinct.size, first
    at = np.full(last - least + 1, -1, np.int64)
    at[key - least] = np.arange(key.size)
    used = np.flatnonzero(at >= 0)
    first = at[used]
    at[used] = np.arange(used.size)
    return at[key - least], used.size, first


def _sums(group: Int64Array, values: Int64Array, size: int) -> Int64Array:
    """Exact sums of whole numbers per group: those of the lower and of the upper half of bits."""
    low = np.bincount(group, values & _HALF, size).astype(np.int64)
    return low + (np.bincount(group, values >> _BITS, size).astype(np.int64) << _BITS)
