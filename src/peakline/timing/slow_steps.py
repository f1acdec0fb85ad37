"""What slow steps do longer than the others: the names of events whose own time grows most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from peakline.trace.activity import Activity, activity_of
from peakline.trace.activity_names import is_marker
from peakline.trace.events import Nesting, nesting_of, trace_of
from peakline.trace.nesting import own_times

if TYPE_CHECKING:
    from peakline.tables import Profile

__all__ = ["Longer", "longest_of", "own_in"]

_Array = npt.NDArray[Any]

_DOES = np.full(len(Activity), 1.0)
_DOES[[Activity.NOTHING, Activity.WAIT, Activity.HOST]] = 0.5

_WINDOWS = 64
"""So many slow steps, and so many others, are looked at."""


@dataclass(frozen=True)
class Longer:
    """An event name: how much longer its runs take in a slow step than in a usual one.

    ``extra_ps`` is the difference of own time per step, ``runs`` and ``usual_runs`` how often it
    runs in a slow step and in a usual one.
    """

    name: str
    extra_ps: int
    runs: float
    usual_runs: float

    @property
    def is_same_work(self) -> bool:
        """Whether it runs as often as ever, and only takes longer."""
        return self.runs <= 1.1 * self.usual_runs


def longest_of(
    profile: Profile, begin: _Array, end: _Array, is_slow: npt.NDArray[np.bool_]
) -> Longer | None:
    """The name with most extra time in the windows that are slow; None where no event tells.

    ``begin`` and ``end`` are the windows of all steps, in order of time; of many an even choice is
    looked at. Markers of steps tell nothing of what they hold.
    """
    trace = trace_of(profile)
    if not trace.size or not is_slow.any() or is_slow.all():
        return None
    # What calls others, or waits for them, says less than what they do: it counts half.
    activity = activity_of(profile)
    names = len(trace.name.values)
    times, weighed, runs = [], [], []
    for chosen in (np.flatnonzero(is_slow), np.flatnonzero(~is_slow)):
        some = chosen[np.linspace(0, chosen.size - 1, min(chosen.size, _WINDOWS)).astype(np.int64)]
        events, own = own_in(nesting_of(profile), begin[some], end[some])
        codes = trace.name.codes[events]
        times.append(np.bincount(codes, own, names) / some.size)
        weighed.append(np.bincount(codes, own * _DOES[activity[events]], names) / some.size)
        runs.append(np.bincount(codes, minlength=names) / some.size)
    extra = times[0] - times[1]
    for code in np.argsort(weighed[1] - weighed[0], kind="stable").tolist():
        if extra[code] <= 0:
            return None
        name = trace.name.values[code]
        if not is_marker(name):
            return Longer(name, round(extra[code]), float(runs[0][code]), float(runs[1][code]))
    return None


def own_in(nesting: Nesting, begin: _Array, end: _Array) -> tuple[_Array, _Array]:
    """The events (places in the trace) that begin in one of the windows, and their self time in ps.

    The windows do not overlap. What they hold is nested by itself, unless that is most of all.
    """
    trace = nesting.trace
    parts, nests = [np.zeros((0, 3), np.int64)], [np.zeros(0, np.bool_)]
    for line in trace.lines:
        start = trace.start[line.events]
        first, last = np.searchsorted(start, begin), np.searchsorted(start, end)
        used = np.flatnonzero(last > first)
        # What lies in one of them may begin later.
        ends = [
            int(trace.end[line.first + lo : line.first + hi].max())
            for lo, hi in zip(first[used].tolist(), last[used].tolist(), strict=True)
        ]
        parts.append(np.stack([first[used], last[used], np.searchsorted(start, ends)], axis=1))
        parts[-1] += line.first
        nests.append(np.full(used.size, line.nests))
    first, last, behind = np.concatenate(parts).T
    behind = np.maximum(behind, last)
    bounds = np.concatenate([[0], np.cumsum(behind - first)])
    if bounds[-1] > trace.size:
        events = _ranges(first, last)
        return events, nesting.own_ps[events]
    events = _ranges(first, behind)
    total, own = np.empty(events.size, np.int64), np.empty(events.size, np.int64)
    own_times(
        trace.start, trace.end, events.astype(np.int32), bounds, np.concatenate(nests), total, own
    )
    mine = events < np.repeat(last, behind - first)
    return events[mine], own[mine]


def _ranges(first: _Array, last: _Array) -> _Array:
    """All numbers from each of ``first`` to the one of ``last``, exclusive."""
    parts = [np.arange(lo, hi) for lo, hi in zip(first.tolist(), last.tolist(), strict=True)]
    return np.concatenate([np.zeros(0, np.int64), *parts])
