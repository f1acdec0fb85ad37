"""The self time of events within windows of time: an event that reaches beyond one counts in each
that it lies in, with what no event inside it covers there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, Int64Array
from peakline.tables import Profile
from peakline.tables.joins import ranges, summed
from peakline.trace.events import nesting_of, trace_of


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
    found = event[which]
    is_whole = (trace.start[found] >= begin[window]) & (trace.end[found] <= end[window])
    ps = np.where(is_whole, nesting.own_ps[found], 0)
    part = np.flatnonzero(~is_whole)
    if part.size:
        own = found[part], window[part]
        ps[part] = _clipped(trace.start[own[0]], trace.end[own[0]], begin[own[1]], end[own[1]])
        ps[part] -= _covered_inside(profile, *own, begin, end)
    return WindowSelfTimes(found, window, ps)


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
    found = np.empty((2, start.size), np.int64)
    found[:, order] = np.stack([begin, np.maximum(stop[order], begin)])
    return found[0], found[1]
