"""Which deallocation ends which allocation: buffer lifetimes from an allocator's records.

A buffer is known by its allocation id where the record has one, else by its address, always
within its allocator. Records are taken in time order and a deallocation ends the *latest*
allocation of its key that is still live. One pass, one hash table sized by what is live at a
time, so the cost grows with the records and the memory with neither their addresses nor ids.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from peakline.profile.columns import Columns

__all__ = [
    "ALLOCATION",
    "DEALLOCATION",
    "OTHER",
    "UNTRACKED_ALLOCATION",
    "UNTRACKED_DEALLOCATION",
    "Lifetimes",
    "match_lifetimes",
]

OTHER = 0
"""A record that neither begins nor ends a buffer (reservation, expansion)."""
ALLOCATION = 1
"""Begins a buffer."""
DEALLOCATION = 2
"""Ends a buffer, or finds none live under its key."""
UNTRACKED_ALLOCATION = 3
"""An allocation without an id and without an address: its end can never be seen."""
UNTRACKED_DEALLOCATION = 4
"""A deallocation without an id and without an address."""
_KIND_OF_ACTIVITY = {"allocation": ALLOCATION, "deallocation": DEALLOCATION}


@dataclass(frozen=True, eq=False)
class Lifetimes:
    """Per record of ``allocator_events``, in its order.

    ``allocator`` is the index into ``allocators`` (sorted names, a missing name is ``""``),
    ``kind`` one of the constants of this module. ``end`` is, for an ALLOCATION, the row that
    ended the buffer: its deallocation, or the next allocation under the same key (a double
    allocation); -1 while it is live at the end. ``begin`` is, for that row, the ALLOCATION it
    ended; -1 for every other row, so a DEALLOCATION with ``begin`` -1 is unmatched.
    """

    allocators: tuple[str, ...]
    allocator: npt.NDArray[np.int32]
    kind: npt.NDArray[np.uint8]
    begin: npt.NDArray[Any]
    end: npt.NDArray[Any]

    def live_after(self, moments: npt.NDArray[np.int64]) -> npt.NDArray[np.intp]:
        """Rows of the buffers live after row ``moments[allocator]``; -1 stands for never."""
        rows = int(moments.max(initial=-1)) + 1
        moment = moments.astype(self.end.dtype)[self.allocator[:rows]]
        live = self.kind[:rows] == ALLOCATION
        live &= np.arange(rows, dtype=self.end.dtype) <= moment
        live &= (self.end[:rows] < 0) | (self.end[:rows] > moment)
        return np.flatnonzero(live)


@nb.njit(cache=True, nogil=True, inline="always")
def _hash(
    key: np.uint64, by_id: bool, allocator: int, seed: np.uint64
) -> np.uint64:  # pragma: no cover - compiled
    """Mix as MurmurHash3 finishes; the seed keeps chosen keys from making long probes."""
    mixed = key ^ seed ^ (np.uint64(2 * allocator + by_id) * np.uint64(0x9E3779B97F4A7C15))
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    mixed = (mixed ^ (mixed >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return mixed ^ (mixed >> np.uint64(33))


@nb.njit(cache=True, nogil=True)
def _match(
    kind: npt.NDArray[np.uint8],
    allocator: npt.NDArray[np.int32],
    number: npt.NDArray[np.int64],
    has_number: npt.NDArray[np.bool_],
    address: npt.NDArray[np.uint64],
    has_address: npt.NDArray[np.bool_],
    begin: npt.NDArray[Any],
    end: npt.NDArray[Any],
    seed: np.uint64,
) -> None:  # pragma: no cover - compiled
    """Fill ``begin`` and ``end`` (given as -1) and turn keyless records of ``kind`` untracked.

    The table holds row numbers; the key of a slot is the key of its row, and the slot is dead
    when that row has an end. Dead slots stay until the table is rebuilt.
    """
    table = np.full(1024, -1, np.int64)
    used = 0
    for row in range(kind.size):
        what = kind[row]
        if what == OTHER:
            continue
        by_id = has_number[row]
        if not by_id and not has_address[row]:
            kind[row] = what + 2
            continue
        key = np.uint64(number[row]) if by_id else address[row]
        owner = allocator[row]
        mask = np.uint64(table.size - 1)
        slot = _hash(key, by_id, owner, seed) & mask
        holder = table[slot]
        while holder >= 0:
            if allocator[holder] == owner and has_number[holder] == by_id:
                held = np.uint64(number[holder]) if by_id else address[holder]
                if held == key:
                    break
            slot = (slot + np.uint64(1)) & mask
            holder = table[slot]
        if holder >= 0 and end[holder] < 0:
            end[holder] = row
            begin[row] = holder
        if what != ALLOCATION:
            continue
        table[slot] = row
        if holder >= 0:
            continue
        used += 1
        if 2 * used <= table.size:
            continue
        used = 0
        for other in table:
            if other >= 0 and end[other] < 0:
                used += 1
        size = 1024
        while size < 4 * used:
            size *= 2
        old = table
        table = np.full(size, -1, np.int64)
        mask = np.uint64(table.size - 1)
        for other in old:
            if other >= 0 and end[other] < 0:
                other_id = has_number[other]
                other_key = np.uint64(number[other]) if other_id else address[other]
                place = _hash(other_key, other_id, allocator[other], seed) & mask
                while table[place] >= 0:
                    place = (place + np.uint64(1)) & mask
                table[place] = other


def match_lifetimes(events: Columns) -> Lifetimes:
    """Match the records of ``allocator_events``, which must be in time order."""
    names = events.names("allocator")
    # A dictionary may hold unused or repeated strings; number the names that occur.
    occurs = np.zeros(len(names.values) + 1, np.bool_)
    occurs[names.codes] = True  # the null code -1 is the last place
    texts = {
        code: names.values[code] if code < len(names.values) else ""
        for code in np.flatnonzero(occurs).tolist()
    }
    allocators = tuple(sorted(set(texts.values())))
    order = {text: number for number, text in enumerate(allocators)}
    number_of = np.zeros(occurs.size, np.int32)
    for code, text in texts.items():
        number_of[code] = order[text]

    activity = events.names("activity")
    kind_of = np.array(
        [_KIND_OF_ACTIVITY.get(name, OTHER) for name in (*activity.values, "")], np.uint8
    )
    kind = kind_of[activity.codes]
    row_type = np.int32 if events.rows < 2**31 else np.int64
    begin = np.full(events.rows, -1, row_type)
    end = np.full(events.rows, -1, row_type)
    allocator = number_of[names.codes]
    _match(
        kind,
        allocator,
        np.ascontiguousarray(events.array("allocation_id"), np.int64),
        events.is_valid("allocation_id"),
        np.ascontiguousarray(events.array("address"), np.uint64),
        events.is_valid("address"),
        begin,
        end,
        np.uint64(secrets.randbits(64)),
    )
    return Lifetimes(allocators, allocator, kind, begin, end)
