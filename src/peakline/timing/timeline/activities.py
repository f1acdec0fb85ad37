"""What goes on in the items of a tile: of a merged one, the activity that takes most of its time.

Sums over any run of neighbours come from sums of blocks of neighbours, and of the events at both
edges one by one: exact at any width, in time that does not grow with the number of events.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, Int64Array, UInt8Array
from peakline.deadline import check_deadline
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.timing.timeline.index import Timeline, timeline_of
from peakline.timing.timeline.tiles import Tile
from peakline.trace.activity import activity_of

_BLOCK = 16
"""Neighbours whose sums are stored: so many numbers fewer than events."""
_AT_ONCE = _BLOCK << 12
"""Events summed at once: what that takes stays in the processor's cache."""


@dataclass(frozen=True, eq=False)
class Activities:
    """What the events of a timeline do.

    ``of_event`` is an `Activity` per event of the trace. ``present`` are those that some event has,
    ascending; ``before[b, n]`` is how long, in ps, the events of ``present[n]`` take together among
    the first ``b`` blocks of 16 places of ``timeline.order``.
    """

    timeline: Timeline
    of_event: UInt8Array
    present: UInt8Array
    before: Int64Array


@once
def activities_of(profile: Profile) -> Activities:
    """The activities of a profile's events and their sums, made once: about 5 bytes per event.

    Raises InputError when the profile cannot be read.
    """
    return sum_activities(timeline_of(profile), activity_of(profile))


def sum_activities(timeline: Timeline, of_event: UInt8Array) -> Activities:
    """The sums of ``of_event``, an `Activity` per event of the timeline's trace."""
    trace = timeline.trace
    present = np.flatnonzero(np.bincount(of_event, minlength=1)).astype(np.uint8)
    width, blocks = present.size, -(-trace.size // _BLOCK)
    before = np.zeros((blocks + 1, width), np.int64)
    if width > 1:
        column = np.zeros(int(present[-1]) + 1, np.int32)
        column[present] = np.arange(width)
        for first in range(0, trace.size, _AT_ONCE):
            check_deadline()
            event = timeline.order[first : first + _AT_ONCE]
            key = np.arange(event.size, dtype=np.int32) // _BLOCK * np.int32(width)
            key += column[of_event[event]]
            own = -(-event.size // _BLOCK)
            sums = np.bincount(key, trace.end[event] - trace.start[event], own * width)
            block = first // _BLOCK
            before[block + 1 : block + 1 + own] = sums.reshape(own, width)
        np.cumsum(before, axis=0, out=before)
    return Activities(timeline, of_event, present, before)


def activity_of_items(activities: Activities, tile: Tile) -> UInt8Array:
    """An `Activity` per item of a tile: the one that takes most time of the item's events.

    Of equal ones the first in order of `Activity`; where no event of the item takes time, and in a
    drawing row where events overlap, that of the item's longest event.
    """
    result = activities.of_event[tile.event]
    if activities.present.size < 2:
        return result
    merged = np.flatnonzero(tile.count > 1)
    track = np.searchsorted(tile.first[1:], merged, side="right")
    merged = merged[~activities.timeline.overlaps[tile.tracks[track]]]
    if merged.size:
        first = _places(activities.timeline, tile)[merged]
        sums = _sums(activities, first, first + tile.count[merged])
        takes_time = sums.max(axis=1) > 0
        most = activities.present[sums.argmax(axis=1)]
        result[merged[takes_time]] = most[takes_time]
    return result


def _places(timeline: Timeline, tile: Tile) -> Int64Array:
    """Where in ``timeline.order`` the events of each item begin: one item follows another."""
    trace, order = timeline.trace, timeline.order
    low, high = timeline.track_first[tile.tracks], timeline.track_first[tile.tracks + 1]
    while (low < high).any():
        middle = (low + high) >> 1
        event = order[np.minimum(middle, order.size - 1)]
        is_inside = (trace.end[event] > tile.start_ps) | (trace.start[event] >= tile.start_ps)
        is_open = low < high
        high = np.where(is_open & is_inside, middle, high)
        low = np.where(is_open & ~is_inside, middle + 1, low)
    events = np.cumsum(tile.count) - tile.count
    sizes = np.diff(tile.first)
    used = np.flatnonzero(sizes)
    offset = np.zeros(sizes.size, np.int64)
    offset[used] = low[used] - events[tile.first[used]]
    return events + np.repeat(offset, sizes)


def _sums(activities: Activities, first: Int64Array, last: Int64Array) -> Int64Array:
    """How long the events of each of ``present`` take at the places ``first:last``, in ps."""
    begin, end = -(-first // _BLOCK), last // _BLOCK
    has_blocks = begin < end
    begin, end = np.where(has_blocks, begin, 0), np.where(has_blocks, end, 0)
    sums = activities.before[end] - activities.before[begin]
    # What is beside the blocks: up to the first, and from the last on; all where there is none.
    _add(activities, sums, first, np.where(has_blocks, begin * _BLOCK, last))
    _add(activities, sums, np.where(has_blocks, end * _BLOCK, last), last)
    return sums


def _add(activities: Activities, sums: Int64Array, first: Int64Array, last: Int64Array) -> None:
    timeline, counts, width = activities.timeline, last - first, activities.present.size
    item = np.repeat(np.arange(counts.size), counts)
    places = np.arange(item.size) + np.repeat(first - (np.cumsum(counts) - counts), counts)
    event: AnyArray = timeline.order[places]
    column = np.searchsorted(activities.present, activities.of_event[event])
    length = timeline.trace.end[event] - timeline.trace.start[event]
    own = np.bincount(item * width + column, length, counts.size * width)
    sums += own.reshape(sums.shape).astype(np.int64)
