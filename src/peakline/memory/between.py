"""What happens to memory from one moment to another: allocated, still live, freed, by group.

Of a range from A to B: the buffers that are allocated in it, which of them are live after B's last
record, and which were freed by then; and the buffers from before A that are freed in it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array, IntpArray
from peakline.memory.grouped import grouped_buffers
from peakline.memory.live import MemoryRecords
from peakline.memory.live_bytes import begun, live_bytes
from peakline.memory.usage import buffer_bytes
from peakline.tables import Profile
from peakline.tables.joins import summed


@dataclass(frozen=True)
class Amount:
    """So many bytes in so many buffers."""

    bytes: int
    buffers: int


@dataclass(frozen=True, eq=False)
class Between:
    """A range of one allocator, both moments included. ``rows`` are the records in it that begin a
    buffer, ascending; per row: ``bytes``, ``count`` of buffers that it stands for, whether it is
    live ``at_b``, and ``at_end`` of the profile. ``freed_older`` is what was allocated before A
    and freed by B. ``used_a`` and ``used_b`` are bytes in use, None before the first record.
    """

    start_ps: int
    end_ps: int
    rows: IntpArray
    bytes: Int64Array
    count: Int64Array
    at_b: BoolArray
    at_end: BoolArray
    freed_older: Amount
    used_a: int | None
    used_b: int | None

    def amount(self, chosen: BoolArray | None = None) -> Amount:
        """All that was allocated in the range, or what ``chosen`` marks of it."""
        if chosen is None:
            return Amount(int(self.bytes.sum()), int(self.count.sum()))
        return Amount(int(self.bytes[chosen].sum()), int(self.count[chosen].sum()))


@dataclass(frozen=True)
class Part:
    """What a group has of a range: allocated in it, of that still live at B, and at the end."""

    key: str
    allocated: Amount
    live_b: Amount
    live_end: Amount


def between(records: MemoryRecords, number: int, start_ps: int, end_ps: int) -> Between:
    """The range of an allocator, by its number; ``end_ps`` is not before ``start_ps``."""
    events, lifetimes = records.events, records.lifetimes
    time = events.array("time_ps")
    first = int(np.searchsorted(time, start_ps, "left"))
    past = int(np.searchsorted(time, end_ps, "right"))
    every = begun(records, number)
    was_there = (events.array("is_before") & events.is_valid("is_before"))[every]
    inside = (every >= first) & (every < past) & ~was_there
    rows = every[inside]
    ends = lifetimes.end[rows].astype(np.int64)
    own = records.rows(number)
    ended = own[np.searchsorted(own, first) : np.searchsorted(own, past)]
    begins = lifetimes.begin[ended]
    begins = begins[begins >= 0]
    # Those from before the profile have a record in it, which is none of the range's.
    older = begins[(begins < first) | _was_there(records, begins)]
    at_a = records.at(number, start_ps)
    at_b = records.at(number, end_ps)
    return Between(
        start_ps=start_ps,
        end_ps=end_ps,
        rows=rows,
        bytes=buffer_bytes(events, rows),
        count=counts_of(records, rows),
        at_b=(ends < 0) | (ends >= past),
        at_end=ends < 0,
        freed_older=Amount(
            int(buffer_bytes(events, older).sum()), int(counts_of(records, older).sum())
        ),
        used_a=None if at_a is None else at_a.bytes_in_use,
        used_b=None if at_b is None else at_b.bytes_in_use,
    )


def _was_there(records: MemoryRecords, rows: IntpArray) -> BoolArray:
    events = records.events
    found: BoolArray = (events.array("is_before") & events.is_valid("is_before"))[rows]
    return found


def counts_of(records: MemoryRecords, rows: IntpArray) -> Int64Array:
    """How many buffers each of the records stands for."""
    events = records.events
    found: Int64Array = np.where(events.is_valid("count")[rows], events.array("count")[rows], 1)
    return found


def parts_of(profile: Profile, number: int, found: Between, group: str) -> list[Part]:
    """The range by ``group``: what is still live at B first, then what was allocated."""
    labels = grouped_buffers(profile, number, group)
    codes = labels.codes[np.searchsorted(live_bytes(profile, number).rows, found.rows)]
    ids, place = np.unique(codes, return_inverse=True)

    def amounts(chosen: BoolArray | None) -> list[Amount]:
        where = slice(None) if chosen is None else np.flatnonzero(chosen)
        sizes = summed(place[where], found.bytes[where], ids.size)
        counts = summed(place[where], found.count[where], ids.size)
        return [Amount(*pair) for pair in zip(sizes.tolist(), counts.tolist(), strict=True)]

    columns = (amounts(None), amounts(found.at_b), amounts(found.at_end))
    parts = [
        Part(labels.texts[one], *each) for one, *each in zip(ids.tolist(), *columns, strict=True)
    ]
    return sorted(parts, key=lambda one: (-one.live_b.bytes, -one.allocated.bytes, one.key))
