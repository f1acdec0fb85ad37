"""Memory in use as layers: what it is made of, by group, at the highest and lowest moments.

The layers of a pixel add up to the bytes in use at its moment, to the byte.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array, IntpArray
from peakline.memory.grouped import Labels, grouped_buffers
from peakline.memory.live import MemoryRecords
from peakline.memory.live_bytes import LiveBytes, live_bytes
from peakline.memory.peak import BEFORE_PROFILE, RESERVED, UNATTRIBUTED
from peakline.memory.sampled import Sampled, Samples, sample
from peakline.tables import Profile
from peakline.tables.joins import summed

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
    found = sample(records, number, *stretch)
    labels = grouped_buffers(profile, number, group)
    buffers = live_bytes(profile, number)
    sizes = buffers.requested if requested else buffers.allocated
    live = buffers.live_at(found.top)
    at_top = summed(labels.codes[live], sizes[live], len(labels.texts))
    own = np.arange(at_top.size) != labels.special
    largest = np.flatnonzero(own & (at_top > 0))
    chosen = np.sort(largest[np.lexsort((largest, -at_top[largest]))][:MOST_LAYERS])
    every = (found.high, found.low, _one(records, number, found.top))
    moments, place = np.unique(np.concatenate([one.row for one in every]), return_inverse=True)
    groups, allocated = _groups(buffers, labels, chosen, moments, requested=requested)
    width = found.high.row.size
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
    return Stacked(found, tuple(layers[k] for k in shown), parts[0][shown], parts[1][shown])


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
