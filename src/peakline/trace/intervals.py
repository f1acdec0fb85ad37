"""Sets of time as sorted, disjoint intervals: their union, what they share, and what they lack.

A set is a pair of int64 arrays, begins and ends in ps, sorted, each end before the next begin;
intervals are half-open. Every function takes and returns sets that way.
"""

from __future__ import annotations

import numpy as np

from peakline.arrays import AnyArray, Int64Array
from peakline.kernels.intervals import subtract

Intervals = tuple[AnyArray, AnyArray]
_NONE: Intervals = (np.zeros(0, np.int64), np.zeros(0, np.int64))


def union(begin: Int64Array, end: Int64Array) -> Intervals:
    """The set that intervals in any order, overlapping or not, cover together; empty ones go."""
    keep = end > begin
    if not keep.all():
        begin, end = begin[keep], end[keep]
    if begin.size == 0:
        return _NONE
    if (begin[1:] < begin[:-1]).any():
        order = np.argsort(begin, kind="stable")
        begin, end = begin[order], end[order]
    reach = np.maximum.accumulate(end)
    opens = np.concatenate([[True], begin[1:] > reach[:-1]])
    first = np.flatnonzero(opens)
    last = np.append(first[1:], begin.size) - 1
    return begin[first], reach[last]


def total(intervals: Intervals) -> int:
    """How long the set is, in ps."""
    return int((intervals[1] - intervals[0]).sum())


def covered(intervals: Intervals, begin: Int64Array, end: Int64Array) -> Int64Array:
    """How much of each window ``begin:end`` (in any order, overlapping or not) the set covers."""
    starts, ends = intervals
    if starts.size == 0:
        return np.zeros(np.shape(begin), np.int64)
    lengths = np.concatenate([[0], np.cumsum(ends - starts)])

    def before(time: Int64Array) -> Int64Array:
        """How much of the set lies before each moment."""
        at = np.searchsorted(starts, time, side="right")
        last = np.maximum(at - 1, 0)
        inside = np.clip(time - starts[last], 0, ends[last] - starts[last])
        return np.where(at > 0, lengths[last] + inside, 0)

    return before(np.maximum(begin, end)) - before(np.asarray(begin))


def intersection(one: Intervals, other: Intervals) -> Intervals:
    """What lies in both sets."""
    return without(one, without(one, other))


def without(one: Intervals, other: Intervals) -> Intervals:
    """What lies in ``one`` and not in ``other``."""
    if one[0].size == 0 or other[0].size == 0:
        return one
    room = one[0].size + other[0].size
    begins, ends = np.empty(room, np.int64), np.empty(room, np.int64)
    count = subtract(*one, *other, begins, ends)
    return begins[:count], ends[:count]


def within(intervals: Intervals, begin: int, end: int) -> Intervals:
    """The part of the set between two moments."""
    starts, ends = intervals
    if end <= begin:
        return _NONE
    first, last = int(np.searchsorted(ends, begin, side="right")), int(np.searchsorted(starts, end))
    return np.maximum(starts[first:last], begin), np.minimum(ends[first:last], end)
