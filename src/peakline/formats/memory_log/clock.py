"""A log's clock: picoseconds since its first record, never backwards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array

_MOST_NS = (2**63 - 1) // 1000
_DAY = 86_400 * 10**9
_YEAR = 366 * _DAY
"""A time of less than a year is counted from the beginning of its year, or if all of these are
less than a day, from midnight: the log did not say more, and the clock begins again."""


@dataclass(frozen=True, eq=False)
class Clock:
    """``time_ps`` per record, and what had to be done for it.

    ``missing`` records had no time and have that of the one before. ``behind`` had an earlier
    time than a record before them and have that one's. ``far`` lay further from the first than
    int64 holds (106 days) and have the largest time. ``numbered``: no record had a time, so the
    record's number stands for it.
    """

    time_ps: Int64Array
    missing: int
    behind: int
    far: int
    numbered: bool


def read_clock(time_ns: Int64Array) -> Clock:
    """The clock of records with these times (nanoseconds since the epoch, 0: not known).

    Times without a date or a year go on over midnight and new year, and where a log changes
    from one kind to another, the first of the new kind is taken for the time of the one before.
    """
    known = time_ns > 0
    if not known.any():
        return Clock(np.arange(time_ns.size, dtype=np.int64), time_ns.size, 0, 0, numbered=True)
    missing = int(time_ns.size - known.sum())
    times = _one_kind(time_ns[known] if missing else time_ns.astype(np.int64, copy=False))
    running = np.maximum.accumulate(times)
    behind = int((times < running).sum())
    if missing:
        # Each has the time of the one before it; those before the first, that of the first.
        running = running[np.maximum(np.cumsum(known) - 1, 0)]
    latest = running - running[0]
    far = int((latest > _MOST_NS).sum())
    np.minimum(latest, _MOST_NS, out=latest)
    latest *= 1000
    return Clock(latest, missing, behind, far, numbered=False)


def _one_kind(times: Int64Array) -> Int64Array:
    """All times on one clock, whatever they were counted from."""
    undated = times < _YEAR
    if not undated.any():
        return times
    joined = np.array(times, np.int64)
    rows = np.flatnonzero(undated)
    joined[rows] = _unwrapped(times[rows], _DAY if times[rows].max() < _DAY else _YEAR)
    changes = np.flatnonzero(undated[1:] != undated[:-1])
    if changes.size:
        before = changes[0]
        second = undated == undated[before + 1]
        joined[second] += joined[before] - joined[before + 1]
    return joined


def _unwrapped(times: Int64Array, turn: int) -> Int64Array:
    """Times of a clock that begins again after ``turn``: a step of half a turn goes around."""
    steps = np.diff(times)
    turns = np.cumsum((steps < -turn // 2).astype(np.int64) - (steps > turn // 2))
    unwrapped = times.copy()
    unwrapped[1:] += turns * turn
    return unwrapped
