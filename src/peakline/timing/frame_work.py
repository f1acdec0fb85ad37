"""Which functions of a program take the time of its steps, and with what.

Only where frames were recorded. Time in which a device, or a thread that runs compiled programs,
works is no loss of the loop: what counts is when nothing else goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.tables import Profile
from peakline.tables.joins import summed
from peakline.tables.once import once
from peakline.timing.steps.facts import FEWEST_STEPS, SLOW
from peakline.timing.steps.threads import StepThreads, step_threads_of
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity
from peakline.trace.activity_sets import device_sets_of, either, host_sets_of
from peakline.trace.calls import Call, call_of
from peakline.trace.events import nesting_of, trace_of
from peakline.trace.frames import Frame, frame_of, has_name
from peakline.trace.intervals import Intervals, covered, union

_DEEPEST = 64
_LOOKED_AT = 64
"""So many of the events that may hold a function are looked into."""
_MOSTLY = 0.7
"""A function is named for what it calls only where that takes less than this share of it."""
_WORKS = (
    Activity.COMPUTE, Activity.COMMUNICATION, Activity.DEVICE_TO_DEVICE,
    Activity.DEVICE_TO_HOST, Activity.HOST_TO_DEVICE,
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class FrameWork:
    """What one function of the program does with one kind of call, in all steps.

    ``within`` is the function that it is called by and that a person would look for, None where
    it is called by no other. ``ps`` is its self time, ``calls`` how often it runs in a step,
    ``in_steps`` the share of steps that it runs in, ``callee`` what it calls that takes most.
    """

    frame: Frame
    call: Call
    ps: int
    share: float
    calls: float
    in_steps: float
    callee: str


@dataclass(frozen=True, eq=False)
class Idle:
    """The self time of the steps' threads while nothing else works, in ps per event.

    ``call`` says per event what it is part of and ``source`` of which (a place among them, -1 for
    none), ``is_python`` whether it is of Python or a library: no op, no compilation, no
    framework's work for an op; ``is_input`` whether it is a part of waiting for input, or of making
    it meanwhile.
    """

    threads: StepThreads
    ps: Int64Array
    call: AnyArray
    source: Int64Array
    is_python: BoolArray
    is_input: BoolArray

    @cached_property
    def is_usual(self) -> BoolArray:
        """Which events are of steps that take less than twice the median: what only a few steps
        do is said of those.
        """
        wall = self.threads.end - self.threads.begin
        usual = wall < SLOW * np.median(wall) if wall.size >= FEWEST_STEPS else wall >= 0
        result: BoolArray = usual[self.threads.step]
        return result

    def total(self, chosen: BoolArray) -> int:
        """The time of the ``chosen`` events."""
        return int(self.ps[chosen].sum())

    def within(self, places: Int64Array) -> Int64Array:
        """How long nothing else works in each of some events, with all that lies in it."""
        own = np.concatenate([[0], np.cumsum(self.ps)])
        trace, event = self.threads.trace, self.threads.event
        line = trace.lines_of(event)
        ends = np.searchsorted(line, line[places], "right")
        # Starts ascend within a line only.
        start, until = trace.start[event], trace.end[event[places]]
        inside = [
            int(np.searchsorted(start[at:end], last)) + at
            for at, end, last in zip(places.tolist(), ends.tolist(), until, strict=True)
        ]
        lengths: Int64Array = own[np.array(inside, np.int64)] - own[places]
        return lengths

    def by_function(self, chosen: BoolArray) -> list[FrameWork]:
        """The ``chosen`` time by innermost function and kind of call, most first."""
        threads = self.threads
        frame = _named(threads)
        use = np.flatnonzero(chosen & (frame >= 0) & (self.ps > 0))
        if not use.size or not threads.wall_ps:
            return []
        key = threads.code[frame[use]].astype(np.int64) * len(Call) + self.call[use]
        keys, place = np.unique(key, return_inverse=True)
        total = summed(place, self.ps[use], keys.size)
        result = []
        for number in np.argsort(-total, kind="stable").tolist():
            code, call = divmod(int(keys[number]), len(Call))
            one = frame_of(threads.names.values[code])
            mine = use[place == number]
            if one is None:
                continue
            runs = np.unique(frame[mine])
            result.append(
                FrameWork(
                    one,
                    Call(call),
                    int(total[number]),
                    int(total[number]) / threads.wall_ps,
                    runs.size / threads.steps,
                    np.unique(threads.step[runs]).size / threads.steps,
                    self._callee(mine),
                )
            )
        return result

    def _callee(self, mine: Int64Array) -> str:
        """What takes most of it below the function; empty where that is the function itself."""
        threads = self.threads
        call = np.where(self.source[mine] >= 0, self.source[mine], threads.call[mine])
        names = np.where(call >= 0, threads.code[np.maximum(call, 0)], -1)
        codes, place = np.unique(names, return_inverse=True)
        most = int(codes[summed(place, self.ps[mine], codes.size).argmax()])
        return callee_title(threads.names.values[most]) if most >= 0 else ""

    def path(self, chosen: BoolArray) -> list[tuple[Frame, int]]:
        """The functions that most of the ``chosen`` time leads through, the outermost first, each
        with the time in it and below.
        """
        threads = self.threads
        use = np.flatnonzero(chosen & (threads.frame >= 0) & (self.ps > 0))
        chains = [threads.frame[use]]
        while len(chains) < _DEEPEST and (chains[-1] >= 0).any():
            above = np.where(chains[-1] >= 0, threads.parent[chains[-1]], -1)
            chains.append(np.where(above >= 0, threads.frame[above], -1))
        result: list[tuple[Frame, int]] = []
        left, whole = np.ones(use.size, np.bool_), int(self.ps[use].sum())
        stack = _outermost_first(chains)
        for level in stack:
            codes = np.where((level >= 0) & left, threads.code[np.maximum(level, 0)], -1)
            known, place = np.unique(codes, return_inverse=True)
            totals = summed(place, self.ps[use], known.size)
            totals[known < 0] = 0
            most = int(totals.argmax()) if totals.size else 0
            if not totals.size or totals[most] < _MOSTLY * whole or not totals[most]:
                break
            one = frame_of(threads.names.values[int(known[most])])
            if one is None:
                break
            left &= codes == known[most]
            whole = int(totals[most])
            if has_name(one.function):
                result.append((one, whole))
        return result


def callee_title(name: str) -> str:
    """What a person calls an event below a function: the frame's title, or its name."""
    frame = frame_of(name)
    if frame is not None:
        return frame.title
    # Of a stage of an input pipeline the stages below it say which it is.
    return "::".join(name.split("::")[-2:]) if name.startswith("Iterator::") else name


