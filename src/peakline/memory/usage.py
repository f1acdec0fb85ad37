"""The memory of every allocator over time, folded to what an answer about its peak needs.

One compiled pass over the records: counts, running sums, and the record at which memory in use
was largest. `peakline.memory.peak.explained` turns the sums into an explanation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.kernels import memory_layout as layout
from peakline.kernels import usage
from peakline.memory.lifetimes import Lifetimes
from peakline.tables.columns import Columns, Names

_NEVER = -(2**63)
MOST_ALLOCATORS = 256
"""So many are explained: a program has some per device, and each takes milliseconds."""
MOST_BYTES = 2**48
"""No memory is larger: what processors can address is at most about that."""

_SIZES = (
    "requested_bytes",
    "allocated_bytes",
    "in_use_bytes",
    "reserved_bytes",
    "free_bytes",
    "peak_bytes",
)


@dataclass(frozen=True)
class Usage:
    """What one pass found for one allocator. Sizes are bytes.

    ``reported``: the allocator reported its bytes in use on some record; then the peak is the
    largest reported in use + reserved, else the largest running sum of live buffers.
    ``before`` is what was in use before the first record as its report implies (0 where
    nothing was reported). ``peak_row`` is -1 when no record was eligible. ``lifetime_peak`` is
    the largest lifetime peak it reported, None when it reported none.
    """

    reported: bool
    allocations: int
    deallocations: int
    unmatched: int
    untracked: int
    double: int
    live_at_end: int
    before: int
    unmatched_bytes: int
    peak_row: int
    peak: int
    unmatched_bytes_at_peak: int
    lifetime_peak: int | None


def was_there(events: Columns, rows: AnyArray | slice = slice(None)) -> BoolArray:
    """Which of the records stand for a buffer from before the profile."""
    before: BoolArray = (events.array("is_before") & events.is_valid("is_before"))[rows]
    return before


def counts_of(events: Columns, rows: AnyArray) -> Int64Array:
    """How many buffers each of the records stands for."""
    return np.where(events.is_valid("count")[rows], events.array("count")[rows], 1)


def buffer_bytes(events: Columns, rows: AnyArray | slice) -> Int64Array:
    """Bytes allocated by the allocations ``rows``; what was requested where that is unknown."""
    allocated, known = (
        events.array("allocated_bytes")[rows],
        events.is_valid("allocated_bytes")[rows],
    )
    if not known.all():
        requested = np.where(
            events.is_valid("requested_bytes")[rows], events.array("requested_bytes")[rows], 0
        )
        allocated = np.where(known, allocated, requested)
    result: Int64Array = allocated.astype(np.int64, copy=False)
    return result


def number_at(events: Columns, column: str, row: int) -> int | None:
    """A whole number that a record has; None where it is null."""
    return int(events.array(column)[row]) if events.is_valid(column)[row] else None


def capacity_at(events: Columns, row: int) -> int | None:
    """The most that a record's memory may hold; None where nothing says so.

    It is what its device has in all where the file says that, else what the record says is in use,
    reserved and free.
    """
    capacity = number_at(events, "capacity_bytes", row)
    in_use, free = number_at(events, "in_use_bytes", row), number_at(events, "free_bytes", row)
    if capacity is not None or in_use is None or free is None:
        return capacity
    return in_use + (number_at(events, "reserved_bytes", row) or 0) + free


def fragmentation_at(events: Columns, row: int) -> float | None:
    """The fragmentation that a record reports; None where it reports none, or nothing was free."""
    result = float(events.array("fragmentation")[row])
    return result if events.is_valid("fragmentation")[row] and math.isfinite(result) else None


def reported_bytes(events: Columns, rows: AnyArray | slice) -> Int64Array:
    """What records with a report say is in use, reserved bytes included."""
    in_use: Int64Array = events.array("in_use_bytes")[rows]
    reserved = np.where(
        events.is_valid("reserved_bytes"), events.array("reserved_bytes"), 0
    )[rows]  # fmt: skip
    return in_use + reserved if reserved.any() else in_use


def measure(
    events: Columns, lifetimes: Lifetimes, eligible: BoolArray | None = None
) -> list[Usage]:
    """One `Usage` per allocator of ``lifetimes``.

    Every record counts in the sums; only ``eligible`` ones (default: all) can be the peak.
    """

    def column(name: str) -> tuple[Int64Array, BoolArray]:
        return np.ascontiguousarray(events.array(name), np.int64), events.is_valid(name)

    count = len(lifetimes.allocators)
    in_use, has_in_use = column("in_use_bytes")
    reports = np.zeros(count, np.bool_)
    reports[lifetimes.allocator[has_in_use]] = True
    state = np.zeros((count, layout.U_FIELDS), np.int64)
    state[:, layout.U_PEAK_ROW] = -1
    state[:, layout.U_LIFETIME_PEAK] = _NEVER
    usage.measure(
        state,
        reports,
        np.zeros(0, np.bool_) if eligible is None else eligible,
        lifetimes.allocator,
        lifetimes.kind,
        lifetimes.begin,
        *column("allocated_bytes"),
        *column("requested_bytes"),
        in_use,
        has_in_use,
        *column("reserved_bytes"),
        *column("peak_bytes"),
    )
    return [
        Usage(
            reported=bool(reports[number]),
            allocations=s[layout.U_ALLOCATIONS],
            deallocations=s[layout.U_DEALLOCATIONS],
            unmatched=s[layout.U_UNMATCHED],
            untracked=s[layout.U_UNTRACKED],
            double=s[layout.U_DOUBLE],
            live_at_end=s[layout.U_LIVE],
            before=s[layout.U_BEFORE],
            unmatched_bytes=s[layout.U_UNMATCHED_BYTES],
            peak_row=s[layout.U_PEAK_ROW],
            peak=s[layout.U_PEAK],
            unmatched_bytes_at_peak=s[layout.U_UNMATCHED_AT_PEAK],
            lifetime_peak=None
            if s[layout.U_LIFETIME_PEAK] == _NEVER
            else s[layout.U_LIFETIME_PEAK],
        )
        for number, s in enumerate(state.tolist())
    ]


def with_fewer_allocators(events: Columns, named: str | None = None) -> tuple[Columns, int]:
    """``allocator_events`` with the smallest allocators as one, and how many these are.

    So many as `MOST_ALLOCATORS` stay, those whose buffers have most bytes, and the one ``named``.
    """
    codes, texts = events.names("allocator").grouped()
    more = len(texts) - MOST_ALLOCATORS
    if more <= 0:
        return events, 0
    sizes = buffer_bytes(events, np.arange(events.rows)).astype(np.float64)
    largest = np.argsort(-np.bincount(codes, sizes, len(texts)), kind="stable")
    chosen = set(largest[:MOST_ALLOCATORS].tolist())
    if named in texts:
        chosen.add(texts.index(named))
    left_out = len(texts) - len(chosen)
    names = [text if code in chosen else f"({left_out} others)" for code, text in enumerate(texts)]
    name = Names.encode(names).take(codes)
    return Columns({**events.data, "allocator": name}, events.valid), left_out


def without_implausible(events: Columns) -> tuple[Columns, int]:
    """``allocator_events`` with every size below 0 or above `MOST_BYTES` as null.

    The number is how many records had one; where it is 0 the table is the same.
    """
    # A damaged or hostile file must not skew sums.
    wrong = np.zeros(events.rows, np.bool_)
    valid = dict(events.valid)
    for name in _SIZES:
        sizes, known = events.array(name), events.is_valid(name)
        odd = known & ((sizes < 0) | (sizes > MOST_BYTES))
        if odd.any():
            valid[name] = known & ~odd
            wrong |= odd
    count = int(np.count_nonzero(wrong))
    return (Columns(events.data, valid), count) if count else (events, 0)
