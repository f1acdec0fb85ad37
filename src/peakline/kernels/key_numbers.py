"""The numbering of the distinct rows of a table of keys."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import low64, unsigned64

__all__ = ["number"]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _mix(
    one: cython.longlong, two: cython.longlong, three: cython.longlong, seed: cython.ulonglong
) -> cython.ulonglong:
    """One hash of a key of three numbers; the finishing steps are MurmurHash3's.

    The seed keeps chosen keys from making long probes.
    """
    first: cython.ulonglong = 0x9E3779B97F4A7C15
    second: cython.ulonglong = 0xFF51AFD7ED558CCD
    last: cython.ulonglong = 0xC4CEB9FE1A85EC53
    mixed: cython.ulonglong = low64(unsigned64(one) * first)
    mixed ^= low64(unsigned64(two) * second) ^ unsigned64(three) ^ seed
    mixed = low64((mixed ^ (mixed >> 33)) * last)
    return mixed ^ (mixed >> 33)


def number(
    keys: cython.const[cython.longlong][:, ::1],
    numbers: cython.int[::1],
    table: cython.longlong[::1],
    first: cython.longlong[::1],
    at: cython.longlong[::1],
    seed: cython.ulonglong,
) -> bool:
    """Number the rows of ``keys``, three columns wide, as far as ``first`` has room for new ones.

    ``table`` (a power of two of slots, more than ``first`` has, empty ones -1) holds the known
    numbers, ``first`` the first row of each. ``at`` holds the next row and how many numbers are
    known, in and out. Returns whether every row has its number.
    """
    mask: cython.ulonglong = table.shape[0] - 1
    slot: cython.ulonglong
    place: cython.longlong = at[0]
    count: cython.longlong = at[1]
    group: cython.longlong
    other: cython.longlong
    with cython.nogil:
        while place < keys.shape[0]:
            slot = _mix(keys[place, 0], keys[place, 1], keys[place, 2], seed) & mask
            group = table[slot]
            while group >= 0:
                other = first[group]
                if (
                    keys[other, 0] == keys[place, 0]
                    and keys[other, 1] == keys[place, 1]
                    and keys[other, 2] == keys[place, 2]
                ):
                    break
                slot = (slot + 1) & mask
                group = table[slot]
            if group < 0:
                if count == first.shape[0]:
                    break
                group = count
                table[slot] = group
                first[group] = place
                count += 1
            numbers[place] = group
            place += 1
    at[0], at[1] = place, count
    return place == keys.shape[0]
