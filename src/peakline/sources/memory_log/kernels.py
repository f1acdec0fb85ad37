"""Compiled loops over the records of a memory log."""

from __future__ import annotations

import numba as nb
import numpy as np

from peakline.sources.memory_log.layout import (
    BEGINS_OR_ENDS,
    MOST_LIVES,
    RAW_DEALLOCATION,
    SHARED,
    TENSOR_ALLOCATION,
    TENSOR_DEALLOCATION,
    TENSOR_OUTPUT,
)

__all__ = ["pair", "track"]

_NOBODY = -1
_LAST_LIFE = MOST_LIVES - 1


@nb.njit(cache=True, nogil=True)
def pair(group, deferred):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Per record that is not deferred the earliest deferred one of its group that is still open.

    ``group`` is negative for records that take no part. Gives the position of the partner, -1
    for none.
    """
    groups = 0
    for number in group:
        groups = max(groups, number + 1)
    head = np.full(groups, -1, np.int64)
    tail = np.full(groups, -1, np.int64)
    behind = np.full(group.size, -1, np.int64)
    partner = np.full(group.size, -1, np.int64)
    for row in range(group.size):
        own = group[row]
        if own < 0:
            continue
        if deferred[row]:
            if head[own] < 0:
                head[own] = row
            else:
                behind[tail[own]] = row
            tail[own] = row
        elif head[own] >= 0:
            partner[row] = head[own]
            head[own] = behind[head[own]]
    return partner


@nb.njit(cache=True, nogil=True, inline="always")
def _find(key_number, key_allocator, number, allocator, seed):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The slot of a key, or the empty one where it belongs."""
    mask = np.uint64(key_number.size - 1)
    mixed = np.uint64(number) ^ seed ^ (np.uint64(allocator) * np.uint64(0x9E3779B97F4A7C15))
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    slot = (mixed ^ (mixed >> np.uint64(33))) & mask
    while key_allocator[slot] >= 0 and (
        key_number[slot] != number or key_allocator[slot] != allocator
    ):
        slot = (slot + np.uint64(1)) & mask
    return slot


@nb.njit(cache=True, nogil=True, inline="always")
def _highest(bits):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The number of the highest set bit, -1 when none is."""
    found = -1
    while bits:
        bits >>= 1
        found += 1
    return found


@nb.njit(cache=True, nogil=True)
def track(  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    kind, skipped, allocator, number, op, anonymous, allocators, seed
):
    """What each record means for the buffers, by the ids that are live where it stands.

    ``skipped`` marks records that mean nothing, ``anonymous`` those whose op is not the one that
    asked. Gives per record its role (BEGINS_OR_ENDS, SHARED) and its life: how often the ids of
    its allocator had begun anew; then per allocator how many lives it had, and how many
    allocations came under an id of which none was left.

    An id is given out once by an allocator, so an allocation under an id that had one already
    belongs to another process or object. It goes to the latest life in which its id is unused.
    """
    count = kind.size
    role = np.zeros(count, np.uint8)
    life = np.zeros(count, np.uint8)
    newest = np.zeros(allocators, np.int64)
    crowded = np.zeros(allocators, np.int64)
    size = 1024
    key_number = np.zeros(size, np.int64)
    key_allocator = np.full(size, -1, np.int32)
    used = np.zeros(size, np.uint16)
    live = np.zeros(size, np.uint16)
    owner = np.zeros(size, np.int32)
    was_output = np.zeros(size, np.bool_)
    keys = 0
    for row in range(count):
        what = kind[row]
        if what < TENSOR_ALLOCATION or skipped[row]:
            continue
        who = allocator[row]
        life[row] = newest[who]
        if what != TENSOR_OUTPUT:
            role[row] = BEGINS_OR_ENDS
        if number[row] <= 0:
            continue
        slot = _find(key_number, key_allocator, number[row], who, seed)
        if what == TENSOR_DEALLOCATION or what == RAW_DEALLOCATION:
            if key_allocator[slot] >= 0 and live[slot]:
                life[row] = _highest(live[slot])
                live[slot] &= ~np.uint16(1 << life[row])
            continue
        if key_allocator[slot] < 0:
            key_number[slot], key_allocator[slot] = number[row], who
            keys += 1
            if 2 * keys > size:
                size *= 2
                old = key_number, key_allocator, used, live, owner, was_output
                key_number = np.zeros(size, np.int64)
                key_allocator = np.full(size, -1, np.int32)
                used = np.zeros(size, np.uint16)
                live = np.zeros(size, np.uint16)
                owner = np.zeros(size, np.int32)
                was_output = np.zeros(size, np.bool_)
                for other in range(old[0].size):
                    if old[1][other] >= 0:
                        slot = _find(key_number, key_allocator, old[0][other], old[1][other], seed)
                        key_number[slot], key_allocator[slot] = old[0][other], old[1][other]
                        used[slot], live[slot] = old[2][other], old[3][other]
                        owner[slot], was_output[slot] = old[4][other], old[5][other]
                slot = _find(key_number, key_allocator, number[row], who, seed)
        if what == TENSOR_OUTPUT:
            if live[slot]:
                life[row] = _highest(live[slot])
                if was_output[slot] or (owner[slot] != _NOBODY and owner[slot] != op[row]):
                    role[row] = SHARED
                was_output[slot] = True
                continue
            role[row] = BEGINS_OR_ENDS
            was_output[slot] = True
            owner[slot] = op[row]
        else:
            was_output[slot] = False
            owner[slot] = _NOBODY if anonymous[row] else op[row]
            if used[slot] & np.uint16(1 << newest[who]):
                free = ~np.int64(used[slot]) & ((1 << newest[who]) - 1)
                if free:
                    life[row] = _highest(free)
                elif newest[who] < _LAST_LIFE:
                    newest[who] += 1
                    life[row] = newest[who]
                else:
                    crowded[who] += 1
        used[slot] |= np.uint16(1 << life[row])
        live[slot] |= np.uint16(1 << life[row])
    return role, life, newest + 1, crowded
