"""Memory in use over a stretch of time, as layers by group or as buffers one by one.

What is drawn of a pixel is what memory was made of at its highest and its lowest moment, so that no
peak is lost at any width; the moments are those of the curve of memory in use
(`peakline.timing.timeline.counters`). The layers of a pixel add up to the bytes in use at its
moment, to the byte, and so do its polygons: buffers are stacked in the order of their allocation,
and when one is freed, those above it move down. The largest are followed, all others are one sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, Int64Array, IntpArray
from peakline.deadline import check_deadline
from peakline.errors import UsageError
from peakline.memory.over_time.groups import Labels, grouped_buffers
from peakline.memory.over_time.live import LiveBytes, MemoryRecords, live_bytes
from peakline.memory.peak.explained import BEFORE_PROFILE, RESERVED, UNATTRIBUTED
from peakline.tables import Profile
from peakline.tables.joins import summed
from peakline.trace.pixels import wide_pixels


@dataclass(frozen=True, eq=False)
class Samples:
    """Records of an allocator, one per pixel: ``row`` is -1 where none is at or before the pixel.

    Both are ascending. ``used`` is bytes in use after the record, 0 where there is none.
    """

    row: IntpArray
    used: Int64Array

    @property
    def known(self) -> IntpArray:
        """The pixels that have a record; all behind the first one."""
        return np.flatnonzero(self.row >= 0)

    def take(self, places: AnyArray) -> Samples:
        """Those of some pixels."""
        return Samples(self.row[places], self.used[places])


@dataclass(frozen=True, eq=False)
class Sampled:
    """A stretch of time on pixels: at its most, and at its least.

    ``top`` is the record with the most in use in the whole stretch, -1 without any.
    """

    start_ps: int
    end_ps: int
    high: Samples
    low: Samples
    top: int


def sample(records: MemoryRecords, number: int, start_ps: int, end_ps: int, width: int) -> Sampled:
    """The stretch from ``start_ps`` to ``end_ps`` (exclusive) on ``width`` pixels, of an allocator
    by its number. The value that a pixel begins with counts for it too.

    Raises UsageError for an empty stretch.
    """
    if end_ps <= start_ps or width < 1:
        raise UsageError("a stretch of time needs an end after its start, and a pixel")
    series = records.series(number)
    rows, used, time = (
        column[series.first :] for column in (series.rows, series.used, series.time_ps)
    )
    edges, pixel = wide_pixels(start_ps, end_ps, width)
    check_deadline()
    # What holds at the pixel's very begin, if a record comes there it is that one.
    held = np.searchsorted(time, edges[:-1], "right") - 1
    bounds = np.searchsorted(time, edges, "left")
    high = _chosen(rows, used, held, bounds, 1).take(pixel)
    low = _chosen(rows, used, held, bounds, -1).take(pixel)
    known = high.known
    top = int(high.row[known[np.argmax(high.used[known])]]) if known.size else -1
    return Sampled(start_ps, end_ps, high, low, top)


def _chosen(
    rows: IntpArray, used: Int64Array, held: IntpArray, bounds: IntpArray, sign: int
) -> Samples:
    """Per pixel the first place with the most (``sign`` 1) or the least (-1) in use."""
    place = held.copy()
    # A loop over pixels, of which there are few; the extremes in each are found in one go.
    find = np.ndarray.argmax if sign > 0 else np.ndarray.argmin
    edges = bounds.tolist()
    for pixel in np.flatnonzero(np.diff(bounds)).tolist():
        first, end = edges[pixel], edges[pixel + 1]
        best, before = first + int(find(used[first:end])), int(held[pixel])
        stays = 0 <= before < first and sign * used[before] >= sign * used[best]
        place[pixel] = before if stays else best
    known = place >= 0
    if not rows.size:
        return Samples(np.full(place.size, -1, np.intp), np.zeros(place.size, np.int64))
    at = np.maximum(place, 0)
    return Samples(np.where(known, rows[at], -1), np.where(known, used[at], 0))


def held_most(
    time_ps: Int64Array, value: Int64Array, start_ps: int, end_ps: int, width: int
) -> Int64Array:
    """The largest value of each pixel: ``value[n]`` holds from ``time_ps[n]`` (ascending) on; the
    first one holds before, too.
    """
    edges, pixel = wide_pixels(start_ps, end_ps, width)
    held = value[np.maximum(np.searchsorted(time_ps, edges[:-1], "right") - 1, 0)]
    bounds = np.searchsorted(time_ps, edges, "left")
    filled = np.flatnonzero(np.diff(bounds))
    if filled.size:
        own = value[bounds[0] : bounds[-1]]
        most = np.maximum.reduceat(own, bounds[:-1][filled] - bounds[0])
        held[filled] = np.maximum(held[filled], most)
    return held[pixel]


MOST_LAYERS = 12
"""So many groups have a layer of their own."""
ROUNDING = "(rounding)"
"""What is allocated beyond what was requested."""


@dataclass(frozen=True)
class Layer:
    """One layer: ``kind`` is group, rest (all smaller groups together), before, reserved, rounding
    or unattributed; ``top_bytes`` is what it has at the stretch's highest moment.

    ``groups`` is how many groups it stands for; ``number`` the place of its group in the order of
    first allocation, -1 for what is no group.
    """

    kind: str
    key: str
    number: int
    groups: int
    top_bytes: int


@dataclass(frozen=True, eq=False)
class Stacked:
    """The layers from the lowest to the highest, and ``high`` and ``low``: shape (layers, pixels),
    bytes of each layer at the pixel's moment; 0 where ``sampled`` has none.
    """

    sampled: Sampled
    layers: tuple[Layer, ...]
    high: Int64Array
    low: Int64Array


def stacked(
    profile: Profile,
    records: MemoryRecords,
    number: int,
    group: str,
    stretch: tuple[int, int, int],
    *,
    requested: bool = False,
) -> Stacked:
    """An allocator's memory in use by ``group`` over a ``stretch``: start, end (exclusive), pixels.

    The groups with a layer of their own are those with most bytes at the stretch's highest moment,
    in order of their first allocation. With ``requested`` they have the bytes that were requested,
    and a layer the difference. Raises UsageError for an empty stretch.
    """
    result = sample(records, number, *stretch)
    labels = grouped_buffers(profile, number, group)
    buffers = live_bytes(profile, number)
    sizes = buffers.requested if requested else buffers.allocated
    live = buffers.live_at(result.top)
    at_top = summed(labels.codes[live], sizes[live], len(labels.texts))
    own = np.arange(at_top.size) != labels.special
    largest = np.flatnonzero(own & (at_top > 0))
    chosen = np.sort(largest[np.lexsort((largest, -at_top[largest]))][:MOST_LAYERS])
    every = (result.high, result.low, _one(records, number, result.top))
    moments, place = np.unique(np.concatenate([one.row for one in every]), return_inverse=True)
    groups, allocated = _groups(buffers, labels, chosen, moments, requested=requested)
    width = result.high.row.size
    places = np.split(place.reshape(-1), [width, 2 * width])
    parts = [
        _layers(records, number, groups[:, at], allocated[at], samples)
        for samples, at in zip(every, places, strict=True)
    ]
    top = parts[2][:, 0].tolist()
    others = int(np.count_nonzero(own)) - chosen.size
    texts = labels.texts
    described = [
        ("reserved", RESERVED, -1, 0),
        ("before", BEFORE_PROFILE, -1, 0),
        *(("group", texts[one], one, 1) for one in chosen.tolist()),
        ("rest", "", -1, others),
        ("rounding", ROUNDING, -1, 0),
        ("unattributed", UNATTRIBUTED, -1, 0),
    ]
    layers = [Layer(*one, size) for one, size in zip(described, top, strict=True)]
    # A group that is there stays a layer even where it has nothing in view.
    shown = [
        place
        for place, one in enumerate(layers)
        if one.kind == "group" or parts[0][place].any() or parts[1][place].any()
    ]
    return Stacked(result, tuple(layers[k] for k in shown), parts[0][shown], parts[1][shown])


def _one(records: MemoryRecords, number: int, row: int) -> Samples:
    if row < 0:
        return Samples(np.array([-1]), np.zeros(1, np.int64))
    series = records.series(number)
    place = np.searchsorted(series.rows, row)
    return Samples(np.array([row]), series.used[[place]])


def _groups(
    buffers: LiveBytes, labels: Labels, chosen: IntpArray, moments: IntpArray, *, requested: bool
) -> tuple[Int64Array, Int64Array]:
    """Live bytes after each of ``moments``: of what was there before, of the chosen groups and of
    all others, shape (groups, moments); and what of all of them is allocated.
    """
    rest = chosen.size + 1
    number = np.full(len(labels.texts), rest, np.int32)
    number[chosen] = np.arange(1, rest)
    if labels.special >= 0:
        number[labels.special] = 0
    groups = buffers.at(moments, number[labels.codes], rest + 1, requested=requested)
    if not requested:
        return groups, groups.sum(axis=0)
    return groups, buffers.at(moments, np.zeros(buffers.rows.size, np.int8), 1)[0]


def _layers(
    records: MemoryRecords, number: int, groups: Int64Array, live: Int64Array, samples: Samples
) -> Int64Array:
    """Shape (layers, pixels): reserved, before, the chosen groups, rest, rounding, unattributed."""
    rows, known = samples.row, samples.row >= 0
    at = np.maximum(rows, 0)
    events = records.events
    reported = records.usages[number].reported
    reserved = np.where(
        events.is_valid("reserved_bytes")[at], events.array("reserved_bytes")[at], 0
    )
    reserved = np.where(known & reported, reserved, 0)
    there = np.where(known, records.before(number, at), 0)
    unattributed = samples.used - reserved - there - live
    rounding = live - groups.sum(axis=0)
    return np.vstack([reserved, there + groups[0], groups[1:], rounding, unattributed])


@dataclass(frozen=True, eq=False)
class Polygons:
    """``rows`` are the records that begin the buffers, ascending, ``bytes`` their sizes; each is
    live at the moments of the pixels ``first`` to before ``last``.

    Per pixel ``below`` is what lies under all buffers (reserved, and from before the profile),
    ``smaller`` the live bytes of the buffers that are not among ``rows``, and ``unattributed``
    what no buffer explains. ``others`` counts the buffers that are live at the moment of a pixel
    and not among ``rows``; ``unseen`` those that live in the stretch, but at no pixel's moment.
    """

    sampled: Sampled
    rows: IntpArray
    bytes: Int64Array
    first: IntpArray
    last: IntpArray
    below: Int64Array
    smaller: Int64Array
    unattributed: Int64Array
    others: int
    unseen: int


def polygons(
    profile: Profile, records: MemoryRecords, number: int, stretch: tuple[int, int, int], most: int
) -> Polygons:
    """The ``most`` largest buffers of an allocator over a ``stretch``: start, end, pixels.

    Raises UsageError for an empty stretch.
    """
    result = sample(records, number, *stretch)
    moments = result.high.row
    known = moments >= 0
    events, buffers = records.events, live_bytes(profile, number)
    until = np.searchsorted(buffers.rows, int(moments.max(initial=-1)), "right")
    ends = buffers.ends[:until]
    begin = int(moments[known][0]) if known.any() else 0
    place = np.flatnonzero((ends < 0) | (ends > begin))
    rows, ends = buffers.rows[place], ends[place]
    first = np.searchsorted(moments, rows, "left")
    last = np.where(ends < 0, moments.size, np.searchsorted(moments, ends, "left"))
    is_seen = last > first
    inside, unseen = rows[is_seen], int(np.count_nonzero(~is_seen))
    first, last = first[is_seen], last[is_seen]
    sizes = buffers.allocated[place[is_seen]]
    chosen = np.sort(np.lexsort((inside, -sizes))[:most])
    change = np.zeros(moments.size + 1, np.int64)
    np.add.at(change, first[chosen], sizes[chosen])
    np.add.at(change, last[chosen], -sizes[chosen])
    live = buffers.at(moments, np.zeros(buffers.rows.size, np.int8), 1)[0]
    at = np.maximum(moments, 0)
    is_reported = known & records.usages[number].reported
    reserved = np.where(
        is_reported & events.is_valid("reserved_bytes")[at], events.array("reserved_bytes")[at], 0
    )
    below = reserved + np.where(known, records.before(number, at), 0)
    return Polygons(
        sampled=result,
        rows=inside[chosen],
        bytes=sizes[chosen],
        first=first[chosen],
        last=last[chosen],
        below=below,
        smaller=live - np.cumsum(change)[:-1],
        unattributed=result.high.used - below - live,
        others=int(inside.size - chosen.size),
        unseen=unseen,
    )
