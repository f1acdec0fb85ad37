"""What is live in memory at any moment, buffer by buffer, in groups, and op by op.

The records are matched and measured once per profile (`memory_records`); a moment is then a matter
of milliseconds. It is explained as the peak is (`peakline.memory.peak.explained`): live buffers and
up to three remainders add up to the bytes in use exactly.

Each buffer is live from the record that begins it to the one that ends it. For some moments that is
a difference at two of them per buffer, so that an answer takes one pass over the buffers that live
in the stretch, whatever the number of groups, and nothing is sorted (`LiveBytes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from peakline.arrays import AnyArray, Int64Array, IntpArray
from peakline.deadline import check_deadline
from peakline.errors import NotFoundError
from peakline.kernels.memory_layout import ALLOCATION, DEALLOCATION, OTHER
from peakline.memory.crossings import live_sums
from peakline.memory.lifetimes import Lifetimes, match_lifetimes
from peakline.memory.peak.explained import BEFORE_PROFILE, RESERVED, UNATTRIBUTED
from peakline.memory.signatures import split_by
from peakline.memory.usage import (
    Usage,
    buffer_bytes,
    capacity_at,
    fragmentation_at,
    measure,
    number_at,
    reported_bytes,
    was_there,
    without_implausible,
)
from peakline.suggest import there_is
from peakline.tables import Profile
from peakline.tables.columns import Columns
from peakline.tables.joins import summed
from peakline.tables.once import once


@dataclass(frozen=True, eq=False)
class Series:
    """Memory in use of one allocator: ``used[n]`` bytes after record ``rows[n]``, at
    ``time_ps[n]``, in time order. They may be columns of the table itself.

    Only records that say how much is in use are here. ``used`` has the reserved bytes in it.
    ``first`` is the first place that is drawn: buffers from before the profile are all of one
    moment, and only their sum was in use.
    """

    rows: IntpArray
    used: Int64Array
    time_ps: Int64Array
    first: int


@dataclass(frozen=True, eq=False)
class MemoryMoment:
    """One allocator after one of its records. Times are picoseconds, sizes bytes.

    ``buffers`` are the records that began the live buffers, ascending. ``remainders`` is what no
    buffer explains, by its name (`peakline.memory.peak.explained`); none of them is 0. The bytes of
    both add up to ``bytes_in_use``.
    """

    row: int
    time_ps: int
    bytes_in_use: int
    step_id: int | None
    fragmentation: float | None
    buffers: IntpArray
    buffer_bytes: Int64Array
    remainders: dict[str, int]


@dataclass(frozen=True, eq=False)
class MemoryRecords:
    """``allocator_events`` in time order, with what every question about a moment shares.

    ``implausible`` is how many records had a size that no memory can have, which is taken as
    unknown.
    """

    events: Columns
    lifetimes: Lifetimes
    implausible: int

    @property
    def allocators(self) -> tuple[str, ...]:
        """Their names, sorted; a missing one is empty."""
        return self.lifetimes.allocators

    @cached_property
    def usages(self) -> list[Usage]:
        """What one pass finds for every allocator: its peak, what was there before."""
        return measure(self.events, self.lifetimes)

    @cached_property
    def _rows(self) -> list[IntpArray]:
        return split_by(self.lifetimes.allocator, len(self.allocators))

    @cached_property
    def _series(self) -> list[Series]:
        return [self._measured(rows) for rows in self._rows]

    def number_of(self, allocator: str | None) -> int | None:
        """The number of an allocator; of None that of the one with the largest peak, None where
        none has a peak. Raises NotFoundError for a name that the profile does not have.
        """
        if allocator is not None:
            if allocator not in self.allocators:
                known = there_is(allocator, self.allocators)
                raise NotFoundError(f"no allocator {allocator!r} in the profile{known}")
            return self.allocators.index(allocator)
        known_peaks = [n for n, usage in enumerate(self.usages) if usage.peak_row >= 0]
        return max(known_peaks, key=lambda n: (self.usages[n].peak, -n), default=None)

    def rows(self, number: int) -> IntpArray:
        """The records of an allocator, by its number in ``allocators``, ascending."""
        return self._rows[number]

    def series(self, number: int) -> Series:
        """Memory in use of an allocator, by its number in ``allocators``."""
        return self._series[number]

    def _measured(self, rows: IntpArray) -> Series:
        """What the allocator reports, else the running sum of its live buffers."""
        check_deadline()
        events = self.events
        # Of one allocator alone, columns of the table are taken as they are.
        own: AnyArray | slice = slice(None) if rows.size == events.rows else rows
        reports = events.is_valid("in_use_bytes")[own]
        if reports.any():
            own = own if reports.all() else rows[reports]
            rows, used = (rows if reports.all() else rows[reports]), reported_bytes(events, own)
        else:
            change = np.where(self.lifetimes.kind[own] == ALLOCATION, buffer_bytes(events, own), 0)
            ended = np.flatnonzero(self.lifetimes.begin[own] >= 0)
            change[ended] -= buffer_bytes(events, self.lifetimes.begin[own][ended])
            used = np.cumsum(change)
        older = was_there(events, own)
        # The first record that is none of them, found without a list of all.
        recorded = int(older.argmin()) if rows.size else 0
        past = rows.size if not rows.size or older[recorded] else recorded
        return Series(rows, used, events.array("time_ps")[own], max(past - 1, 0))

    def at(self, number: int, time_ps: int) -> MemoryMoment | None:
        """An allocator after its last record at or before ``time_ps``; None before the first.

        The answer is that of `peakline.memory.peak.moments.memory_at`.
        """
        until = np.searchsorted(self.events.array("time_ps"), time_ps, "right")
        place = int(np.searchsorted(self.series(number).rows, until, "left")) - 1
        return None if place < 0 else self._moment(number, place)

    def at_peak(self, number: int) -> MemoryMoment | None:
        """An allocator at its peak; None for one that never says how much is in use.

        The record of the peak need not be the last one of its time.
        """
        row = self.usages[number].peak_row
        if row < 0:
            return None
        return self._moment(number, int(np.searchsorted(self.series(number).rows, row)))

    def _moment(self, number: int, place: int) -> MemoryMoment:
        series, usage = self.series(number), self.usages[number]
        row, used = int(series.rows[place]), int(series.used[place])
        moments = np.full(len(self.allocators), -1, np.int64)
        moments[number] = row
        buffers = self.lifetimes.live_after(moments)
        sizes = buffer_bytes(self.events, buffers)
        remainders: dict[str, int] = {}
        if usage.reported:
            reserved = self.number("reserved_bytes", row) or 0
            before = int(self.before(number, np.array([row]))[0])
            rest = used - reserved - before - int(sizes.sum())
            every = {BEFORE_PROFILE: before, UNATTRIBUTED: rest, RESERVED: reserved}
            remainders = {name: size for name, size in every.items() if size}
        return MemoryMoment(
            row,
            int(self.events.array("time_ps")[row]),
            used,
            self.number("step_id", row),
            fragmentation_at(self.events, row),
            buffers,
            sizes,
            remainders,
        )

    def capacity(self, row: int) -> int | None:
        """The most the record's allocator may take; None where nothing says so."""
        return capacity_at(self.events, row)

    def number(self, column: str, row: int) -> int | None:
        """A whole number that a record has; None where it is null."""
        return number_at(self.events, column, row)

    def before(self, number: int, rows: AnyArray) -> Int64Array:
        """What an allocator that reports has from before the profile, after each of its records
        ``rows``, in bytes: less what deallocations that found no live buffer freed; else 0.
        """
        usage = self.usages[number]
        if not usage.reported:
            return np.zeros(np.shape(rows), np.int64)
        result, total = self._unmatched[number]
        return np.maximum(usage.before - total[np.searchsorted(result, rows, "right")], 0)

    @cached_property
    def _unmatched(self) -> list[tuple[IntpArray, Int64Array]]:
        """Per allocator the deallocations that found no live buffer, and their running sum."""
        return [self._sum_unmatched(rows) for rows in self._rows]

    def _sum_unmatched(self, rows: IntpArray) -> tuple[IntpArray, Int64Array]:
        """By the rule of `peakline.memory.usage`: a size that is not recorded is what the reports
        before and after differ by, where no other change lies between them.
        """
        check_deadline()
        kind = self.lifetimes.kind[rows]
        result = np.flatnonzero((kind == DEALLOCATION) & (self.lifetimes.begin[rows] < 0))
        sizes = buffer_bytes(self.events, rows[result])
        silent = np.flatnonzero(sizes <= 0)
        if silent.size:
            in_use = self.events.array("in_use_bytes")[rows]
            reports = self.events.is_valid("in_use_bytes")[rows]
            places = np.arange(rows.size)
            # The last record before each one that reports, and the last that changes unreported.
            last = np.maximum.accumulate(np.where(reports, places, -1))
            odd = np.maximum.accumulate(np.where(~reports & (kind != OTHER), places, -1))
            own = result[silent]
            before = np.where(own > 0, last[own - 1], -1)
            unbroken = reports[own] & (before >= 0) & (before > np.where(own > 0, odd[own - 1], -1))
            sizes[silent] = np.where(unbroken, np.maximum(in_use[before] - in_use[own], 0), 0)
        return rows[result], np.concatenate([[0], np.cumsum(sizes)])