def _outermost_first(chains: list[Int64Array]) -> Iterator[Int64Array]:
    """Of chains of places (innermost first, -1 after their end) the places level by level."""
    table = np.stack(chains)
    depth = (table >= 0).sum(axis=0)
    column = np.arange(table.shape[1])
    for level in range(int(depth.max(initial=0))):
        at = depth - 1 - level
        yield np.where(at >= 0, table[np.maximum(at, 0), column], -1)


def _named(threads: StepThreads) -> Int64Array:
    """The innermost function around each event that has a name, or the innermost at all."""
    unnamed = np.array(
        [
            (frame := frame_of(name)) is not None and not has_name(frame.function)
            for name in threads.names.values
        ]
        + [False],
        np.bool_,
    )
    result = threads.frame.copy()
    for _ in range(_DEEPEST):
        again = (result >= 0) & unnamed[threads.code[np.maximum(result, 0)]]
        above = np.where(again, threads.parent[np.maximum(result, 0)], -1)
        outer = np.where(above >= 0, threads.frame[np.maximum(above, 0)], -1)
        again &= outer >= 0
        if not again.any():
            break
        result = np.where(again, outer, result)
    return result


@once
def idle_of(profile: Profile) -> Idle | None:
    """What the steps' threads do while nothing else works; None where nothing says which those are.

    Raises InputError when the profile cannot be read.
    """
    threads = step_threads_of(profile)
    if threads is None or not threads.wall_ps:
        return None
    activity = activity_of(profile)[threads.event]
    trace = threads.trace
    busy = covered(_busy(profile, threads), trace.start[threads.event], trace.end[threads.event])
    inner = threads.parent >= 0
    own_busy = busy.astype(np.float64)
    own_busy -= np.bincount(threads.parent[inner], busy[inner], threads.event.size)
    ps = np.maximum(threads.own_ps - np.maximum(own_busy, 0).astype(np.int64), 0)
    of_name = np.array([*(call_of(name) for name in threads.names.values), Call.WORK], np.int64)
    own_call = of_name[threads.code]
    at = threads.above(own_call != Call.WORK)
    call = np.where(at >= 0, own_call[at], Call.WORK)
    input_wait = threads.within(activity == Activity.INPUT_WAIT)
    return Idle(threads, ps, call, at, _is_python(threads, activity), input_wait)


