"""From snapshots to per-allocator memory profiles: peak, what was live at it, timeline sample.

The rules are those of openxla/xprof, ``xprof/convert/xplane_to_memory_profile.cc``, to the
letter, including what is odd about them: offsets of different lines are compared as they are,
the lifetime peak is the last one reported, and a snapshot without a step belongs to the step
after the last known one. Where upstream leaves an order open, snapshots at equal times keep
the order of the file, and the earliest allocation stands for a merged row.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from peakline.arrays import Int32Array, Int64Array, UInt64Array
from peakline.deadline import check_deadline
from peakline.kernels.memory_profile import active_at_peak, inherit_metadata, number_addresses
from peakline.tables import Columns, Names

MOST_MEMORIES = 4096
"""A host has a few; each takes the time of many snapshots."""


@dataclass(frozen=True)
class Peak:
    """The aggregation at the peak (bytes), and when it was (picoseconds); zero if there is none."""

    time_ps: int = 0
    stack_bytes: int = 0
    heap_bytes: int = 0
    free_bytes: int = 0
    fragmentation: float = 0.0

    @property
    def in_use_bytes(self) -> int:
        """Stack and heap together."""
        return _wrapped(self.stack_bytes + self.heap_bytes)

    @property
    def capacity_bytes(self) -> int:
        """Stack, heap and free together."""
        return _wrapped(self.in_use_bytes + self.free_bytes)


@dataclass(frozen=True)
class SpecialAllocation:
    """Memory at the peak that no snapshot of the peak's step explains."""

    tf_op_name: str
    region_type: str
    size_bytes: int
    step_id: int
    data_type: str = "INVALID"
    tensor_shape: str = "unknown"


@dataclass(frozen=True, eq=False)
class AllocatorProfile:
    """The profile of one allocator.

    ``rows``, ``steps`` and ``sources`` have one entry per snapshot in time order: its row in
    the table, its step, and the row whose op, region, data type and shape it shows. ``active``
    and ``occurrences`` have one entry per row of the table at the peak: a position in ``rows``,
    or -1 - k for ``specials[k]``, and how many equal allocations it stands for.
    """

    memory_id: str
    lifetime_peak_bytes: int
    peak: Peak
    rows: Int64Array
    steps: Int64Array
    sources: Int64Array
    in_use: Int64Array
    specials: tuple[SpecialAllocation, ...]
    active: Int64Array
    occurrences: Int64Array

    def sampled(self, limit: int) -> Int64Array:
        """Positions of at most ``limit`` snapshots, from each stretch of time the largest."""
        if self.rows.size <= limit:
            return np.arange(self.rows.size, dtype=np.int64)
        return _largest_of_each(self.in_use[self.rows], limit)

    @cached_property
    def referenced(self) -> Int64Array:
        """Positions of the snapshots that ``active`` refers to, in its order."""
        return self.active[self.active >= 0]


def memory_ids(snapshots: Columns) -> list[str]:
    """The memories (allocators) that have a snapshot, sorted bytewise."""
    names = snapshots.names("memory_id")
    return sorted({names.values[code] for code in np.unique(names.codes).tolist()})


def allocator_profiles(
    snapshots: Columns, memory_id: str | None = None
) -> Iterator[AllocatorProfile]:
    """The profiles of a ``memory_snapshots`` table's first `MOST_MEMORIES`, or of one; by id."""
    wanted = memory_ids(snapshots)
    rank = {value: number for number, value in enumerate(wanted)}
    names = snapshots.names("memory_id")
    ranks = np.array([rank.get(value, -1) for value in names.values], np.int32)[names.codes]
    if len(wanted) == 1:
        grouped = np.arange(snapshots.rows)
    else:
        # Small integers are sorted by radix, in linear time.
        small = ranks.astype(np.uint16) if len(wanted) <= 1 << 16 else ranks
        grouped = np.argsort(small, kind="stable")
    ends = np.cumsum(np.bincount(ranks, minlength=len(wanted)))
    in_use = _int64(snapshots, "stack_reserved_bytes") + _int64(snapshots, "heap_allocated_bytes")
    for value in wanted[:MOST_MEMORIES] if memory_id is None else [memory_id]:
        check_deadline()
        number = rank[value]
        start = int(ends[number - 1]) if number else 0
        yield _allocator_profile(value, snapshots, in_use, grouped[start : ends[number]])


def _allocator_profile(
    memory_id: str, snapshots: Columns, in_use: Int64Array, rows: Int64Array
) -> AllocatorProfile:
    """Apply the rules to the snapshots of one memory; ``rows`` are theirs in file order."""
    time = _int64(snapshots, "time_offset_ps")
    activity = np.ascontiguousarray(snapshots.array("activity"), np.int32)
    address = np.ascontiguousarray(snapshots.array("address"), np.uint64)
    lifetime_peak = int(snapshots.array("peak_bytes_in_use")[rows[-1]])
    peak = _peak(snapshots, _peak_row(rows, in_use))

    times = time[rows]
    is_sorted = bool((times[1:] >= times[:-1]).all())
    order = rows if is_sorted else rows[np.argsort(times, kind="stable")]
    steps = _steps(_int64(snapshots, "step_id")[order])
    ids, count = _address_ids(order, address)
    sources, room = order.copy(), np.full(count, -1, np.int64)
    inherit_metadata(order, activity, ids, room, sources)

    at_peak = np.flatnonzero(in_use[order] == peak.in_use_bytes)
    peak_step = int(steps[at_peak[-1]]) if at_peak.size else 0
    live = np.full(count, -1, np.int64)
    unmapped = active_at_peak(
        order,
        time,
        activity,
        _int64(snapshots, "allocation_bytes"),
        steps,
        ids,
        peak.time_ps,
        peak_step,
        peak.heap_bytes,
        live,
    )
    specials = _specials(unmapped, peak.stack_bytes, peak_step)
    active, occurrences = _merged(snapshots, order, np.sort(live[live >= 0]), specials)
    return AllocatorProfile(
        memory_id=memory_id,
        lifetime_peak_bytes=lifetime_peak,
        peak=peak,
        rows=order,
        steps=steps,
        sources=sources,
        in_use=in_use,
        specials=specials,
        active=active,
        occurrences=occurrences,
    )


