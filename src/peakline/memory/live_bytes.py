"""Bytes of an allocator's live buffers after any of its records, in groups.

Each buffer is live from the record that begins it to the one that ends it. For some moments that is
a difference at two of them per buffer, so that an answer takes one pass over the buffers that live
in the stretch, whatever the number of groups, and nothing is sorted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, Int64Array, IntpArray
from peakline.kernels.memory_layout import ALLOCATION
from peakline.memory.live import MemoryRecords, memory_records
from peakline.memory.usage import buffer_bytes
from peakline.tables import Profile
from peakline.tables.once import once


@dataclass(frozen=True, eq=False)
class LiveBytes:
    """The buffers of one allocator: ``rows`` are the records that begin them, ascending, ``ends``
    those that end them, -1 where none does; both are rows of `peakline.memory.live`.

    ``requested`` is ``allocated`` itself where no record says what was requested.
    """

    rows: IntpArray
    ends: AnyArray
    allocated: Int64Array
    requested: Int64Array

    def live_at(self, row: int) -> IntpArray:
        """The places of the buffers that are live after record ``row``, ascending."""
        until = int(np.searchsorted(self.rows, row, "right"))
        ends = self.ends[:until]
        # As unsigned numbers those without an end are the largest.
        return np.flatnonzero(ends.view(_unsigned(ends)) > max(row, 0))

    def at(
        self, moments: IntpArray, group: AnyArray, groups: int, *, requested: bool = False
    ) -> Int64Array:
        """Shape (groups, moments): live bytes of each group after each of the records ``moments``,
        which ascend; 0 after record -1. ``group`` is that of each buffer.
        """
        if not moments.size:
            return np.zeros((groups, 0), np.int64)
        sizes = self.requested if requested else self.allocated
        begin, end = max(int(moments[0]), 0), int(moments[-1])
        until = int(np.searchsorted(self.rows, end, "right"))
        there = int(np.searchsorted(self.rows, begin, "right"))
        # Of the buffers from before the stretch only those that live in it.
        before = self.live_at(begin) if there else np.zeros(0, np.intp)
        change = np.zeros((groups, moments.size + 1), np.int64)
        # By record from the first moment on, the first moment that comes with or after it.
        span = np.diff(moments, prepend=begin - 1)
        place = np.repeat(np.arange(moments.size, dtype=np.int32), span)
        first_known = int(np.searchsorted(moments, 0))
        for chosen, first in (
            (before, np.full(before.size, first_known, np.int32)),
            (slice(there, until), place[self.rows[there:until] - begin]),
        ):
            own, ends = group[chosen], self.ends[chosen]
            at = own.astype(np.int64) * (moments.size + 1)
            np.add.at(change.reshape(-1), at + first, sizes[chosen])
            is_ended = (ends >= 0) & (ends <= end)
            ended = at[is_ended] + place[ends[is_ended] - begin]
            np.subtract.at(change.reshape(-1), ended, sizes[chosen][is_ended])
        return np.cumsum(change[:, :-1], axis=1)


def _unsigned(ends: AnyArray) -> type:
    return np.uint32 if ends.dtype == np.int32 else np.uint64


def begun(records: MemoryRecords, number: int) -> IntpArray:
    """The records of an allocator that begin a buffer whose end can be seen, ascending."""
    rows = records.rows(number)
    if rows.size == records.events.rows:
        return np.flatnonzero(records.lifetimes.kind == ALLOCATION)
    found: IntpArray = rows[records.lifetimes.kind[rows] == ALLOCATION]
    return found


def requested_bytes(records: MemoryRecords, rows: AnyArray) -> Int64Array:
    """What was requested for buffers: never more than was allocated, which it is where unknown."""
    allocated = buffer_bytes(records.events, rows)
    known = records.events.is_valid("requested_bytes")[rows]
    stated = np.where(known, records.events.array("requested_bytes")[rows], 0)
    is_stated = (stated > 0) & (stated <= allocated)
    found: Int64Array = np.where(is_stated, stated, allocated).astype(np.int64)
    return found


@once
def live_bytes(profile: Profile, number: int) -> LiveBytes:
    """The buffers of an allocator of `memory_records`, by its number; made once.

    Raises ValueError for a profile without records.
    """
    records = memory_records(profile)
    if records is None:
        raise ValueError("a profile without records of memory has no buffers")
    rows = begun(records, number)
    allocated = buffer_bytes(records.events, rows)
    requested = allocated
    if records.events.is_valid("requested_bytes")[rows].any():
        requested = requested_bytes(records, rows)
    return LiveBytes(rows, records.lifetimes.end[rows], allocated, requested)
