"""Times of an XSpace on the profile's clock, none of which is farther than sums can reach.

The file may hold any 64-bit number as a line's time, an event's offset or its duration; a line's
time since 1970 is more picoseconds than 64 bits hold. A sum that wraps would be a wrong time that
nobody notices. So one rule holds for every table: a line begins within `FARTHEST_LINE_PS` of
the profile's start, an event within `FARTHEST_PS`, and takes from 0 to `LONGEST_PS`; what is beyond
is taken as the nearest that is not, and counted. The events of a line that is too far keep their
distances from it. A start and a duration are judged alone, so that either is the same whichever
columns are read, and every end is still within 2**62 ps: no later sum or difference of two times
can wrap.

Step grouping and the columns that read the file as upstream does (``memory_snapshots``, starts in
``module_runs``) see the numbers as they stand in the file.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np

from peakline.arrays import AnyArray, Int64Array, UInt8Array
from peakline.tables.reader import Warnings

LONGEST_PS = 2**60
"""No event takes longer (13 days)."""
FARTHEST_LINE_PS = 2**61
"""No line begins farther from the profile's start (26 days)."""
FARTHEST_PS = 2**62 - 1 - LONGEST_PS
"""No event does (40 days)."""
OFFSET = 2
"""The case of the oneof ``data`` of an event that has a start."""
OCCURRENCES = 5
"""The case of the oneof ``data`` of an event that is many: it has no start."""

Far = Counter[tuple[int, str]]
"""How many times were out of reach, by plane and by what they are of it."""


class FarTimes:
    """What the readings of one file found out of reach; each time is counted once.

    Different tables have the same times, so what one reading counted of a plane is not added to
    what another did: the most counts.
    """

    __retained__ = "_known"

    def __init__(self) -> None:
        self._known, self._reported = Far(), 0

    def note(self, far: Far) -> None:
        """Take the counts of one whole reading."""
        self._known |= far

    def report(self, warnings: Warnings) -> None:
        """Count what has not been counted yet."""
        every = self._known.total()
        warnings.add(
            "times_too_far",
            "times that no profile has: lines more than 26 days from its start, events more than "
            "40, durations over 13 days or below 0; taken as the nearest that one can have",
            every - self._reported,
        )
        self._reported = every


def clock_zero_ns(timestamps_ns: list[int], sizes: list[int]) -> int:
    """The time of the earliest line, which is the profile's start; 0 without lines.

    Where lines lie too far apart for one clock (a damaged time, or none at all among times since
    1970), the earliest of those that have most of the content (``sizes``, in bytes).
    """
    reach = FARTHEST_LINE_PS // 1000
    if not timestamps_ns or max(timestamps_ns) - min(timestamps_ns) <= reach:
        return min(timestamps_ns, default=0)
    lines = sorted(zip(timestamps_ns, sizes, strict=True))
    best, zero, inside, last = -1, lines[0][0], 0, 0
    for first, size in lines:
        while last < len(lines) and lines[last][0] - first <= reach:
            inside += lines[last][1]
            last += 1
        if inside > best:
            best, zero = inside, first
        inside -= size
    return zero


def nearest_line(base_ps: int) -> int:
    """Where a line can begin that is nearest to ``base_ps`` after the profile's start."""
    return min(max(base_ps, -FARTHEST_LINE_PS), FARTHEST_LINE_PS)


def nearest_start(base_ps: int, offset_ps: int) -> int:
    """Where an event can begin, nearest to ``offset_ps`` after what its line's base becomes."""
    return min(max(nearest_line(base_ps) + offset_ps, -FARTHEST_PS), FARTHEST_PS)


def place(offset: Int64Array, base_ps: int, case: UInt8Array | None = None) -> int:
    """Make int64 offsets from a line's base (any whole number) times, in place: `nearest_start`.

    Returns how many were out of reach, or on a line that is, without those that have no start by
    their ``case``.
    """
    if not offset.size:
        return 0
    base = nearest_line(base_ps)
    low, high = -FARTHEST_PS - base, FARTHEST_PS - base
    if base == base_ps and low <= int(offset.min()) and int(offset.max()) <= high:
        offset += base
        return 0
    far = (offset < low) | (offset > high) | (base != base_ps)
    np.clip(offset, low, high, out=offset)
    offset += base
    return int(np.count_nonzero(far if case is None else far & (case != OCCURRENCES)))


def place_runs(
    offset: AnyArray, line: AnyArray, bases_ps: list[int], case: AnyArray | None = None
) -> int:
    """As `place`, for offsets on several lines: ``line`` is the place of each one's base."""
    # Lines are long runs: one addition per line instead of a gather.
    changes = np.flatnonzero(line[1:] != line[:-1]) + 1
    bounds = [0, *changes.tolist(), line.size] if line.size else [0]
    return sum(
        place(offset[lo:hi], bases_ps[int(line[lo])], None if case is None else case[lo:hi])
        for lo, hi in pairwise(bounds)
    )


def nearest_duration(duration_ps: int) -> int:
    """How long an event can take that is nearest to ``duration_ps``."""
    return min(max(duration_ps, 0), LONGEST_PS)


def limit_durations(duration: Int64Array) -> int:
    """Make int64 durations those that events can have, in place: `nearest_duration`.

    Returns how many changed.
    """
    if not duration.size or (int(duration.min()) >= 0 and int(duration.max()) <= LONGEST_PS):
        return 0
    far = int(np.count_nonzero((duration < 0) | (duration > LONGEST_PS)))
    np.clip(duration, 0, LONGEST_PS, out=duration)
    return far


def add_durations(start: AnyArray, duration: AnyArray) -> tuple[AnyArray, int]:
    """``start + duration``, which ends with the int64 range; and how many ended so."""
    with np.errstate(over="ignore"):
        end = start + duration
    wrapped = (end < start) != (duration < 0)
    end[wrapped] = np.where(duration[wrapped] < 0, -(2**63), 2**63 - 1)
    return end, int(np.count_nonzero(wrapped))
