"""Which records of memory a question is about: the allocator, and the stretch of time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline import memory
from peakline.tools.live_memory import no_records

if TYPE_CHECKING:
    from peakline.memory.over_time.live import MemoryRecords
    from peakline.tables import Profile

MOST_PS = 1 << 62
"""Times further from the profile's start are none."""


def recorded(profile: Profile, allocator: str | None) -> tuple[MemoryRecords, int] | None:
    """The records, and the number of the allocator: by default the one with the largest peak.

    None where nothing says how much is in use; that there are no records at all is a warning, and
    NotFoundError where an ``allocator`` is named.
    """
    records = memory.memory_records(profile)
    if records is None:
        no_records(profile, allocator)
        return None
    number = records.number_of(allocator)
    return None if number is None else (records, number)


def stretch_of(records: MemoryRecords, start_ps: int | None, end_ps: int | None) -> tuple[int, int]:
    """Start and end (exclusive) as a caller gives them; by default those of all records."""
    time = records.events.array("time_ps")
    start = int(time.min()) if start_ps is None else start_ps
    return start, int(time.max()) + 1 if end_ps is None else end_ps
