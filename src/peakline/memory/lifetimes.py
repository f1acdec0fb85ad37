"""Which deallocation ends which allocation: buffer lifetimes from an allocator's records.

A buffer is known by its allocation id where the record has one, else by its address, always
within its allocator. Records are taken in time order and a deallocation ends the *latest*
allocation of its key that is still live. One pass, one hash table sized by what is live at a
time, so the cost grows with the records and the memory with neither their addresses nor ids.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import numpy as np

from peakline.arrays import (
    AnyArray,
    BoolArray,
    Int32Array,
    Int64Array,
    IntpArray,
    UInt8Array,
    UInt64Array,
)
from peakline.kernels.lifetimes import enter, match
from peakline.kernels.memory_layout import ALLOCATION, DEALLOCATION, OTHER
from peakline.shown import Brief
from peakline.tables.columns import Columns

_KIND_OF_ACTIVITY = {"allocation": ALLOCATION, "deallocation": DEALLOCATION}


@dataclass(frozen=True, eq=False, repr=False)
class Lifetimes(Brief):
    """Per record of ``allocator_events``, in its order.

    ``allocator`` is the index into ``allocators`` (sorted names, a missing name is ``""``),
    ``kind`` one of OTHER to UNTRACKED_DEALLOCATION (`peakline.kernels.memory_layout`). ``end`` is,
    for an ALLOCATION, the row that ended the buffer: its deallocation, or the next allocation under
    the same key (a double allocation); -1 while it is live at the end. ``begin`` is, for that row,
    the ALLOCATION it ended; -1 for every other row, so a DEALLOCATION with ``begin`` -1 is
    unmatched.
    """

    allocators: tuple[str, ...]
    allocator: Int32Array
    kind: UInt8Array
    begin: AnyArray
    end: AnyArray

    def live_after(self, moments: Int64Array) -> IntpArray:
        """Rows of the buffers live after row ``moments[allocator]``; -1 stands for never."""
        rows = int(moments.max(initial=-1)) + 1
        moment = moments.astype(self.end.dtype)[self.allocator[:rows]]
        live = self.kind[:rows] == ALLOCATION
        live &= np.arange(rows, dtype=self.end.dtype) <= moment
        live &= (self.end[:rows] < 0) | (self.end[:rows] > moment)
        return np.flatnonzero(live)


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
    )
    return Lifetimes(allocators, allocator, kind, begin, end)


def _match(
    kind: UInt8Array,
    allocator: Int32Array,
    number: Int64Array,
    has_number: BoolArray,
    address: UInt64Array,
    has_address: BoolArray,
    begin: AnyArray,
    end: AnyArray,
) -> None:
    """Match with tables that grow with what is live at a time."""
    seed = secrets.randbits(64)
    tables = np.full((2, 1024), -1, np.int64)
    at = np.zeros(3, np.int64)
    keys = allocator, number, has_number, address
    while not match(kind, *keys, has_address, begin, end, seed, tables, at):
        table = tables[at[2]]
        held = table[table >= 0]
        live = held[end[held] < 0]
        tables = np.full((2, 4 * tables.shape[1]), -1, np.int64)
        enter(live, *keys, seed, tables[0])
        at[1:] = live.size, 0
