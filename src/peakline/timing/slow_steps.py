"""What slow steps do longer than the others: the names of events whose self time grows most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray
from peakline.tables import Profile
from peakline.tables.joins import ranges
from peakline.timing.step_facts import FEWEST_STEPS, PARTS, SLOW, WARM_UP, StepFacts
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity, is_marker
from peakline.trace.events import Nesting, nesting_of, trace_of
from peakline.trace.nesting import self_times

_DOES = np.full(len(Activity), 1.0)
_DOES[[Activity.NOTHING, Activity.WAIT, Activity.HOST]] = 0.5

_WINDOWS = 64
"""So many slow steps, and so many others, are looked at."""

DEVIATIONS = 5.0
"""Slow steps are so many standard deviations above the median, as the median absolute deviation
estimates them: on a busy machine all steps differ."""
_NORMAL = 1.4826
"""Standard deviations per median absolute deviation of what is spread normally."""

TURN_PS = 10 * 10**9
"""... and 10 ms more, unless slow steps come at even distances: for so long the system may give a
core to somebody else."""

SLOW_COMPILE = 0.5
"""A step more than half of whose extra time is compilation is none of them."""


@dataclass(frozen=True)
class Longer:
    """An event name: how much longer its runs take in a slow step than in a usual one.

    ``extra_ps`` is the difference of self time per step, ``runs`` and ``usual_runs`` how often it
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


@dataclass(frozen=True, eq=False)
class SlowSteps:
    """Steps that take much longer than the median of ``steps``, which leave out the first ones.

    ``rows`` are theirs in `StepFacts`, the slowest first; ``median_ps`` is that of all,
    ``slow_median_ps`` their own. ``lost_ps`` is what they take longer together, ``share`` that by
    the time of all. ``beyond`` says per part how much longer it takes, ``period`` the distance
    between them where it is always the same.
    """

    rows: AnyArray
    steps: int
    median_ps: float
    slow_median_ps: float
    lost_ps: float
    share: float
    beyond: dict[str, float]
    period: int | None
    longest: Longer | None

    @property
    def most(self) -> str:
        """The part that takes most of it."""
        return max(self.beyond, key=lambda name: self.beyond[name])


def slow_steps_of(
    profile: Profile, facts: StepFacts, varies: float, once: float
) -> SlowSteps | None:
    """The slow steps of ``facts`` that are not slow for compilation.

    None where they lose less than the share ``varies`` of the time, or ``once`` where it is a
    single one; nor of inferred steps, as one function may do different things, nor where most
    steps took no time: damage, of which nothing is a multiple.
    """
    rows, wall = facts.slowest_lane()
    rows, wall = rows[WARM_UP:], wall[WARM_UP:]
    if rows.size < FEWEST_STEPS or facts.is_inferred:
        return None
    median = float(np.median(wall))
    if median <= 0:
        return None
    spread = _NORMAL * float(np.median(np.abs(wall - median)))
    extra = wall - median
    usual = {name: float(np.median(facts.part(name)[rows])) for name in PARTS}
    compiled = facts.part("compile_ps")[rows] - usual["compile_ps"]
    slow = (wall >= SLOW * median) & (extra > DEVIATIONS * spread)
    slow &= compiled < SLOW_COMPILE * extra
    if _period(np.flatnonzero(slow)) is None:
        slow &= extra >= TURN_PS
    lost = float(extra[slow].sum())
    share = lost / float(wall.sum()) if slow.any() else 0.0
    if share < (varies if np.count_nonzero(slow) > 1 else once):
        return None
    at = np.flatnonzero(slow)
    return SlowSteps(
        rows=rows[at][np.argsort(-wall[at], kind="stable")],
        steps=rows.size,
        median_ps=median,
        slow_median_ps=float(np.median(wall[at])),
        lost_ps=lost,
        share=share,
        beyond={name: float((facts.part(name)[rows[at]] - usual[name]).sum()) for name in PARTS},
        period=_period(at),
        longest=longest_of(profile, facts.part("start_ps")[rows], facts.part("end_ps")[rows], slow),
    )


def _period(at: AnyArray) -> int | None:
    """The distance between slow steps, where it is always the same (three of them or more)."""
    distances = np.unique(np.diff(at))
    return int(distances[0]) if at.size > 2 and distances.size == 1 and distances[0] > 1 else None


def longest_of(
    profile: Profile, begin: AnyArray, end: AnyArray, is_slow: BoolArray
) -> Longer | None:
    """The name with most extra time in the windows that are slow; None where no event says it.

    ``begin`` and ``end`` are the windows of all steps, in order of time; of many an even choice is
    looked at. Markers of steps say nothing of what they hold.
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


def own_in(nesting: Nesting, begin: AnyArray, end: AnyArray) -> tuple[AnyArray, AnyArray]:
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
        events = ranges(first, last)
        return events, nesting.own_ps[events]
    events = ranges(first, behind)
    total, own = np.empty(events.size, np.int64), np.empty(events.size, np.int64)
    self_times(
        trace.start, trace.end, events.astype(np.int32), bounds, np.concatenate(nests), total, own
    )
    mine = events < np.repeat(last, behind - first)
    return events[mine], own[mine]
