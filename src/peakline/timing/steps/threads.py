"""What the threads of a profile's steps did: whose code ran, what it called, and how long.

A step lasts here from its marker to the next one on the same thread, so that what a program does
between two steps counts for the one before. Where nothing marks steps, all of the profile counts as
one. The time of an event without what lies in it (its self time) belongs to the *innermost frame of
the program* around it: frameworks, libraries and what is written in C work for whoever called them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.tables import Profile
from peakline.tables.columns import Names
from peakline.tables.joins import summed
from peakline.tables.once import once
from peakline.timing.steps.facts import FEWEST_STEPS, WARM_UP, step_facts_of
from peakline.trace.calls import Call, call_of
from peakline.trace.events import HOST, Trace, nesting_of, trace_of
from peakline.trace.frames import frame_of
from peakline.trace.nesting import nest_lines
from peakline.trace.steps import steps_of
from peakline.trace.windows import markers_of

_MANY, _EVENLY, _SLOWEST = 512, 256, 32
"""Of more than so many steps these are looked at: an even choice, and the slowest."""
_SHORT = 1 << 21
"""All events of a trace of so many are nested at once."""


@dataclass(frozen=True, eq=False)
class StepThreads:
    """The events of the steps' threads, of all steps but the first ones.

    ``event`` are places in ``trace``, ascending, each with its self time ``own_ps`` and the number
    of its ``step``, a place in ``begin`` and ``end`` (ps). ``frame`` is the place in ``event`` of
    the innermost frame of the program that an event lies in (itself for one), ``call`` that of the
    outermost event below that frame; both are -1 where there is none.
    """

    trace: Trace
    event: Int64Array
    own_ps: Int64Array
    step: Int64Array
    frame: Int64Array
    call: Int64Array
    parent: Int64Array
    begin: Int64Array
    end: Int64Array
    has_steps: bool

    @cached_property
    def wall_ps(self) -> int:
        """The time of all steps."""
        return int((self.end - self.begin).sum())

    @property
    def steps(self) -> int:
        """How many steps count."""
        return self.begin.size

    @cached_property
    def code(self) -> AnyArray:
        """The name of each event, as a code of ``trace.name``."""
        codes: AnyArray = self.trace.name.codes[self.event]
        return codes

    @property
    def names(self) -> Names:
        """The names of events."""
        return self.trace.name

    @property
    def has_frames(self) -> bool:
        """Whether any frame of the program was recorded."""
        return bool((self.frame >= 0).any())

    def above(self, stops: BoolArray) -> Int64Array:
        """For each event the innermost one around it, or itself, that ``stops``; -1 for none.

        Looked for up to the frame of the program, which counts too.
        """
        is_end = stops | (self.parent < 0) | (self.frame == np.arange(self.event.size))
        result = _climb(np.where(is_end, np.arange(self.event.size), self.parent))
        return np.where(stops[result], result, -1)

    def within(self, holds: BoolArray) -> BoolArray:
        """Which events lie in one that ``holds``, or are one."""
        every = np.arange(self.event.size)
        result = _climb(np.where(holds | (self.parent < 0), every, self.parent))
        inside: BoolArray = holds[result]
        return inside

    def per_step(self, chosen: BoolArray) -> Int64Array:
        """The self time of the ``chosen`` events in each step."""
        return summed(self.step[chosen], self.own_ps[chosen], self.steps)


@once
def step_threads_of(profile: Profile) -> StepThreads | None:
    """The threads of the profile's steps; None where nothing says which those are.

    Raises InputError when the profile cannot be read.
    """
    trace = trace_of(profile)
    if trace.source != "events" or not trace.size:
        return None
    # Where the file says what its events are, it says what the program marked.
    if profile.event_rules.kinds is None and not any(map(_says, trace.name.values)):
        return None
    result = _marked(profile) or _longest(trace)
    if result is None:
        return None
    lines, begin, end, has_steps = result
    parts = [_of_line(profile, line, begin, end) for line in lines]
    bounds = np.cumsum([0, *(part[0].size for part in parts)])
    event, own, step = (np.concatenate([part[k] for part in parts]) for k in range(3))
    frame, call, parent = (
        np.concatenate(
            [
                np.where(part[k] >= 0, part[k] + at, -1)
                for part, at in zip(parts, bounds[:-1], strict=True)
            ]
        )
        for k in (3, 4, 5)
    )  # fmt: skip
    return StepThreads(trace, event, own, step, frame, call, parent, begin, end, has_steps)


def _says(name: str) -> bool:
    """Whether an event called so says whose code runs, or what it waits for."""
    frame = frame_of(name)
    return (frame is not None and frame.whose == "program") or call_of(name) != Call.WORK


Found = tuple[list[int], Int64Array, Int64Array, bool]


def _marked(profile: Profile) -> Found | None:
    """The threads on which steps of the main population are marked, and the steps' periods."""
    facts, markers, steps = step_facts_of(profile).main, markers_of(profile), steps_of(profile)
    on_host = (markers.line >= 0) & ~markers.on_device
    if not facts.rows or not on_host.any():
        return None
    order = np.flatnonzero(on_host)
    order = order[np.argsort(markers.start[order], kind="stable")]
    begin = markers.start[order]
    end = np.append(begin[1:], markers.end[order][-1:])
    wanted = np.isin(steps.step_id[order], facts.part("step_id")) & (end > begin)
    begin, end, order = begin[wanted], end[wanted], order[wanted]
    if begin.size >= WARM_UP + FEWEST_STEPS:
        begin, end, order = begin[WARM_UP:], end[WARM_UP:], order[WARM_UP:]
    if begin.size > _MANY:
        some = _some(end - begin)
        begin, end, order = begin[some], end[some], order[some]
    if not begin.size:
        return None
    return sorted(set(markers.line[order].tolist())), begin, end, True


