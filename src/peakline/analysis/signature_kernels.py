"""Compiled passes that `peakline.analysis.signatures` is made of."""

from __future__ import annotations

import numba as nb
import numpy as np

from peakline.analysis.lifetimes import ALLOCATION, UNTRACKED_ALLOCATION

__all__ = ["measure_buffers", "number_keys", "running_use"]


@nb.njit(cache=True, nogil=True)
def measure_buffers(  # type: ignore[no-untyped-def]
    kind,
    allocated_bytes,
    has_allocated,
    requested_bytes,
    has_requested,
    allocated,
    requested,
):
    """Fill what was handed out and what was asked for, for the rows that begin a buffer."""
    for row in range(kind.size):
        if kind[row] != ALLOCATION and kind[row] != UNTRACKED_ALLOCATION:
            continue
        asked = requested_bytes[row] if has_requested[row] else np.int64(0)
        size = allocated_bytes[row] if has_allocated[row] else asked
        allocated[row] = size
        requested[row] = asked if 0 < asked <= size else size


@nb.njit(cache=True, nogil=True, inline="always")
def _mix(one, two, three, seed):  # type: ignore[no-untyped-def]
    """One hash of a key of three numbers; the finishing steps are MurmurHash3's."""
    mixed = np.uint64(one) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= np.uint64(two) * np.uint64(0xFF51AFD7ED558CCD) ^ np.uint64(three) ^ seed
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return mixed ^ (mixed >> np.uint64(33))


@nb.njit(cache=True, nogil=True)
def number_keys(one, two, three, numbers, seed):  # type: ignore[no-untyped-def]
    """Number the distinct keys ``(one, two, three)[place]`` in order of first appearance.

    ``numbers`` gets the number at every place; what returns is the first place of each.
    """
    size = 1024
    table = np.full(size, -1, np.int64)
    first = np.empty(512, np.int64)
    count = 0
    for place in range(one.size):
        slot = _mix(one[place], two[place], three[place], seed) & np.uint64(size - 1)
        group = table[slot]
        while group >= 0:
            other = first[group]
            if (
                one[other] == one[place]
                and two[other] == two[place]
                and three[other] == three[place]
            ):
                break
            slot = (slot + np.uint64(1)) & np.uint64(size - 1)
            group = table[slot]
        if group >= 0:
            numbers[place] = group
            continue
        if count == first.size:
            # Twice the room, and every known key in its new slot; the one at hand comes last.
            size *= 2
            old = first
            first = np.empty(2 * count, np.int64)
            table = np.full(size, -1, np.int64)
            for known in range(count + 1):
                other = old[known] if known < count else place
                slot = _mix(one[other], two[other], three[other], seed) & np.uint64(size - 1)
                while table[slot] >= 0:
                    slot = (slot + np.uint64(1)) & np.uint64(size - 1)
                if known < count:
                    table[slot] = known
                    first[known] = other
        table[slot] = count
        first[count] = place
        numbers[place] = count
        count += 1
    return first[:count]


@nb.njit(cache=True, nogil=True)
def running_use(  # type: ignore[no-untyped-def]
    allocators,
    allocator,
    kind,
    begin,
    allocated,
    in_use,
    has_in_use,
    reserved,
    has_reserved,
    reports,
    used,
):
    """Fill the memory in use after each row: as reported, else the sum of live buffers.

    Where an allocator reports, a row without a report repeats what was known before it; before
    the first report that is 0.
    """
    last = np.zeros(allocators, np.int64)
    for row in range(kind.size):
        owner = allocator[row]
        if reports[owner]:
            if has_in_use[row]:
                last[owner] = in_use[row] + (reserved[row] if has_reserved[row] else 0)
        else:
            if begin[row] >= 0:
                last[owner] -= allocated[begin[row]]
            if kind[row] == ALLOCATION:
                last[owner] += allocated[row]
        used[row] = last[owner]
