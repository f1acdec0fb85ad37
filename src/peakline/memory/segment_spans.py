"""When a caching allocator had which part of the address space from its device.

Segments come and go with the ``segment_*`` records of the device's trace; what the file lists as
segments at its end and no record takes was there before. Expandable segments are mapped and
unmapped in pieces of any size, so the address space is cut at every bound that occurs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array, IntpArray
from peakline.memory.reserved import CHANGES
from peakline.tables import Profile
from peakline.tables.once import once

_HIGHEST = 1 << 62
_MOST_PAIRS = 1 << 22
"""Pieces times records about them; what is more is nothing that an allocator does."""


@dataclass(frozen=True, eq=False)
class SegmentSpans:
    """Stretches of addresses with the time in which they are reserved, in order of address.

    ``start`` and ``end`` are rows of ``allocator_events``, -1 for before its first record and for
    not within it. ``records`` is how many records of segments the allocator has.
    """

    address: Int64Array
    bytes: Int64Array
    start: IntpArray
    end: IntpArray
    records: int


@once
def segment_spans(profile: Profile, allocator: str) -> SegmentSpans | None:
    """The segments of an allocator over time; None where the file has none, or too many pieces."""
    if "segments" not in profile.tables or "allocator_events" not in profile.tables:
        return None
    table, events = profile.columns("segments"), profile.columns("allocator_events")
    mine = table.names("allocator").per_row(allocator.__eq__, np.bool_)
    mine = mine & (table.array("address") < _HIGHEST) & (table.array("total_bytes") > 0)
    listed = table.array("address")[mine].astype(np.int64), table.array("total_bytes")[mine]
    own = events.names("allocator").per_row(allocator.__eq__, np.bool_)
    sign = events.names("region_type").per_row(lambda text: CHANGES.get(text, 0), np.int64)
    address, size = events.array("address"), events.array("allocated_bytes")
    size_is_known = (size > 0) & (size < _HIGHEST) & (address < _HIGHEST)
    rows = np.flatnonzero(own & (sign != 0) & size_is_known)
    if not rows.size and not listed[0].size:
        return None
    begin = address[rows].astype(np.int64)
    return _spans((begin, begin + size[rows]), rows, sign[rows] > 0, listed)


def _spans(
    changed: tuple[Int64Array, Int64Array],
    rows: IntpArray,
    takes: BoolArray,
    listed: tuple[Int64Array, Int64Array],
) -> SegmentSpans | None:
    """``changed``: first address and the one behind the last of each of ``rows``; ``takes``:
    whether it takes memory or gives it back; ``listed``: address and bytes at the end.
    """
    there = listed[0], listed[0] + listed[1]
    bounds = np.unique(np.concatenate([*changed, *there]))
    first, last = (np.searchsorted(bounds, side) for side in changed)
    many = last - first
    if int(many.sum()) > _MOST_PAIRS:
        return None
    # Every piece of every record; ordered by piece, and within a piece as they happened.
    record = np.repeat(np.arange(rows.size), many)
    piece = np.arange(record.size) - np.repeat(np.cumsum(many) - many, many) + first[record]
    order = np.argsort(piece, kind="stable")
    piece, record = piece[order], record[order]
    is_taken = takes[record]
    is_new = np.ones(piece.size, np.bool_)
    is_new[1:] = piece[1:] != piece[:-1]
    # What is taken twice, or returned twice, is so once.
    repeats = np.zeros(piece.size, np.bool_)
    repeats[1:] = ~is_new[1:] & (is_taken[1:] == is_taken[:-1])
    once_each = np.flatnonzero(~repeats)
    piece, record = piece[once_each], record[once_each]
    is_taken, is_new = is_taken[once_each], is_new[once_each]
    starts = np.flatnonzero(is_taken)
    follows = np.zeros(piece.size, np.bool_)
    follows[:-1] = ~is_new[1:]
    row = rows[record]
    ends = np.where(follows[starts], row[np.minimum(starts + 1, max(piece.size - 1, 0))], -1)
    older = np.flatnonzero(is_new & ~is_taken)
    depth = np.zeros(bounds.size + 1, np.int64)
    np.add.at(depth, np.searchsorted(bounds, there[0]), 1)
    np.add.at(depth, np.searchsorted(bounds, there[1]), -1)
    whole = np.flatnonzero(np.cumsum(depth)[: bounds.size] > 0)
    whole = whole[~np.isin(whole, piece)]
    return _joined(
        bounds,
        np.concatenate([piece[starts], piece[older], whole]),
        np.concatenate([row[starts], np.full(older.size + whole.size, -1, np.intp)]),
        np.concatenate([ends, row[older], np.full(whole.size, -1, np.intp)]),
        rows.size,
        there[0],
    )


def _joined(
    bounds: Int64Array,
    piece: IntpArray,
    start: IntpArray,
    end: IntpArray,
    records: int,
    begins: Int64Array,
) -> SegmentSpans:
    """Pieces that lie one behind the other and come and go together are one, but where the file
    says that a segment begins (addresses ``begins``).
    """
    order = np.lexsort((piece, end, start))
    piece, start, end = piece[order], start[order], end[order]
    cut = np.ones(piece.size, np.bool_)
    cut[1:] = (np.diff(piece) != 1) | (np.diff(start) != 0) | (np.diff(end) != 0)
    cut |= np.isin(bounds[piece], begins)
    first = np.flatnonzero(cut)
    last = np.append(first[1:], piece.size)[: first.size] - 1
    address, behind = bounds[piece[first]], bounds[piece[last] + 1]
    by_address = np.lexsort((start[first], address))
    return SegmentSpans(
        address[by_address],
        (behind - address)[by_address],
        start[first][by_address],
        end[first][by_address],
        records,
    )
