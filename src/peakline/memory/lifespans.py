"""How long buffers live, weighted by their bytes: a histogram of lifetimes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array
from peakline.memory.between import counts_of
from peakline.memory.grouped import numbered
from peakline.memory.live import MemoryRecords
from peakline.memory.live_bytes import begun
from peakline.memory.usage import buffer_bytes
from peakline.tables.joins import summed

_EDGES = np.array([0, *(n * 10**k for k in range(6, 18) for n in (1, 3))], np.int64)
"""Half a decade each, from a microsecond on; what lives shorter is one bin."""

_DENSE = 1 << 24
"""So many sums are made as they are."""


@dataclass(frozen=True)
class Lifespan:
    """Buffers that live from ``from_ps`` to less than ``to_ps``; both None: not freed within the
    profile. ``largest_op`` has most of the ``bytes``.
    """

    from_ps: int | None
    to_ps: int | None
    bytes: int
    buffers: int
    largest_op: str
    largest_op_bytes: int


def lifespans(
    records: MemoryRecords, number: int, start_ps: int, end_ps: int
) -> tuple[Lifespan, ...]:
    """The lifetimes of the buffers of an allocator that are allocated between ``start_ps`` and
    ``end_ps`` (exclusive): bins from the shortest lifetime to the longest, then what is not freed.
    """
    events = records.events
    time = events.array("time_ps")
    rows = begun(records, number)
    was_there = (events.array("is_before") & events.is_valid("is_before"))[rows]
    rows = rows[(time[rows] >= start_ps) & (time[rows] < end_ps) & ~was_there]
    if not rows.size:
        return ()
    ends = records.lifetimes.end[rows]
    lived = np.where(ends >= 0, time[ends] - time[rows], 0)
    code = np.searchsorted(_EDGES, lived, "right") - 1
    code = np.where(ends >= 0, code, _EDGES.size)
    sizes, counts = buffer_bytes(events, rows), counts_of(records, rows)
    op, ops = numbered(events.names("op").take(rows))
    totals = summed(code, sizes, _EDGES.size + 1)
    buffers = summed(code, counts, _EDGES.size + 1)
    largest = _largest(code, op, sizes, len(ops))
    seen = np.flatnonzero(buffers[:-1])
    span = range(int(seen[0]), int(seen[-1]) + 1) if seen.size else range(0)
    edges = [*_EDGES.tolist(), None]
    found = []
    for place in (*span, *([_EDGES.size] if buffers[-1] else [])):
        is_freed = place < _EDGES.size
        name, most = largest.get(place, (-1, 0))
        found.append(
            Lifespan(
                from_ps=edges[place] if is_freed else None,
                to_ps=edges[place + 1] if is_freed else None,
                bytes=int(totals[place]),
                buffers=int(buffers[place]),
                largest_op=ops[name] if name >= 0 else "",
                largest_op_bytes=most,
            )
        )
    return tuple(found)


def _largest(
    code: Int64Array, op: Int64Array, sizes: Int64Array, ops: int
) -> dict[int, tuple[int, int]]:
    """Per bin the op with most bytes, and these; of equals the first."""
    keys = code * np.int64(ops) + op
    bins = _EDGES.size + 1
    if bins * ops <= _DENSE:
        totals = summed(keys, sizes, bins * ops)
        keys = np.flatnonzero(totals)
        totals = totals[keys]
    else:
        keys, place = np.unique(keys, return_inverse=True)
        totals = summed(place, sizes, keys.size)
    order = np.lexsort((keys, -totals))
    found: dict[int, tuple[int, int]] = {}
    for key, total in zip(keys[order].tolist(), totals[order].tolist(), strict=True):
        found.setdefault(key // ops, (key % ops, total))
    return found
