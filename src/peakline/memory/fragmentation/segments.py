"""Segments that a caching allocator took from its device: when it had which, those that it took
although enough of it was free, and how much of them was allocated.

PyTorch's allocator never moves a block and splits segments only within bounds
(c10/cuda/CUDACachingAllocator.cpp): where sizes change from step to step, what is free does not
fit, and the device fills up.

Segments come and go with the ``segment_*`` records of the device's trace; what the file lists as
segments at its end and no record takes was there before. Expandable segments are mapped and
unmapped in pieces of any size, so the address space is cut at every bound that occurs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array, IntpArray
from peakline.memory.peak.explained import AllocatorPeak
from peakline.memory.signatures import History
from peakline.tables import Profile
from peakline.tables.columns import Names
from peakline.tables.joins import summed
from peakline.tables.once import once

_TAKES = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
RESERVED = 1.5
"""More than is explained by rounding was taken when it is so many times the most in use, ..."""
FORCED = 0.3
"""... and this share of it was taken while enough was free."""
LEAST = 64 << 20
"""... and so many bytes of it: small pools are rounded up to whole segments; ..."""
LEAST_GROWING = 22 << 20
"""... or so many, where sizes never settle: of each of the two pools one segment may be almost
empty, which has 2 MiB (kSmallBuffer) or 20 MiB (kLargeBuffer)."""
NEW_SIZES = 0.1
"""Sizes never settle where this share of the later requests of an op are of a size that it had not
requested before: a tensor that grows by each token, ..."""
REQUESTS = 12
"""... of so many requests or more: state that is made once for each weight has many sizes too."""


@dataclass(frozen=True, eq=False)
class SegmentsTaken:
    """``reserved_bytes`` is the most that was taken, ``used_bytes`` the most in use; ``forced`` of
    ``segments``, with ``forced_bytes``, were taken while enough was free. ``rows`` are the records
    of those, ``ops`` who requested memory then, most bytes first, with their bytes and how often.
    """

    reserved_bytes: int
    used_bytes: int
    segments: int
    forced: int
    forced_bytes: int
    rows: Int64Array
    ops: tuple[tuple[str, int, int], ...]


def segments_taken(history: History, allocator: int) -> SegmentsTaken | None:
    """What was taken in vain, None where it is too little to matter or is not recorded."""
    rows = history.rows_of(allocator)
    actions = history.events.names("region_type")
    sign = np.array([*(_TAKES.get(text, 0) for text in actions.values), 0], np.int64)
    change = sign[actions.codes[rows]]
    if not (change > 0).any():
        return None
    size = history.events.array("allocated_bytes")[rows]
    reserved = np.cumsum(change * size)
    used = history.used[rows]
    took = np.flatnonzero(change > 0)
    request = _following(history.allocated[rows], took)
    free = reserved[took] - size[took] - used[took]
    forced = took[(free >= request) & (request > 0)]
    most, in_use = int(reserved.max()), int(used.max())
    wasted = int(size[forced].sum())
    idle = most - in_use
    if most < RESERVED * in_use or wasted < FORCED * most or idle < LEAST_GROWING:
        return None
    ops = history.events.names("op")
    codes, place = np.unique(ops.codes[rows[forced]], return_inverse=True)
    totals, counts = summed(place, size[forced], codes.size), np.bincount(place)
    order = np.argsort(-totals, kind="stable").tolist()
    if idle < LEAST and not _settles_never(history, rows, int(codes[order[0]])):
        return None
    return SegmentsTaken(
        most, in_use, took.size, forced.size, wasted, rows[forced],
        tuple(
            (ops.values[codes[k]] if codes[k] >= 0 else "", int(totals[k]), int(counts[k]))
            for k in order
        ),
    )  # fmt: skip


def _following(allocated: Int64Array, places: Int64Array) -> Int64Array:
    """The bytes of the first allocation after each of some records."""
    begun = np.flatnonzero(allocated > 0)
    at = np.searchsorted(begun, places)
    known = at < begun.size
    result = np.zeros(places.size, np.int64)
    result[known] = allocated[begun[at[known]]]
    return result


def _settles_never(history: History, rows: Int64Array, op: int) -> bool:
    """Whether an op requests new sizes in the later half of its allocations too."""
    mine = rows[(history.events.names("op").codes[rows] == op) & (history.requested[rows] > 0)]
    if mine.size < REQUESTS:
        return False
    first = np.unique(history.requested[mine], return_index=True)[1]
    later = mine.size - mine.size // 2
    return bool(np.count_nonzero(first >= mine.size // 2) >= NEW_SIZES * max(later, 1))


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


CHANGES = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
"""What takes memory from the device, and what gives it back."""


@dataclass(frozen=True)
class Reserved:
    """What one allocator has of its device at the time of the snapshot, in bytes.

    The names are PyTorch's (``torch.cuda.memory_stats``): ``reserved_bytes`` were taken from the
    device, which is what ``nvidia-smi`` shows, with the CUDA context besides
    (https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management). ``allocated_bytes``
    of them are allocated, ``awaiting_free_bytes`` are given back but still used by another
    stream; ``requested_bytes`` is what the program requested of these two. ``free_bytes`` are the
    rest. ``at_peak_bytes`` were reserved at the peak of what was allocated.
    """

    reserved_bytes: int
    allocated_bytes: int
    awaiting_free_bytes: int
    requested_bytes: int
    free_bytes: int
    at_peak_bytes: int


def reserved_of(profile: Profile, peak: AllocatorPeak) -> Reserved | None:
    """What the allocator of ``peak`` has reserved; None where the file has no segments of it."""
    if "segments" not in profile.tables:
        return None
    segments = profile.columns("segments")
    mine = _rows_of(segments.names("allocator"), peak.allocator)
    if not mine.any():
        return None
    total, allocated, active, requested = (
        int(segments.array(name)[mine].sum())
        for name in ("total_bytes", "allocated_bytes", "active_bytes", "requested_bytes")
    )
    events = profile.columns("allocator_events")
    since = _rows_of(events.names("allocator"), peak.allocator)
    since &= events.array("time_ps") > peak.peak_time_ps
    at_peak = total
    for action, sign in CHANGES.items():
        rows = since & _rows_of(events.names("region_type"), action)
        at_peak -= sign * int(events.array("allocated_bytes")[rows].sum())
    return Reserved(
        reserved_bytes=total,
        allocated_bytes=allocated,
        awaiting_free_bytes=max(active - allocated, 0),
        requested_bytes=requested,
        free_bytes=max(total - active, 0),
        at_peak_bytes=max(at_peak, 0),
    )


def _rows_of(names: Names, wanted: str) -> BoolArray:
    return names.per_row(wanted.__eq__, np.bool_)


def reserved_over_time(profile: Profile, allocator: str) -> tuple[Int64Array, Int64Array] | None:
    """When what a caching allocator has of its device changed, and to how many bytes; the first
    entry is what it had before the first change. None where the file has no segments of it.
    """
    if "segments" not in profile.tables or "allocator_events" not in profile.tables:
        return None
    segments = profile.columns("segments")
    mine = _rows_of(segments.names("allocator"), allocator)
    events = profile.columns("allocator_events")
    own = _rows_of(events.names("allocator"), allocator)
    sign = events.names("region_type").per_row(lambda text: CHANGES.get(text, 0), np.int64)
    rows = np.flatnonzero(own & (sign != 0))
    if not mine.any() and not rows.size:
        return None
    change = sign[rows] * events.array("allocated_bytes")[rows]
    total = int(segments.array("total_bytes")[mine].sum())
    # Sizes that are no sizes may add up to more than there are numbers.
    before = max(-_HIGHEST, min(total - int(change.sum()), _HIGHEST))
    after = before + np.cumsum(change)
    time = events.array("time_ps")[rows]
    first = int(events.array("time_ps").min()) if events.rows else 0
    return np.concatenate([[first], time]), np.concatenate([[before], after])
