"""Which deallocation ends which allocation, by a hash table of what is live."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import low64, unsigned64
    from peakline.kernels.memory_layout import ALLOCATION, OTHER

__all__ = ["enter", "match"]

Rows = cython.fused_type(cython.int, cython.longlong)
"""Row numbers: 32 bits where that is enough."""


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _hash(
    key: cython.ulonglong, by_id: cython.bint, allocator: cython.longlong, seed: cython.ulonglong
) -> cython.ulonglong:
    """Mix as MurmurHash3 finishes; the seed keeps chosen keys from making long probes."""
    owner: cython.ulonglong = unsigned64(2 * allocator + by_id)
    one: cython.ulonglong = 0x9E3779B97F4A7C15
    two: cython.ulonglong = 0xFF51AFD7ED558CCD
    three: cython.ulonglong = 0xC4CEB9FE1A85EC53
    mixed: cython.ulonglong = key ^ seed ^ low64(owner * one)
    mixed = low64((mixed ^ (mixed >> 33)) * two)
    mixed = low64((mixed ^ (mixed >> 33)) * three)
    return mixed ^ (mixed >> 33)


def match(
    kind: cython.uchar[::1],
    allocator: cython.const[cython.int][::1],
    number: cython.const[cython.longlong][::1],
    has_number: cython.const[cython.uchar][::1],
    address: cython.const[cython.ulonglong][::1],
    has_address: cython.const[cython.uchar][::1],
    begin: Rows[::1],
    end: Rows[::1],
    seed: cython.ulonglong,
    tables: cython.longlong[:, ::1],
    at: cython.longlong[::1],
) -> bool:
    """Fill ``begin`` and ``end`` (given as -1) and turn keyless records of ``kind`` untracked.

    Both rows of ``tables`` are hash tables of row numbers (a power of two of slots, empty ones -1),
    of which one is in use at a time. The key of a slot is the key of its row, and the slot is dead
    when that row has an end; dead slots go when a table is half full and the other takes over.
    ``at`` holds the next record, the slots in use and which table it is, in and out. Returns False
    when more than a quarter of a table lives: call again with larger ones, which `enter` fills.
    """
    row: cython.longlong = at[0]
    used: cython.longlong = at[1]
    which: cython.longlong = at[2]
    size: cython.longlong = tables.shape[1]
    mask: cython.ulonglong = size - 1
    slot: cython.ulonglong
    key: cython.ulonglong
    held: cython.ulonglong
    holder: cython.longlong
    owner: cython.longlong
    other: cython.longlong
    k: cython.longlong
    what: cython.int
    by_id: cython.bint
    has_room: cython.bint = True
    with cython.nogil:
        while row < kind.shape[0] and has_room:
            what = kind[row]
            row += 1
            if what == OTHER:
                continue
            by_id = has_number[row - 1]
            if not by_id and not has_address[row - 1]:
                kind[row - 1] = what + 2
                continue
            key = unsigned64(number[row - 1]) if by_id else address[row - 1]
            owner = allocator[row - 1]
            slot = _hash(key, by_id, owner, seed) & mask
            holder = tables[which, slot]
            while holder >= 0:
                if allocator[holder] == owner and (has_number[holder] != 0) == by_id:
                    held = unsigned64(number[holder]) if by_id else address[holder]
                    if held == key:
                        break
                slot = (slot + 1) & mask
                holder = tables[which, slot]
            if holder >= 0 and end[holder] < 0:
                end[holder] = row - 1
                begin[row - 1] = holder
            if what != ALLOCATION:
                continue
            tables[which, slot] = row - 1
            if holder >= 0:
                continue
            used += 1
            if 2 * used <= size:
                continue
            used = 0
            for k in range(size):
                other = tables[which, k]
                if other >= 0 and end[other] < 0:
                    used += 1
            if 4 * used > size:
                has_room = False
                continue
            for k in range(size):
                tables[1 - which, k] = -1
            for k in range(size):
                other = tables[which, k]
                if other >= 0 and end[other] < 0:
                    by_id = has_number[other]
                    key = unsigned64(number[other]) if by_id else address[other]
                    slot = _hash(key, by_id, allocator[other], seed) & mask
                    while tables[1 - which, slot] >= 0:
                        slot = (slot + 1) & mask
                    tables[1 - which, slot] = other
            which = 1 - which
    at[0], at[1], at[2] = row, used, which
    return has_room


def enter(
    rows: cython.const[cython.longlong][::1],
    allocator: cython.const[cython.int][::1],
    number: cython.const[cython.longlong][::1],
    has_number: cython.const[cython.uchar][::1],
    address: cython.const[cython.ulonglong][::1],
    seed: cython.ulonglong,
    table: cython.longlong[::1],
) -> None:
    """Put the live ``rows`` into an empty ``table`` (all -1) that has room for them."""
    mask: cython.ulonglong = table.shape[0] - 1
    slot: cython.ulonglong
    key: cython.ulonglong
    row: cython.longlong
    k: cython.longlong
    by_id: cython.bint
    with cython.nogil:
        for k in range(rows.shape[0]):
            row = rows[k]
            by_id = has_number[row]
            key = unsigned64(number[row]) if by_id else address[row]
            slot = _hash(key, by_id, allocator[row], seed) & mask
            while table[slot] >= 0:
                slot = (slot + 1) & mask
            table[slot] = row
