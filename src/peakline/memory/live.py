"""What is live in memory at any moment, buffer by buffer.

The records are matched and measured once per profile (`memory_records`); a moment is then a matter
of milliseconds. It is explained as the peak is (`peakline.memory.peak`): live buffers and up to
three remainders add up to the bytes in use exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from peakline.arrays import AnyArray, Int64Array, IntpArray
from peakline.deadline import check_deadline
from peakline.errors import NotFoundError
from peakline.kernels.memory_layout import ALLOCATION, DEALLOCATION, OTHER
from peakline.memory.lifetimes import Lifetimes, match_lifetimes
from peakline.memory.peak import BEFORE_PROFILE, RESERVED, UNATTRIBUTED
from peakline.memory.signatures import split_by
from peakline.memory.usage import (
    Usage,
    buffer_bytes,
    fragmentation_at,
    measure,
    number_at,
    reported_bytes,
    without_implausible,
)
from peakline.suggest import there_is
from peakline.tables import Profile
from peakline.tables.columns import Columns
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
    buffer explains, by its name (`peakline.memory.peak`); none of them is 0. The bytes of both
    add up to ``bytes_in_use``.
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
        was_there = (events.array("is_before") & events.is_valid("is_before"))[own]
        # The first record that is none of them, found without a list of all.
        recorded = int(was_there.argmin()) if rows.size else 0
        past = rows.size if not rows.size or was_there[recorded] else recorded
        return Series(rows, used, events.array("time_ps")[own], max(past - 1, 0))

    def at(self, number: int, time_ps: int) -> MemoryMoment | None:
        """An allocator after its last record at or before ``time_ps``; None before the first.

        The answer is that of `peakline.memory.moments.memory_at`.
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
        """The most the record's allocator may take, as the record says; None where it does not."""
        in_use, free = self.number("in_use_bytes", row), self.number("free_bytes", row)
        if in_use is None or free is None:
            return None
        return in_use + (self.number("reserved_bytes", row) or 0) + free

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
        found, total = self._unmatched[number]
        return np.maximum(usage.before - total[np.searchsorted(found, rows, "right")], 0)

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
        found = np.flatnonzero((kind == DEALLOCATION) & (self.lifetimes.begin[rows] < 0))
        sizes = buffer_bytes(self.events, rows[found])
        silent = np.flatnonzero(sizes <= 0)
        if silent.size:
            in_use = self.events.array("in_use_bytes")[rows]
            reports = self.events.is_valid("in_use_bytes")[rows]
            places = np.arange(rows.size)
            # The last record before each one that reports, and the last that changes unreported.
            last = np.maximum.accumulate(np.where(reports, places, -1))
            odd = np.maximum.accumulate(np.where(~reports & (kind != OTHER), places, -1))
            own = found[silent]
            before = np.where(own > 0, last[own - 1], -1)
            unbroken = reports[own] & (before >= 0) & (before > np.where(own > 0, odd[own - 1], -1))
            sizes[silent] = np.where(unbroken, np.maximum(in_use[before] - in_use[own], 0), 0)
        return rows[found], np.concatenate([[0], np.cumsum(sizes)])


@once
def memory_records(profile: Profile) -> MemoryRecords | None:
    """The records of a profile, read and matched once; None where it holds none.

    Raises InputError when the profile cannot be read.
    """
    if "allocator_events" not in profile.tables or not profile.has_rows("allocator_events"):
        return None
    events, implausible = without_implausible(profile.columns("allocator_events"))
    return MemoryRecords(events, match_lifetimes(events), implausible)