@once
def memory_records(profile: Profile) -> MemoryRecords | None:
    """The records of a profile, read and matched once; None where it holds none.

    Raises InputError when the profile cannot be read.
    """
    if "allocator_events" not in profile.tables or not profile.has_rows("allocator_events"):
        return None
    events, implausible = without_implausible(profile.columns("allocator_events"))
    return MemoryRecords(events, match_lifetimes(events), implausible)


@dataclass(frozen=True, eq=False)
class LiveBytes:
    """The buffers of one allocator: ``rows`` are the records that begin them, ascending, ``ends``
    those that end them, -1 where none does; both are rows of `peakline.memory.over_time.live`.

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
        last = int(np.searchsorted(self.rows, end, "right"))
        there = int(np.searchsorted(self.rows, begin, "right"))
        # Of the buffers from before the stretch only those that live in it.
        before = self.live_at(begin) if there else np.zeros(0, np.intp)
        result = np.zeros((groups, moments.size), np.int64)
        # By record from the first moment on, the first moment that comes with or after it.
        span = np.diff(moments, prepend=begin - 1)
        place = np.repeat(np.arange(moments.size, dtype=np.int32), span)
        first_known = int(np.searchsorted(moments, 0))
        for chosen, first in (
            (before, np.full(before.size, first_known, np.int32)),
            (slice(there, last), place[self.rows[there:last] - begin]),
        ):
            ends = self.ends[chosen]
            is_ended = (ends >= 0) & (ends <= end)
            until = np.full(ends.size, moments.size, np.int32)
            until[is_ended] = place[ends[is_ended] - begin]
            result += live_sums(group[chosen], first, until, sizes[chosen], groups, moments.size)
        return result


def _unsigned(ends: AnyArray) -> type:
    return np.uint32 if ends.dtype == np.int32 else np.uint64


def begun(records: MemoryRecords, number: int) -> IntpArray:
    """The records of an allocator that begin a buffer whose end can be seen, ascending."""
    rows = records.rows(number)
    if rows.size == records.events.rows:
        return np.flatnonzero(records.lifetimes.kind == ALLOCATION)
    result: IntpArray = rows[records.lifetimes.kind[rows] == ALLOCATION]
    return result


def requested_bytes(records: MemoryRecords, rows: AnyArray) -> Int64Array:
    """What was requested for buffers: never more than was allocated, which it is where unknown."""
    allocated = buffer_bytes(records.events, rows)
    known = records.events.is_valid("requested_bytes")[rows]
    stated = np.where(known, records.events.array("requested_bytes")[rows], 0)
    is_stated = (stated > 0) & (stated <= allocated)
    result: Int64Array = np.where(is_stated, stated, allocated).astype(np.int64)
    return result


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


@dataclass(frozen=True)
class OpBytes:
    """Bytes that an op allocated in all, in so many buffers, and the most of them live at once."""

    allocated: int
    buffers: int
    peak: int


def op_bytes_of(profile: Profile, between: tuple[int, int] | None = None) -> dict[str, OpBytes]:
    """The memory of each op by its name, of buffers allocated ``between`` two times (ps, the second
    exclusive; default: all); empty where no buffer says its op.

    Raises InputError when the profile cannot be read.
    """
    return _all(profile) if between is None else _between(profile, *between)


@once
def _all(profile: Profile) -> dict[str, OpBytes]:
    return _between(profile, None, None)


def _between(profile: Profile, begin: int | None, end: int | None) -> dict[str, OpBytes]:
    table = profile.columns_or_empty("buffers")
    names = table.names("op")
    start = np.where(table.is_valid("start_ps"), table.array("start_ps"), np.iinfo(np.int64).min)
    chosen = names.codes >= 0
    if begin is not None and end is not None:
        chosen &= (start >= begin) & (start < end)
    rows = np.flatnonzero(chosen)
    if not rows.size:
        return {}
    requested = np.where(table.is_valid("requested_bytes"), table.array("requested_bytes"), 0)
    size = np.where(table.is_valid("allocated_bytes"), table.array("allocated_bytes"), requested)
    size, start, code = size[rows].astype(np.int64), start[rows], names.codes[rows]
    freed = table.is_valid("end_ps")[rows]
    stop = np.where(freed, table.array("end_ps")[rows], np.iinfo(np.int64).max)
    width = len(names.values)
    # At one moment what is freed goes first.
    change = np.concatenate([size, -size])
    order = np.lexsort((change, np.concatenate([start, stop]), np.tile(code, 2)))
    live = np.cumsum(change[order])
    # What one op allocated is all freed in the end: sums begin anew with each.
    owner = np.tile(code, 2)[order]
    peak = np.zeros(width, np.int64)
    np.maximum.at(peak, owner, live)
    total = summed(code, size, width)
    many = np.bincount(code, minlength=width)
    return {
        names.values[k]: OpBytes(int(total[k]), int(many[k]), int(peak[k]))
        for k in np.flatnonzero(many).tolist()
    }
