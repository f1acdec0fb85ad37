"""Time and memory step by step, so that several profiles can be laid beside one another.

A step lasts, for memory, until the next one begins: what is freed between two steps is not left by
the first. Steps are merged evenly where there are more than a picture has pixels. A profile without
steps is divided evenly by time instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array
from peakline.memory.over_time.live import MemoryRecords, memory_records
from peakline.tables import Profile
from peakline.timing.steps.facts import step_facts_of
from peakline.trace.steps import steps_of

MOST_ALLOCATORS = 16
"""Those with the largest peaks."""


@dataclass(frozen=True, eq=False)
class MemoryBins:
    """Memory in use of one allocator, bytes of each bin: the least, the most, and at its end.

    None is what nobody knows yet: a bin before the allocator's first record.
    """

    allocator: str
    peak_bytes: int
    low: list[int | None]
    high: list[int | None]
    end: list[int | None]


@dataclass(frozen=True, eq=False)
class StepSeries:
    """The steps of a profile in order of time, merged to bins.

    Of bin k ``first[k]`` is the number of its first step from 0 on, ``count[k]`` how many it has,
    ``name[k]`` what the first is called, ``start_ps[k]`` when that begins; ``wall_low_ps`` and
    ``wall_high_ps`` are the times of its shortest and longest step, of the device where each took
    longest; None where nobody knows. ``steps`` is 0 where the profile has none: bins are even parts
    of ``start_ps[0]`` to ``end_ps`` then, and ``first``, ``count`` and ``name`` say nothing.
    """

    steps: int
    first: list[int]
    count: list[int]
    name: list[str]
    start_ps: list[int]
    end_ps: int
    wall_low_ps: list[int] | None
    wall_high_ps: list[int] | None
    allocators: list[MemoryBins]


def step_series(profile: Profile, most: int, *, by_time: bool = False) -> StepSeries | None:
    """The series in at most ``most`` bins; None for a profile without steps and without memory.

    With ``by_time`` as of a profile without steps.

    Raises InputError when the profile cannot be read.
    """
    records = memory_records(profile)
    steps = None if by_time else _steps(profile)
    if steps is None:
        return None if records is None else _by_time(records, most)
    begin, finish, wall, names = steps
    bins = min(most, begin.size)
    first = (np.arange(bins) * begin.size) // bins
    last = np.append(first[1:], begin.size)
    until = int(finish.max())
    edges = np.append(begin[first], max(until, int(begin[-1]) + 1))
    return StepSeries(
        begin.size,
        first.tolist(),
        (last - first).tolist(),
        [names[k] for k in first.tolist()],
        begin[first].tolist(),
        int(edges[-1]),
        None if wall is None else np.minimum.reduceat(wall, first).tolist(),
        None if wall is None else np.maximum.reduceat(wall, first).tolist(),
        [] if records is None else _memory(records, edges),
    )


_StepTimes = tuple[Int64Array, Int64Array, Int64Array | None, list[str]]


def _steps(profile: Profile) -> _StepTimes | None:
    """Begin, end, time and name of every step, in order of time; None without steps."""
    facts = step_facts_of(profile)
    if facts.rows:
        rows, wall = facts.slowest_lane()
        begin, finish = facts.part("start_ps")[rows], facts.part("end_ps")[rows]
        return begin, finish, wall, [facts.label(int(row)) for row in rows]
    steps = steps_of(profile)
    if not steps.size:
        return None
    order = np.argsort(steps.begin, kind="stable")
    return steps.begin[order], steps.end[order], None, [steps.label(int(row)) for row in order]


def _by_time(records: MemoryRecords, most: int) -> StepSeries:
    time = records.events.array("time_ps")
    start, end = int(time.min()), int(time.max()) + 1
    bins = min(most, end - start)
    # Python's integers: the product is too large for 64 bits where a record lasts for hours.
    edges = np.array([start + (end - start) * k // bins for k in range(bins + 1)], np.int64)
    return StepSeries(0, [], [], [], edges[:-1].tolist(), end, None, None, _memory(records, edges))


def _memory(records: MemoryRecords, edges: Int64Array) -> list[MemoryBins]:
    """Memory of each allocator from each edge to the next, the largest peak first."""
    time = records.events.array("time_ps")
    result = []
    for number, usage in enumerate(records.usages):
        if usage.peak_row < 0:
            continue
        series = records.series(number)
        if not series.rows.size:
            continue
        at, used = time[series.rows], series.used
        place = np.searchsorted(at, edges, "left")
        result.append((usage.peak, number, _bins(used, place)))
    result.sort(key=lambda one: (-one[0], one[1]))
    return [
        MemoryBins(records.allocators[number], int(peak), *bins)
        for peak, number, bins in result[:MOST_ALLOCATORS]
    ]


def _bins(
    used: Int64Array, place: Int64Array
) -> tuple[list[int | None], list[int | None], list[int | None]]:
    """Least, most and last value between the records ``place[k]`` and ``place[k + 1]``, of what is
    in use at the beginning and of what comes after.
    """
    low: list[int | None] = []
    high: list[int | None] = []
    end: list[int | None] = []
    for begin, until in zip(place[:-1].tolist(), place[1:].tolist(), strict=True):
        within = used[max(begin - 1, 0) : until]
        if not within.size:
            low.append(None)
            high.append(None)
            end.append(None)
            continue
        low.append(int(within.min()))
        high.append(int(within.max()))
        end.append(int(within[-1]))
    return low, high, end
