"""What slow steps do longer than the others: the names of events whose own time grows most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from peakline.analysis.timing.activity import Activity, activity_of
from peakline.analysis.timing.activity_names import is_marker
from peakline.analysis.timing.trace import Trace, nesting_of, trace_of

if TYPE_CHECKING:
    from peakline.profile import Profile

__all__ = ["Longer", "longest_of"]

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
    own, names = nesting_of(profile).own_ps, len(trace.name.values)
    times, weighed, runs = [], [], []
    for chosen in (np.flatnonzero(is_slow), np.flatnonzero(~is_slow)):
        some = chosen[np.linspace(0, chosen.size - 1, min(chosen.size, _WINDOWS)).astype(np.int64)]
        events = _events_in(trace, begin[some], end[some])
        codes = trace.name.codes[events]
        times.append(np.bincount(codes, own[events], names) / some.size)
        weighed.append(np.bincount(codes, own[events] * _DOES[activity[events]], names) / some.size)
        runs.append(np.bincount(codes, minlength=names) / some.size)
    extra = times[0] - times[1]
    for code in np.argsort(weighed[1] - weighed[0], kind="stable").tolist():
        if extra[code] <= 0:
            return None
        name = trace.name.values[code]
        if not is_marker(name):
            return Longer(name, round(extra[code]), float(runs[0][code]), float(runs[1][code]))
    return None


def _events_in(trace: Trace, begin: _Array, end: _Array) -> _Array:
    """The events that begin in one of the windows, which do not overlap."""
    parts = [np.zeros(0, np.int64)]
    for line in trace.lines:
        start = trace.start[line.events]
        ranges = zip(
            np.searchsorted(start, begin).tolist(),
            np.searchsorted(start, end).tolist(),
            strict=True,
        )
        parts += [np.arange(line.first + lo, line.first + hi) for lo, hi in ranges if hi > lo]
    return np.concatenate(parts)
