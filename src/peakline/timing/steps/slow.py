"""What slow steps do longer than the others: the names of events whose self time grows most."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.tables import Profile
from peakline.tables.joins import ranges, summed
from peakline.timing.ops.names import EAGER
from peakline.timing.steps.facts import FEWEST_STEPS, PARTS, SLOW, WARM_UP, StepFacts
from peakline.timing.steps.threads import StepThreads, step_threads_of
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity, is_marker
from peakline.trace.distribution import deviation
from peakline.trace.events import HOST, Nesting, Trace, nesting_of, trace_of
from peakline.trace.frames import Frame, frame_of
from peakline.trace.intervals import covered, union
from peakline.trace.nesting import self_times

ALONE = 0.1
"""It runs in slow steps alone when it runs in others at most a tenth as often."""
_HALF = 0.5
"""It says why they are slow when all of it takes half of what they take longer."""
_NAMES = 2
_AT_ONCE = 1 << 20

# What names say of themselves, without a frame: ``EagerLocalExecute: __inference_NAME_12`` is a
# function of TensorFlow, ``EagerLocalExecute: OP`` an op that it runs eagerly
# (tensorflow/core/common_runtime/eager/execute.cc), ``PjitFunction(NAME)`` a function of JAX
# (jaxlib/pjit.cc), ``aten::op`` an op of PyTorch.
_FUNCTION = re.compile(
    rf"{EAGER}__(?:inference|forward|backward)_(?P<tf>.+?)_\d+$|PjitFunction\((?P<jax>.+)\)$"
)
_WORK = re.compile(
    rf"{EAGER}(?P<eager>.+)|(?P<op>[A-Za-z0-9.][\w./>-]*):[A-Z_]\w*$|(?P<torch>aten::\w+)$"
    r"|(?P<traced>tf\.function-graph_building)$|(?P<stage>MakeIterator::\w+)$"
)


@dataclass(frozen=True)
class OnlySlow:
    """``names`` of what slow steps run alone, what says most first: functions before ops;
    ``each_ps`` is how long all of it takes of one step, on any thread.
    """

    names: tuple[str, ...]
    each_ps: int
    has_function: bool


def only_slow(
    profile: Profile, begin: AnyArray, end: AnyArray, is_slow: BoolArray, extra_ps: float
) -> OnlySlow | None:
    """What runs in slow steps alone, where it takes half of the ``extra_ps`` of one or more.

    ``begin`` and ``end`` are the windows of all steps, in order of time; they do not overlap.
    """
    trace = trace_of(profile)
    if not trace.size or not is_slow.any() or is_slow.all():
        return None
    label, names, is_function = _labels(trace.name.values)
    if not names:
        return None
    often, usual = np.zeros((2, len(names)))
    is_labelled = label >= 0
    parts: list[tuple[AnyArray, AnyArray]] = []
    for first, stop in _portions(trace):
        codes = trace.name.codes[first:stop]
        event = np.flatnonzero(is_labelled[codes])
        one = label[codes[event]]
        event += first
        step = np.searchsorted(begin, trace.start[event], "right") - 1
        inside = (step >= 0) & (trace.start[event] < end[np.maximum(step, 0)])
        slow = inside & is_slow[step]
        often += np.bincount(one[slow], minlength=len(names))
        usual += np.bincount(one[inside & ~slow], minlength=len(names))
        parts.append((event[slow], one[slow]))
    if not parts:
        return None
    event, one = (np.concatenate(part) for part in zip(*parts, strict=True))
    often /= np.count_nonzero(is_slow)
    usual /= np.count_nonzero(~is_slow)
    mine = ((often > 0) & (usual <= ALONE * often))[one]
    if not mine.any():
        return None
    one, event = one[mine], event[mine]
    starts, ends = trace.start[event], trace.end[event]
    each = covered(union(starts, ends), begin[is_slow], end[is_slow])
    if float(each.mean()) < _HALF * extra_ps:
        return None
    took: Int64Array = summed(one, ends - starts, len(names))
    order = np.lexsort((-took, ~is_function))
    order = order[took[order] > 0]
    chosen = tuple(names[place] for place in order[:_NAMES].tolist())
    return OnlySlow(chosen, int(each.mean()), bool(is_function[order[0]]))


def _portions(trace: Trace) -> Iterator[tuple[int, int]]:
    """The events of the host in turn: the first and the one after the last of each portion.

    All at once, the columns of ten million events would take as much memory as the events.
    """
    for line in trace.lines_on(HOST):
        for first in range(line.first, line.last, _AT_ONCE):
            yield first, min(first + _AT_ONCE, line.last)


def _labels(values: Sequence[str]) -> tuple[Int64Array, list[str], BoolArray]:
    """What each name of an event (the last: none) stands for, -1 for nothing; the names of those,
    and which of them are functions.
    """
    numbers: dict[tuple[bool, str], int] = {}
    label = np.full(len(values) + 1, -1, np.int64)
    for code, name in enumerate(values):
        function = _FUNCTION.match(name)
        work = None if function else _WORK.match(name)
        if result := function or work:
            text = next(part for part in result.groups() if part)
            label[code] = numbers.setdefault((function is not None, text), len(numbers))
    is_function = np.array([key[0] for key in numbers], np.bool_)
    return label, [name for _, name in numbers], is_function


_DOES = np.full(len(Activity), 1.0)
_DOES[[Activity.NOTHING, Activity.WAIT, Activity.HOST]] = 0.5

_WINDOWS = 64
"""So many slow steps, and so many others, are looked at."""

DEVIATIONS = 5.0
"""Slow steps are so many standard deviations above the median, as the median absolute deviation
estimates them: on a busy machine all steps differ."""

TURN_PS = 10 * 10**9
"""... and 10 ms more, unless slow steps come at even distances: for so long the system may give a
core to somebody else."""

HALF = 0.5
"""A function says why steps are slow when it takes half of what they take longer."""

_OP = "::"
"""In the names of PyTorch's ops, and of C++ functions: no name that a program gives."""
FEW = 0.34
"""What more than a third of the steps do is usual."""

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
    between them where it is always the same. ``function`` is the one of the program that takes
    ``function_ps`` longer in a slow step, at least half of all it takes longer, and ``is_alone``
    says that it runs in slow steps alone; None where no frame says it. ``only`` is what they run
    and the others do not, where no function says it.
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
    function: Frame | None = None
    function_ps: int = 0
    is_alone: bool = False
    only: OnlySlow | None = None

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
    steps took no time: damage, of which nothing is a multiple. Nor where the others only hand
    their work to a runtime, and the slow ones wait until it is done: then marks of steps do not
    say how long a step takes.
    """
    rows, wall = facts.slowest_lane()
    first = wall[:WARM_UP]
    rows, wall = rows[WARM_UP:], wall[WARM_UP:]
    if rows.size < FEWEST_STEPS or facts.is_inferred:
        return None
    median = float(np.median(wall))
    if median <= 0:
        return None
    spread = deviation(wall)
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
        # Where all steps differ, some may still do what the others do not.
        more = _does_more(profile, rows, wall)
        if more is None:
            return None
        slow = more
        median = float(np.median(wall[~slow]))
        lost = float((wall[slow] - median).sum())
        share = lost / float(wall.sum())
        if share < varies:
            return None
    at = np.flatnonzero(slow)
    # A period may begin in the steps that are left out.
    early = np.flatnonzero(first >= SLOW * median) - WARM_UP
    begin, end = facts.part("start_ps")[rows], facts.part("end_ps")[rows]
    each = lost / max(at.size, 1)
    if not facts.has_device:
        waited = _waits(profile, begin, end, slow)
        if waited is not None and lost - waited < varies * float(wall.sum()):
            return None
    function = function_of(profile, begin, slow, each)
    return SlowSteps(
        rows=rows[at][np.argsort(-wall[at], kind="stable")],
        steps=rows.size,
        median_ps=median,
        slow_median_ps=float(np.median(wall[at])),
        lost_ps=lost,
        share=share,
        beyond={name: float((facts.part(name)[rows[at]] - usual[name]).sum()) for name in PARTS},
        period=_period(np.append(early, at)) or _period(at),
        longest=longest_of(profile, begin, end, slow),
        only=None if function else only_slow(profile, begin, end, slow, each),
        **function,
    )


def _waits(profile: Profile, begin: AnyArray, end: AnyArray, slow: BoolArray) -> int | None:
    """For how long (ps) slow steps wait until runs are done that other steps launched.

    None unless they launch no more than the others, most of whose runs end in no step of their
    own: in the slow ones, or behind the last. On the host XLA gives all that a run of a program
    executes one stat ``run_id``.
    """
    trace = trace_of(profile)
    if trace.source != "events" or "event_stats" not in profile.tables:
        return None
    stats = profile.typed_stats(frozenset(("run_id",)))
    place = trace.places(stats.array("event_id"))
    known = (place >= 0) & stats.is_valid("integer")
    runs, run = np.unique(stats.array("integer")[known], return_inverse=True)
    done = np.zeros(runs.size, np.int64)
    np.maximum.at(done, run, trace.end[place[known]])
    done = np.sort(done[done > begin[0]])
    is_launch = activity_of(profile) == Activity.LAUNCH
    launch = np.concatenate(
        [np.zeros(0, np.int64)]
        + [
            line.first + np.flatnonzero(is_launch[line.first : line.last])
            for line in trace.lines_on(HOST)
        ]
    )
    launches = _in_steps(begin, end, trace.start[launch])
    ends = _in_steps(begin, end, done)
    usual = np.median(launches[~slow])
    if not usual or np.median(launches[slow]) > (1 + ALONE) * usual:
        return None
    if not np.median(ends[~slow]) < HALF * done.size / begin.size < np.median(ends[slow]):
        return None
    last = done[np.maximum(np.searchsorted(done, end[slow], "right") - 1, 0)]
    return int(np.maximum(last - begin[slow], 0).sum())


def _in_steps(begin: AnyArray, end: AnyArray, times: AnyArray) -> Int64Array:
    """How many of ``times`` lie in each step."""
    step = np.searchsorted(begin, times, "right") - 1
    inside = (step >= 0) & (times <= end[np.maximum(step, 0)])
    return np.bincount(step[inside], minlength=begin.size)


def function_of(
    profile: Profile, start: AnyArray, is_slow: BoolArray, extra_ps: float
) -> dict[str, Any]:
    """The outermost function of the program that only slow steps run and that takes at least half
    of the ``extra_ps`` of one; else the innermost that takes so much longer in them.

    ``start`` are the beginnings of all steps, in order of time.
    """
    threads = step_threads_of(profile)
    if threads is None or not threads.has_steps:
        return {}
    order = np.argsort(start, kind="stable")
    nearest = order[np.maximum(np.searchsorted(start[order], threads.begin, "right") - 1, 0)]
    slow = is_slow[nearest]
    if not slow.any() or slow.all():
        return {}
    # What the program marked says it where no frame does.
    chosen = threads.frame == np.arange(threads.event.size)
    if not threads.has_frames:
        marks = [not is_marker(name) and _OP not in name for name in threads.names.values]
        chosen = np.array([*marks, False], np.bool_)[threads.code]
    frames = np.flatnonzero(chosen & ~_holds_next(threads))
    codes, place = np.unique(threads.code[frames], return_inverse=True)
    event = threads.event[frames]
    took = (threads.trace.end[event] - threads.trace.start[event]).astype(np.float64)
    mine = slow[threads.step[frames]]
    means = [
        (np.bincount(place[part], took[part], codes.size) / count,
         np.bincount(place[part], minlength=codes.size) / count)
        for part, count in ((mine, slow.sum()), (~mine, (~slow).sum()))
    ]  # fmt: skip
    (slow_ps, slow_runs), (usual_ps, usual_runs) = means
    excess = slow_ps - usual_ps
    much = excess >= HALF * extra_ps
    never = usual_runs <= ALONE * slow_runs
    alone = much & never
    if not threads.has_frames:
        # A mark may be set in every step, and hold nothing in most.
        alone |= much & (usual_ps <= ALONE * slow_ps)
    if alone.any():
        best = int(np.where(alone, excess, 0).argmax())
    elif much.any() and threads.has_frames:
        # Each holds the next: the one with least is the innermost.
        best = int(np.where(much, excess, np.inf).argmin())
    else:
        return {}
    name = threads.names.values[int(codes[best])]
    return {
        "function": frame_of(name) or Frame("", 0, name, "program"),
        "function_ps": round(float(excess[best])),
        "is_alone": bool(never[best]),
    }


def _holds_next(threads: StepThreads) -> BoolArray:
    """Which events hold the next step too: the loop over steps, begun in one of them."""
    following = np.append(threads.begin[1:], np.iinfo(np.int64).max)
    holds: BoolArray = threads.trace.end[threads.event] > following[threads.step]
    return holds


def _does_more(profile: Profile, rows: AnyArray, wall: AnyArray) -> BoolArray | None:
    """Which steps do what the others do not: a function of the program, or what it marked, that
    takes at least half of the median step. None without any.
    """
    threads = step_threads_of(profile)
    if threads is None or not threads.has_steps or threads.steps != rows.size:
        return None
    event = threads.event
    took = threads.trace.end[event] - threads.trace.start[event]
    took = np.where(_holds_next(threads), 0, took)
    much = HALF * float(np.median(wall))
    result: BoolArray | None = None
    most = 0.0
    for code in np.unique(threads.code[took >= much]).tolist():
        name = threads.names.values[code] if code >= 0 else ""
        if not name or is_marker(name) or _OP in name:
            continue
        mine = threads.code == code
        each = np.bincount(threads.step[mine], took[mine], rows.size)
        long = each >= much
        # The others do not run it; of what a program marks, it may return at once there.
        least = 0.0 if frame_of(name) is not None else ALONE * float(np.median(each[long]))
        is_apart = bool((each[~long] <= least).all())
        if 2 <= np.count_nonzero(long) <= FEW * rows.size and is_apart and each.sum() > most:
            most, result = float(each.sum()), long
    return result


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
        codes = _op_codes(profile, events)
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


def _op_codes(profile: Profile, events: AnyArray) -> AnyArray:
    """The name that each event counts for: its own, or of the runtime's own work within an op that
    is run eagerly that op's.
    """
    trace = trace_of(profile)
    eager = np.array([*(name.startswith(EAGER) for name in trace.name.values), False], np.bool_)
    codes = trace.name.codes[events].copy()
    if not eager.any():
        return codes
    parent, does = nesting_of(profile).parent, activity_of(profile)
    above = np.where(does[events] == Activity.HOST, parent[events], -1)
    while (above >= 0).any():
        here = np.maximum(above, 0)
        is_op = (above >= 0) & eager[trace.name.codes[here]]
        codes[is_op] = trace.name.codes[here[is_op]]
        above = np.where((above >= 0) & ~is_op, parent[here], -1)
    return codes


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
