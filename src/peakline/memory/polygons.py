"""Buffers one by one over a stretch of time, for a picture with a polygon for each.

They are stacked in the order of their allocation: when one is freed, those above it move down. A
pixel shows its highest moment. The largest buffers are followed, all others are one sum, so that
the heights of a pixel add up to the bytes in use at its moment.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array, IntpArray
from peakline.memory.live import MemoryRecords
from peakline.memory.live_bytes import live_bytes
from peakline.memory.sampled import Sampled, sample
from peakline.tables import Profile


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
    profile: Profile,
    records: MemoryRecords,
    number: int,
    stretch: tuple[int, int, int],
    most: int,
) -> Polygons:
    """The ``most`` largest buffers of an allocator over a ``stretch``: start, end, pixels.

    Raises UsageError for an empty stretch.
    """
    found = sample(records, number, *stretch)
    moments = found.high.row
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
        sampled=found,
        rows=inside[chosen],
        bytes=sizes[chosen],
        first=first[chosen],
        last=last[chosen],
        below=below,
        smaller=live - np.cumsum(change)[:-1],
        unattributed=found.high.used - below - live,
        others=int(inside.size - chosen.size),
        unseen=unseen,
    )
