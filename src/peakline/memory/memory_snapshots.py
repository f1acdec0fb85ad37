"""Snapshots of the memory_profile tool for formats that are not an XSpace.

An XSpace's events carry what the allocator reported; elsewhere the running sum of live buffers
stands for the bytes in use, so that the tool shows the same picture from every source.
"""

from __future__ import annotations

import numpy as np

from peakline.kernels.memory_layout import ALLOCATION
from peakline.memory.lifetimes import match_lifetimes
from peakline.memory.usage import buffer_bytes
from peakline.tables import Profile
from peakline.tables.columns import Columns, Names

_ACTIVITIES = {"allocation": 1, "deallocation": 2, "reservation": 3, "expansion": 4}


def columns_of(profile: Profile) -> Columns:
    """The table of a profile."""
    return snapshots_of(profile.columns("allocator_events"))


def snapshots_of(events: Columns) -> Columns:
    """``memory_snapshots`` of ``allocator_events`` (in time order).

    In use is what the allocator reported, else the sum of the buffers that are live; a
    deallocation without a live allocation changes nothing. The peak so far is what was reported,
    else the largest sum so far. Free is what was reported, else what the device has and is not in
    use. What was not reported is 0.
    """
    result = match_lifetimes(events)
    count = events.rows
    every = np.arange(count)
    own = buffer_bytes(events, every)
    matched = result.begin >= 0
    change = np.where(result.kind == ALLOCATION, own, 0)
    change -= np.where(matched, own[np.where(matched, result.begin, 0)], 0)

    in_use = np.zeros(count, np.int64)
    peak = np.zeros(count, np.int64)
    for number in range(len(result.allocators)):
        rows = np.flatnonzero(result.allocator == number)
        in_use[rows] = np.cumsum(change[rows])
        reported = events.is_valid("in_use_bytes")[rows]
        in_use[rows] = np.where(reported, events.array("in_use_bytes")[rows], in_use[rows])
        highest = np.maximum.accumulate(in_use[rows])
        has_peak = events.is_valid("peak_bytes")[rows]
        peak[rows] = np.where(has_peak, events.array("peak_bytes")[rows], highest)

    # A deallocation rarely repeats what it frees: its allocation has it.
    source = np.where(matched & (result.kind != ALLOCATION), result.begin, every)

    def number_of(name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        mask = events.is_valid(name)
        mine = np.where(mask, events.array(name), 0)
        return np.where(mask, mine, mine[source])

    def text_of(name: str) -> Names:
        names = events.names(name)
        codes = np.where(names.codes < 0, names.codes[source], names.codes)
        return Names(np.where(codes < 0, len(names.values), codes).astype(np.int32),
                     [*names.values, ""])  # fmt: skip

    # The tool pairs records by address, so a buffer without one gets a number of its own, from
    # the half of the address space that no allocator hands out.
    first = np.where(matched, result.begin, every).astype(np.uint64)
    recorded = number_of("address").astype(np.uint64)
    has_address = events.is_valid("address") | events.is_valid("address")[source]
    address = np.where(has_address, recorded, first | np.uint64(1 << 63))

    capacity = np.where(events.is_valid("capacity_bytes"), events.array("capacity_bytes"), 0)
    has_free = events.is_valid("free_bytes") | events.is_valid("free_bytes")[source]
    rest = np.maximum(capacity - in_use, 0)

    activity = events.names("activity")
    code_of = np.array([_ACTIVITIES.get(name, 0) for name in activity.values], np.int32)
    fragmentation = np.where(events.is_valid("fragmentation"), events.array("fragmentation"), 0.0)
    return Columns(
        {
            "memory_id": Names(result.allocator.astype(np.int32), list(result.allocators)),
            "time_offset_ps": events.array("time_ps"),
            "activity": code_of[activity.codes],
            "stack_reserved_bytes": number_of("reserved_bytes"),
            "heap_allocated_bytes": in_use,
            "free_memory_bytes": np.where(has_free, number_of("free_bytes"), rest),
            "fragmentation": fragmentation,
            "peak_bytes_in_use": peak,
            "requested_bytes": number_of("requested_bytes"),
            "allocation_bytes": own[source],
            "address": address,
            "tf_op_name": text_of("op"),
            "step_id": np.where(events.is_valid("step_id"), events.array("step_id"), -1),
            "region_type": text_of("region_type"),
            "data_type": text_of("data_type"),
            "tensor_shape": text_of("shape"),
        }
    )
