"""What happens to memory from one moment to another: allocated, still live, freed, by group; and
how long buffers live.

Of a range from A to B: the buffers that are allocated in it, which of them are live after B's last
record, and which were freed by then; and the buffers from before A that are freed in it. Lifetimes
are a histogram, weighted by bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array, IntpArray
from peakline.memory.over_time.groups import grouped_buffers, numbered
from peakline.memory.over_time.live import MemoryRecords, begun, live_bytes
from peakline.memory.usage import buffer_bytes, counts_of, was_there
from peakline.tables import Profile
from peakline.tables.joins import summed


@dataclass(frozen=True)
class Amount:
    """So many bytes in so many buffers."""

    bytes: int
    buffers: int


@dataclass(frozen=True, eq=False)
class Between:
    """A range of one allocator, both moments included. ``rows`` are the records in it that begin a
    buffer, ascending; per row: ``bytes``, ``count`` of buffers that it stands for, whether it is
    live ``at_b``, and ``at_end`` of the profile. ``freed_older`` is what was allocated before A
    and freed by B. ``used_a`` and ``used_b`` are bytes in use, None before the first record.
    """

    start_ps: int
    end_ps: int
    rows: IntpArray
    bytes: Int64Array
    count: Int64Array
    at_b: BoolArray
    at_end: BoolArray
    freed_older: Amount
    used_a: int | None
    used_b: int | None

    def amount(self, chosen: BoolArray | None = None) -> Amount:
        """All that was allocated in the range, or what ``chosen`` marks of it."""
        if chosen is None:
            return Amount(int(self.bytes.sum()), int(self.count.sum()))
        return Amount(int(self.bytes[chosen].sum()), int(self.count[chosen].sum()))


@dataclass(frozen=True)
class Part:
    """What a group has of a range: allocated in it, of that still live at B, and at the end."""

    key: str
    allocated: Amount
    live_b: Amount
    live_end: Amount


def between(records: MemoryRecords, number: int, start_ps: int, end_ps: int) -> Between:
    """The range of an allocator, by its number; ``end_ps`` is not before ``start_ps``."""
    events, lifetimes = records.events, records.lifetimes
    time = events.array("time_ps")
    first = int(np.searchsorted(time, start_ps, "left"))
    past = int(np.searchsorted(time, end_ps, "right"))
    every = begun(records, number)
    inside = (every >= first) & (every < past) & ~was_there(events, every)
    rows = every[inside]
    ends = lifetimes.end[rows].astype(np.int64)
    own = records.rows(number)
    ended = own[np.searchsorted(own, first) : np.searchsorted(own, past)]
    begins = lifetimes.begin[ended]
    begins = begins[begins >= 0]
    # Those from before the profile have a record in it, which is none of the range's.
    older = begins[(begins < first) | was_there(events, begins)]
    at_a = records.at(number, start_ps)
    at_b = records.at(number, end_ps)
    return Between(
        start_ps=start_ps,
        end_ps=end_ps,
        rows=rows,
        bytes=buffer_bytes(events, rows),
        count=counts_of(events, rows),
        at_b=(ends < 0) | (ends >= past),
        at_end=ends < 0,
        freed_older=Amount(
            int(buffer_bytes(events, older).sum()), int(counts_of(events, older).sum())
        ),
        used_a=None if at_a is None else at_a.bytes_in_use,
        used_b=None if at_b is None else at_b.bytes_in_use,
    )


def parts_of(profile: Profile, number: int, result: Between, group: str) -> list[Part]:
    """The range by ``group``: what is still live at B first, then what was allocated."""
    labels = grouped_buffers(profile, number, group)
    codes = labels.codes[np.searchsorted(live_bytes(profile, number).rows, result.rows)]
    ids, place = np.unique(codes, return_inverse=True)

    def amounts(chosen: BoolArray | None) -> list[Amount]:
        where = slice(None) if chosen is None else np.flatnonzero(chosen)
        sizes = summed(place[where], result.bytes[where], ids.size)
        counts = summed(place[where], result.count[where], ids.size)
        return [Amount(*pair) for pair in zip(sizes.tolist(), counts.tolist(), strict=True)]

    columns = (amounts(None), amounts(result.at_b), amounts(result.at_end))
    parts = [
        Part(labels.texts[one], *each) for one, *each in zip(ids.tolist(), *columns, strict=True)
    ]
    return sorted(parts, key=lambda one: (-one.live_b.bytes, -one.allocated.bytes, one.key))


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
    rows = rows[(time[rows] >= start_ps) & (time[rows] < end_ps) & ~was_there(events, rows)]
    if not rows.size:
        return ()
    ends = records.lifetimes.end[rows]
    lived = np.where(ends >= 0, time[ends] - time[rows], 0)
    code = np.searchsorted(_EDGES, lived, "right") - 1
    code = np.where(ends >= 0, code, _EDGES.size)
    sizes, counts = buffer_bytes(events, rows), counts_of(events, rows)
    op, ops = numbered(events.names("op").take(rows))
    totals = summed(code, sizes, _EDGES.size + 1)
    buffers = summed(code, counts, _EDGES.size + 1)
    largest = _largest(code, op, sizes, len(ops))
    seen = np.flatnonzero(buffers[:-1])
    span = range(int(seen[0]), int(seen[-1]) + 1) if seen.size else range(0)
    edges = [*_EDGES.tolist(), None]
    result = []
    for place in (*span, *([_EDGES.size] if buffers[-1] else [])):
        is_freed = place < _EDGES.size
        name, most = largest.get(place, (-1, 0))
        result.append(
            Lifespan(
                from_ps=edges[place] if is_freed else None,
                to_ps=edges[place + 1] if is_freed else None,
                bytes=int(totals[place]),
                buffers=int(buffers[place]),
                largest_op=ops[name] if name >= 0 else "",
                largest_op_bytes=most,
            )
        )
    return tuple(result)


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
    result: dict[int, tuple[int, int]] = {}
    for key, total in zip(keys[order].tolist(), totals[order].tolist(), strict=True):
        result.setdefault(key // ops, (key % ops, total))
    return result