def _some(wall: Int64Array) -> Int64Array:
    """An even choice of many steps, and the slowest."""
    evenly = np.linspace(0, wall.size - 1, _EVENLY).astype(np.int64)
    return np.union1d(evenly, np.argsort(-wall, kind="stable")[:_SLOWEST])


def _longest(trace: Trace) -> Found | None:
    """The thread with most frames of the program, all of the time."""
    is_frame = _frames(trace.name, lambda whose: whose == "program")
    best, most = -1, 0
    for number, line in enumerate(trace.lines):
        if trace.planes[line.plane].kind == HOST:
            count = int(np.count_nonzero(is_frame[trace.name.codes[line.events]]))
            best, most = (number, count) if count > most else (best, most)
    if best < 0:
        return None
    first, last = trace.span()
    return [best], np.array([first], np.int64), np.array([last], np.int64), False


def _frames(names: Names, test: Callable[[str], bool]) -> BoolArray:
    """Per code of a name (the last: none) whether it is a frame whose owner passes ``test``."""
    result = [(frame := frame_of(name)) is not None and test(frame.whose) for name in names.values]
    return np.array([*result, False], np.bool_)


def _of_line(
    profile: Profile, number: int, begin: Int64Array, end: Int64Array
) -> tuple[Int64Array, ...]:
    """Events of a line that begin in a step, their self time and step; frame, call and parent as
    places among them.
    """
    trace = trace_of(profile)
    line = trace.lines[number]
    start = trace.start[line.events]
    at = np.searchsorted(begin, start, "right") - 1
    inside = (at >= 0) & (start < end[np.maximum(at, 0)])
    event = np.flatnonzero(inside)
    own, parent = _nested(profile, number, event, at[event])
    codes = trace.name.codes[line.events][event]
    is_frame = _frames(trace.name, lambda whose: whose == "program")[codes]
    every = np.arange(event.size)
    frame = _climb(np.where(is_frame | (parent < 0), every, parent))
    frame = np.where(is_frame[frame] if event.size else is_frame, frame, -1)
    ends_here = (parent < 0) | is_frame
    stops = ends_here | is_frame[parent] if event.size else ends_here
    call = _climb(np.where(stops, every, parent))
    call = np.where(is_frame, -1, call)
    return event + line.first, own, at[event], frame, call, parent


def _nested(
    profile: Profile, number: int, event: Int64Array, step: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """The self time of some events of a line, in order, and their parents as places among them.

    Of a long trace only these are nested, step by step; of a short one, whose events are nested for
    others too, all.
    """
    trace = trace_of(profile)
    line = trace.lines[number]
    if trace.size <= _SHORT:
        nesting = nesting_of(profile)
        place = np.full(line.last - line.first + 1, -1, np.int64)
        place[event] = np.arange(event.size)
        above = nesting.parent[line.events][event].astype(np.int64)
        parent = np.where(above >= 0, place[np.where(above >= 0, above - line.first, -1)], -1)
        return nesting.own_ps[line.events][event], parent
    first = np.flatnonzero(np.concatenate([[True], np.diff(step) > 0])[: event.size])
    bounds = np.append(first, event.size).astype(np.int64)
    result, own = np.empty(event.size, np.int32), np.empty(event.size, np.int64)
    nest_lines(
        trace.start[line.events][event], trace.end[line.events][event], bounds,
        np.ones(first.size, np.bool_), result, np.zeros(0, np.uint16), own,
    )  # fmt: skip
    return own, result.astype(np.int64)


def _climb(above: Int64Array) -> Int64Array:
    """Where each place leads to, going from place to place until one leads to itself."""
    while True:
        further = above[above]
        if np.array_equal(further, above):
            return above
        above = further
