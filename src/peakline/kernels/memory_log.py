"""Loops over the records of a memory log."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import low64, unsigned64
    from peakline.kernels.memory_log_layout import (
        BEGINS_OR_ENDS,
        MOST_LIVES,
        RAW_DEALLOCATION,
        SHARED,
        TENSOR_ALLOCATION,
        TENSOR_DEALLOCATION,
        TENSOR_OUTPUT,
    )

__all__ = ["move", "pair", "track"]


def pair(
    group: cython.const[cython.longlong][::1],
    deferred: cython.const[cython.uchar][::1],
    head: cython.longlong[::1],
    tail: cython.longlong[::1],
    behind: cython.longlong[::1],
    partner: cython.longlong[::1],
) -> None:
    """Per record that is not deferred the earliest deferred one of its group that is still open.

    ``group`` is negative for records that take no part. Writes the position of the ``partner``
    (given as -1). ``head`` (given as -1) and ``tail`` have a place per group, ``behind`` (given as
    -1) one per record.
    """
    row: cython.longlong
    own: cython.longlong
    with cython.nogil:
        for row in range(group.shape[0]):
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


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _find(
    key_number: cython.const[cython.longlong][::1],
    key_allocator: cython.const[cython.int][::1],
    number: cython.longlong,
    allocator: cython.longlong,
    seed: cython.ulonglong,
) -> cython.ulonglong:
    """The slot of a key, or the empty one where it belongs."""
    one: cython.ulonglong = 0x9E3779B97F4A7C15
    two: cython.ulonglong = 0xFF51AFD7ED558CCD
    three: cython.ulonglong = 0xC4CEB9FE1A85EC53
    mask: cython.ulonglong = key_number.shape[0] - 1
    mixed: cython.ulonglong = unsigned64(number) ^ seed ^ low64(unsigned64(allocator) * one)
    slot: cython.ulonglong
    mixed = low64((mixed ^ (mixed >> 33)) * two)
    mixed = low64((mixed ^ (mixed >> 33)) * three)
    slot = (mixed ^ (mixed >> 33)) & mask
    while key_allocator[slot] >= 0 and (
        key_number[slot] != number or key_allocator[slot] != allocator
    ):
        slot = (slot + 1) & mask
    return slot


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _highest(bits: cython.int) -> cython.int:
    """The number of the highest set bit, -1 when none is."""
    result: cython.int = -1
    while bits:
        bits >>= 1
        result += 1
    return result


def track(
    kind: cython.const[cython.uchar][::1],
    skipped: cython.const[cython.uchar][::1],
    allocator: cython.const[cython.int][::1],
    number: cython.const[cython.longlong][::1],
    op: cython.const[cython.int][::1],
    anonymous: cython.const[cython.uchar][::1],
    seed: cython.ulonglong,
    role: cython.uchar[::1],
    life: cython.uchar[::1],
    newest: cython.longlong[::1],
    crowded: cython.longlong[::1],
    key_number: cython.longlong[::1],
    key_allocator: cython.int[::1],
    used: cython.ushort[::1],
    live: cython.ushort[::1],
    owner: cython.int[::1],
    was_output: cython.uchar[::1],
    at: cython.longlong[::1],
) -> bool:
    """What each record means for the buffers, by the ids that are live where it stands.

    ``skipped`` marks records that mean nothing, ``anonymous`` those whose op is not the one
    that requested. Writes per record its ``role`` (BEGINS_OR_ENDS, SHARED) and its ``life``: how
    often the ids of its allocator had begun anew; then per allocator its ``newest`` life, and how
    many allocations came under an id of which none was left (``crowded``). All four are given as 0.

    An id is given out once by an allocator, so an allocation under an id that had one already
    belongs to another process or object. It goes to the latest life in which its id is unused.

    The hash table is ``key_number`` and ``key_allocator`` (given as -1; a power of two of slots),
    and what is known of the key. ``at`` holds the next record and the number of keys, in and out.
    Returns False where the table is half full: call again with a larger one, filled by `move`.
    """
    count: cython.longlong = kind.shape[0]
    row: cython.longlong = at[0]
    keys: cython.longlong = at[1]
    who: cython.longlong
    slot: cython.ulonglong
    what: cython.int
    free: cython.int
    has_room: cython.bint = True
    with cython.nogil:
        while row < count:
            if 2 * keys >= key_number.shape[0]:
                has_room = False
                break
            what = kind[row]
            row += 1
            if what < TENSOR_ALLOCATION or skipped[row - 1]:
                continue
            who = allocator[row - 1]
            life[row - 1] = newest[who]
            if what != TENSOR_OUTPUT:
                role[row - 1] = BEGINS_OR_ENDS
            if number[row - 1] <= 0:
                continue
            slot = _find(key_number, key_allocator, number[row - 1], who, seed)
            if what == TENSOR_DEALLOCATION or what == RAW_DEALLOCATION:
                if key_allocator[slot] >= 0 and live[slot]:
                    life[row - 1] = _highest(live[slot])
                    live[slot] = live[slot] & ~(1 << life[row - 1])
                continue
            if key_allocator[slot] < 0:
                key_number[slot], key_allocator[slot] = number[row - 1], who
                keys += 1
            if what == TENSOR_OUTPUT:
                if live[slot]:
                    life[row - 1] = _highest(live[slot])
                    if was_output[slot] or (owner[slot] != -1 and owner[slot] != op[row - 1]):
                        role[row - 1] = SHARED
                    was_output[slot] = True
                    continue
                role[row - 1] = BEGINS_OR_ENDS
                was_output[slot] = True
                owner[slot] = op[row - 1]
            else:
                was_output[slot] = False
                owner[slot] = -1 if anonymous[row - 1] else op[row - 1]
                if used[slot] & (1 << newest[who]):
                    free = ~used[slot] & ((1 << newest[who]) - 1)
                    if free:
                        life[row - 1] = _highest(free)
                    elif newest[who] < MOST_LIVES - 1:
                        newest[who] += 1
                        life[row - 1] = newest[who]
                    else:
                        crowded[who] += 1
            used[slot] = used[slot] | (1 << life[row - 1])
            live[slot] = live[slot] | (1 << life[row - 1])
    at[0], at[1] = row, keys
    return has_room


def move(
    old_number: cython.const[cython.longlong][::1],
    old_allocator: cython.const[cython.int][::1],
    key_number: cython.longlong[::1],
    key_allocator: cython.int[::1],
    seed: cython.ulonglong,
    place: cython.longlong[::1],
) -> None:
    """Enter the keys of one table into a larger one; ``place`` (given as -1) is where each is."""
    slot: cython.ulonglong
    k: cython.longlong
    with cython.nogil:
        for k in range(old_number.shape[0]):
            if old_allocator[k] >= 0:
                slot = _find(key_number, key_allocator, old_number[k], old_allocator[k], seed)
                key_number[slot], key_allocator[slot] = old_number[k], old_allocator[k]
                place[k] = slot