def _busy(profile: Profile, threads: StepThreads) -> Intervals:
    """When a device works, or a thread that runs compiled programs or ops for it."""
    devices = device_sets_of(profile)
    if devices:
        return either(*(one.sets[kind] for one in devices for kind in _WORKS if kind in one.sets))
    if not threads.has_steps:
        # Without steps nothing says which threads work for them: all others may.
        trace, own = threads.trace, threads.trace.lines_of(threads.event[:1])
        events = np.flatnonzero(activity_of(profile) == Activity.HOST_OP)
        events = events[trace.lines_of(events) != own]
        return union(trace.start[events], trace.end[events])
    sets = host_sets_of(profile)
    return either(*(sets[kind] for kind in (Activity.HOST_OP, *_WORKS) if kind in sets))


def _is_python(threads: StepThreads, activity: AnyArray) -> BoolArray:
    """Which events are Python's own work, or a library's, for the function around them."""
    frames = [frame_of(name) for name in threads.names.values]
    is_frame = np.array([*(one is not None for one in frames), False], np.bool_)[threads.code]
    is_framework = np.array(
        [*(one is not None and one.whose == "framework" for one in frames), False], np.bool_
    )[threads.code]
    is_op = ~is_frame & (activity != Activity.NOTHING) & (activity != Activity.HOST)
    works_for_ops = threads.above(is_op | is_framework)
    return is_frame & (works_for_ops < 0) & (threads.frame >= 0)


def function_around(profile: Profile, events: AnyArray, *, by_number: bool = False) -> Frame | None:
    """The function of the program in which most of the time of ``events`` (places in the trace,
    none in another) goes by, or most of them lie; None where no frame says it for half of it.
    """
    threads = step_threads_of(profile)
    if threads is None or not threads.has_frames or not events.size:
        return None
    place = np.searchsorted(threads.event, events)
    place = np.minimum(place, threads.event.size - 1)
    known = threads.event[place] == events
    frame = np.where(known, _named(threads)[place], -1)
    trace = threads.trace
    took = np.ones(events.size, np.int64) if by_number else trace.end[events] - trace.start[events]
    codes, group = np.unique(
        np.where(frame >= 0, threads.code[np.maximum(frame, 0)], -1), return_inverse=True
    )
    totals = summed(group, took, codes.size)
    whole = int(totals.sum())
    totals[codes < 0] = 0
    most = int(totals.argmax())
    if 2 * int(totals[most]) < whole or not totals[most]:
        return None
    return frame_of(threads.names.values[int(codes[most])])


def function_of_loop(profile: Profile, events: AnyArray) -> Frame | None:
    """As `function_around`, else the function that began before the steps did and runs them all."""
    result = function_around(profile, events)
    if result is not None or not events.size:
        return result
    trace = trace_of(profile)
    frames = [frame_of(name) for name in trace.name.values]
    named = [one is not None and one.whose == "program" and one.function[0] != "<"
             for one in frames]  # fmt: skip
    around = nesting_of(profile).around(events, np.array([*named, False])[trace.name.codes])
    codes, counts = np.unique(trace.name.codes[around[around >= 0]], return_counts=True)
    if not codes.size or 2 * int(counts.max()) < events.size:
        return None
    return frames[int(codes[counts.argmax()])]


def function_inside(profile: Profile, events: AnyArray) -> Frame | None:
    """The outermost function of the program that runs within ``events`` for longest; None where
    no frame was recorded there.
    """
    trace = trace_of(profile)
    times: dict[int, int] = {}
    for event in events[:_LOOKED_AT].tolist():
        line = trace.lines[int(trace.lines_of(np.array([event]))[0])]
        inside = event + 1
        while inside < line.last and trace.start[inside] < trace.end[event]:
            code = int(trace.name.codes[inside])
            frame = frame_of(trace.name.values[code]) if code >= 0 else None
            if frame is not None and frame.whose == "program":
                times[code] = times.get(code, 0) + int(trace.end[inside] - trace.start[inside])
                break
            inside += 1
    if not times:
        return None
    return frame_of(trace.name.values[max(times, key=lambda code: times[code])])
