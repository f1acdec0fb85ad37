"""Segments that a caching allocator took from its device although enough of it was free: in pieces.

PyTorch's allocator never moves a block and splits segments only within bounds
(c10/cuda/CUDACachingAllocator.cpp): where sizes change from step to step, what is free does not
fit, and the device fills up.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array
from peakline.memory.signatures import History
from peakline.tables.joins import summed

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
    found = np.zeros(places.size, np.int64)
    found[known] = allocated[begun[at[known]]]
    return found


def _settles_never(history: History, rows: Int64Array, op: int) -> bool:
    """Whether an op requests new sizes in the later half of its allocations too."""
    mine = rows[(history.events.names("op").codes[rows] == op) & (history.requested[rows] > 0)]
    if mine.size < REQUESTS:
        return False
    first = np.unique(history.requested[mine], return_index=True)[1]
    later = mine.size - mine.size // 2
    return bool(np.count_nonzero(first >= mine.size // 2) >= NEW_SIZES * max(later, 1))
