"""The sequential rules of the memory profile, one allocator at a time, compiled.

Arrays called ``order`` hold row numbers of the snapshot table in time order; a *position* is an
index into ``order``. Sums of sizes are int64 and wrap, as in the C++ they must agree with.
Source of the rules: openxla/xprof, ``xprof/convert/xplane_to_memory_profile.cc``.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

__all__ = [
    "ALLOCATION",
    "DEALLOCATION",
    "active_at_peak",
    "address_ids",
    "inherit_metadata",
    "last_at",
    "peak_row",
    "sample",
    "step_ids",
]

Ints = npt.NDArray[np.int64]
Codes = npt.NDArray[np.int32]

ALLOCATION = 1
DEALLOCATION = 2


@njit(cache=True, nogil=True)
def peak_row(rows: Ints, in_use: Ints) -> int:
    """The row of the profile's peak, -1 if none: ``rows`` in file order, ties to the later.

    The peak starts at 0, so bytes in use that are always negative leave no peak.
    """
    best = np.int64(0)
    best_row = -1
    for row in rows:
        if in_use[row] >= best:
            best = in_use[row]
            best_row = row
    return best_row


@njit(cache=True, nogil=True)
def step_ids(order: Ints, step: Ints) -> Ints:
    """The step of each position: its own, or one after the last known for a row without (-1)."""
    steps = np.empty(order.size, np.int64)
    last = np.int64(-1)
    for position in range(order.size):
        own = step[order[position]]
        if own == -1:
            steps[position] = last + 1
        else:
            last = own
            steps[position] = own
    return steps


@njit(cache=True, nogil=True)
def address_ids(order: Ints, address: npt.NDArray[np.uint64], seed: int) -> tuple[Codes, int]:
    """Number the distinct addresses in order of first appearance: (number per position, count).

    An open-addressing table that doubles at half load. Addresses come from untrusted files:
    a random ``seed`` keeps anyone from choosing ones that collide.
    """
    ids = np.empty(order.size, np.int32)
    slots = np.full(1024, -1, np.int32)
    known = np.empty(512, np.uint64)
    count = 0
    for position in range(order.size):
        value = address[order[position]]
        if count == known.size:
            grown = np.empty(2 * known.size, np.uint64)
            slots = np.full(4 * count, -1, np.int32)
            # Not a slice: what Numba compiles for one takes longer than all of this module.
            for number in range(count):
                grown[number] = known[number]
                slots[_slot(slots, grown, known[number], seed)] = number
            known = grown
        slot = _slot(slots, known, value, seed)
        if slots[slot] < 0:
            slots[slot] = count
            known[count] = value
            count += 1
        ids[position] = slots[slot]
    return ids, count


@njit(cache=True, nogil=True)
def _slot(slots: Codes, known: npt.NDArray[np.uint64], value: np.uint64, seed: int) -> np.int64:
    """The slot that holds ``value``, or the empty one where it belongs."""
    # The finaliser of splitmix64 over the seeded value.
    mixed = value ^ np.uint64(seed)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed = mixed ^ (mixed >> np.uint64(31))
    mask = slots.size - 1
    slot = np.int64(mixed & np.uint64(mask))
    while slots[slot] >= 0 and known[slots[slot]] != value:
        slot = (slot + 1) & mask
    return slot


@njit(cache=True, nogil=True)
def inherit_metadata(order: Ints, activity: Codes, ids: Codes, count: int) -> Ints:
    """The row whose op, region, data type and shape each position shows.

    A deallocation shows those of the first allocation still live at its address and ends it;
    everything else shows its own.
    """
    source = order.copy()
    live = np.full(count, -1, np.int64)
    for position in range(order.size):
        row = order[position]
        number = ids[position]
        if activity[row] == ALLOCATION:
            if live[number] < 0:
                live[number] = row
        elif activity[row] == DEALLOCATION and live[number] >= 0:
            source[position] = live[number]
            live[number] = -1
    return source


@njit(cache=True, nogil=True)
def sample(order: Ints, in_use: Ints, limit: int) -> Ints:
    """Positions of ``limit`` (less than all) snapshots: the largest of each of as many buckets.

    Buckets are equal but for rounding, the narrower first; the first of equals is taken.
    """
    width = order.size // limit
    narrow = limit * (width + 1) - order.size
    chosen = np.empty(limit, np.int64)
    start = 0
    for bucket in range(limit):
        end = start + (width if bucket < narrow else width + 1)
        best = start
        for position in range(start + 1, end):
            if in_use[order[position]] > in_use[order[best]]:
                best = position
        chosen[bucket] = best
        start = end
    return chosen


@njit(cache=True, nogil=True)
def last_at(order: Ints, in_use: Ints, level: int) -> int:
    """The last position with exactly ``level`` bytes in use, -1 if none."""
    for position in range(order.size - 1, -1, -1):
        if in_use[order[position]] == level:
            return position
    return -1


@njit(cache=True, nogil=True)
def active_at_peak(
    order: Ints,
    time: Ints,
    activity: Codes,
    allocated: Ints,
    steps: Ints,
    ids: Codes,
    count: int,
    peak_time: int,
    peak_step: int,
    peak_heap: int,
) -> tuple[Ints, np.int64]:
    """What the peak step had allocated and not freed by the peak, and the unmapped bytes.

    Unmapped is the part of the heap at the peak that the step's own events do not explain:
    memory that was there before it. It may come out negative. Of several allocations at one
    address the last counts: the result has its position per address number, -1 where none is.
    """
    active = np.full(count, -1, np.int64)
    unmapped = np.int64(peak_heap)
    for position in range(order.size):
        row = order[position]
        if time[row] > peak_time:
            break
        if steps[position] != peak_step:
            continue
        number = ids[position]
        if activity[row] == ALLOCATION:
            active[number] = position
            unmapped -= allocated[row]
        elif activity[row] == DEALLOCATION and active[number] >= 0:
            # A free of what the step did not allocate changes nothing: its bytes are given
            # back once for the event and taken again for the foreign buffer.
            active[number] = -1
            unmapped += allocated[row]
    return active, unmapped
