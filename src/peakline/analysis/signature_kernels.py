"""The compiled pass that numbers the distinct rows of a table of keys."""

from __future__ import annotations

import secrets

import numba as nb
import numpy as np
import numpy.typing as npt

__all__ = ["number_keys"]

_ROOM = 512
"""So many distinct keys have room at first."""


@nb.njit(nogil=True, forceinline=True)
def _mix(one, two, three, seed):  # type: ignore[no-untyped-def]
    """One hash of a key of three numbers; the finishing steps are MurmurHash3's.

    The seed keeps chosen keys from making long probes.
    """
    mixed = np.uint64(one) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= np.uint64(two) * np.uint64(0xFF51AFD7ED558CCD) ^ np.uint64(three) ^ seed
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return mixed ^ (mixed >> np.uint64(33))


@nb.njit(cache=True, nogil=True)
def _number(keys, numbers, table, first, start, count, seed):  # type: ignore[no-untyped-def]
    """Number the keys from place ``start`` on, as far as ``first`` has room for new ones.

    ``table`` (a power of two of slots, empty ones -1) holds the ``count`` known numbers. What
    returns is the place that found no room, else the number of keys, and the new count.
    """
    mask = np.uint64(table.size - 1)
    for place in range(start, numbers.size):
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
            slot = (slot + np.uint64(1)) & mask
            group = table[slot]
        if group < 0:
            if count == first.size:
                return place, count
            group = count
            table[slot] = group
            first[group] = place
            count += 1
        numbers[place] = group
    return numbers.size, count


def number_keys(
    keys: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Number the distinct rows of ``keys`` (three columns) in order of first appearance.

    Returns the number of every row, and the first row of each.
    """
    seed = np.uint64(secrets.randbits(64))
    numbers = np.empty(len(keys), np.int32)
    first = np.empty(_ROOM, np.int64)
    table = np.full(2 * _ROOM, -1, np.int64)
    place = count = 0
    while True:
        place, count = _number(keys, numbers, table, first, place, count, seed)
        if place == len(keys):
            return numbers, first[:count]
        # The memory that is allocated here would take the compiler as long as the pass itself.
        table = np.full(8 * count, -1, np.int64)
        known, unused = np.empty(count, np.int64), np.empty(count, np.int32)
        _number(keys[first], unused, table, known, 0, 0, seed)
        first = np.concatenate([first, np.empty(3 * count, np.int64)])