def _peak_row(rows: Int64Array, in_use: Int64Array) -> int:
    """The row of the peak, -1 if none: ``rows`` in file order, ties to the later.

    The peak starts at 0, so bytes in use that are always negative leave no peak.
    """
    used = in_use[rows]
    last = used.size - 1 - int(np.argmax(used[::-1]))
    return int(rows[last]) if used[last] >= 0 else -1


def _steps(step: Int64Array) -> Int64Array:
    """The step of each position: its own, or one after the last known for a row without (-1)."""
    known = step != -1
    last = np.maximum.accumulate(np.where(known, np.arange(step.size), -1))
    before = np.where(last >= 0, step[last], -1)
    return np.where(known, step, before + 1)


def _address_ids(order: Int64Array, address: UInt64Array) -> tuple[Int32Array, int]:
    """Number the distinct addresses in order of first appearance: (number per position, count)."""
    seed, at = secrets.randbits(64), np.zeros(2, np.int64)
    ids = np.empty(order.size, np.int32)
    known = np.empty(512, np.uint64)
    while not number_addresses(
        order, address, seed, ids, np.full(2 * known.size, -1, np.int32), known, at
    ):
        known = np.concatenate([known, np.empty(3 * known.size, np.uint64)])
    return ids, int(at[1])


def _largest_of_each(in_use: Int64Array, limit: int) -> Int64Array:
    """The position of the largest of each of ``limit`` (less than all) buckets.

    Buckets are equal but for rounding, the narrower first; the first of equals is taken.
    """
    width, wide = divmod(in_use.size, limit)
    widths = np.full(limit, width)
    widths[limit - wide :] += 1
    starts = np.cumsum(widths) - widths
    is_largest = in_use == np.repeat(np.maximum.reduceat(in_use, starts), widths)
    positions = np.flatnonzero(is_largest)
    largest: Int64Array = positions[np.searchsorted(positions, starts)]
    return largest


def _peak(snapshots: Columns, row: int) -> Peak:
    if row < 0:
        return Peak()
    names = ("time_offset_ps", "stack_reserved_bytes", "heap_allocated_bytes", "free_memory_bytes")
    time, stack, heap, free = (int(snapshots.array(name)[row]) for name in names)
    return Peak(time, stack, heap, free, float(snapshots.array("fragmentation")[row]))


def _specials(unmapped: int, stack: int, step_id: int) -> tuple[SpecialAllocation, ...]:
    specials = []
    if unmapped > 0:
        specials.append(
            SpecialAllocation(
                "unused preallocated device memory", "persist/dynamic", unmapped, step_id
            )
        )
    if stack > 0:
        specials.append(SpecialAllocation("stack", "stack", stack, step_id))
    return tuple(specials)


def _merged(
    snapshots: Columns,
    order: Int64Array,
    positions: Int64Array,
    specials: tuple[SpecialAllocation, ...],
) -> tuple[Int64Array, Int64Array]:
    """Active snapshots and specials by descending size, equal ones merged, and how many each is."""
    rows = order[positions]
    sizes = np.array([special.size_bytes for special in specials], np.int64)
    # From the last to the first in importance, as np.lexsort wants them. Negation wraps for the
    # smallest int64, which then sorts first, as upstream.
    keys = [
        _ranks(snapshots.names(name).take(rows), [getattr(special, name) for special in specials])
        for name in ("tensor_shape", "data_type", "region_type", "tf_op_name")
    ]
    keys.extend(
        -np.concatenate([_int64(snapshots, name)[rows], sizes])
        for name in ("requested_bytes", "allocation_bytes")
    )
    entries = np.concatenate([positions, -1 - np.arange(len(specials), dtype=np.int64)])
    if entries.size == 0:
        return entries, entries
    by_size = np.lexsort(keys)
    differs = np.zeros(entries.size - 1, np.bool_)
    for key in keys:
        differs |= key[by_size[1:]] != key[by_size[:-1]]
    starts = np.concatenate([[0], 1 + np.flatnonzero(differs)])
    occurrences = np.diff(np.concatenate([starts, [entries.size]]))
    return entries[by_size[starts]], occurrences


def _ranks(names: Names, more: list[str]) -> Int64Array:
    """The place of each string of ``names`` and then of ``more`` in bytewise order."""
    codes = names.codes.tolist()
    strings = {code: names.values[code] for code in set(codes)}
    rank = {value: number for number, value in enumerate(sorted({*strings.values(), *more}))}
    places = {code: rank[value] for code, value in strings.items()}
    result = [*(places[code] for code in codes), *(rank[value] for value in more)]
    return np.array(result, np.int64)


def _int64(snapshots: Columns, name: str) -> Int64Array:
    return np.ascontiguousarray(snapshots.array(name), np.int64)


def _wrapped(value: int) -> int:
    """``value`` as the int64 that C++ arithmetic leaves."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
