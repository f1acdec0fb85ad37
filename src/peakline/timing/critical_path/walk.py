"""The walk from the end of a step to its begin, and what each piece of a device's work waited for.

See `peakline.timing.critical_path.path`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from peakline.hlo.modules import Instruction, Module, modules_of
from peakline.tables import Profile
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity
from peakline.trace.device_lines import Device, Role
from peakline.trace.events import HOST, Trace, nesting_of, trace_of
from peakline.trace.links import links_within

WAITED_PS = 1_000_000
"""The end of an asynchronous instruction that takes longer than this waited for the transfer."""
_INSTRUCTION = re.compile(r"%?([\w.-]+)(?: = .*)?", re.DOTALL)
_INTEGER = re.compile(r"-?\d{1,20}", re.ASCII)
_DONE = re.compile(r"(.*)-done((?:\.\d+)*)")
_MOST_LOOKED_AT = 200
"""Instructions without an event of their own that are looked through for one operand."""
Key = tuple[int | None, str]
"""A program, and the name of one of its instructions."""


class DeviceWork:
    """Events of a device's op lines and streams between two moments; those in others left out."""

    def __init__(self, profile: Profile, device: Device, begin: int, end: int) -> None:
        self._trace = trace = trace_of(profile)
        self.used_hlo = False
        """Whether an instruction's operand decided about a path."""
        activity, parent = activity_of(profile), nesting_of(profile).parent
        self._lines: list[list[int]] = []
        for number, role in device.lines:
            if role is Role.ASYNC or (device.is_tpu and role is Role.STREAM):
                continue
            line = trace.lines[number]
            start, stop = trace.start[line.events], trace.end[line.events]
            inside = (start < end) & (stop > begin) & (stop > start)
            inside &= activity[line.events] != Activity.NOTHING
            holds = np.zeros(start.size, np.bool_)
            outer = parent[line.events][inside]
            holds[outer[outer >= 0] - line.first] = True
            self._lines.append((np.flatnonzero(inside & ~holds) + line.first).tolist())
        self._events = sorted(
            (event for line in self._lines for event in line), key=lambda e: (int(trace.end[e]), e)
        )
        self._ends = [int(trace.end[event]) for event in self._events]
        self._before: dict[int, int] = {}
        for line_events in self._lines:
            self._before.update(zip(line_events[1:], line_events[:-1], strict=True))
        self._modules: dict[int | None, Module] = {
            module.program_id: module
            for module in modules_of(profile)
            if module.program_id is not None
        }
        self._keys = dict(self._named(profile, device)) if self._modules else {}
        self._runs: dict[Key, list[tuple[int, int]]] = {}
        for event, key in self._keys.items():
            self._runs.setdefault(key, []).append((int(trace.start[event]), event))
        for runs in self._runs.values():
            runs.sort()

    def last(self) -> int:
        """The event that ended last, -1 for none."""
        return self._events[-1] if self._events else -1

    def ended_by(self, moment: int) -> int:
        """The event that ended last by a moment, -1 for none."""
        at = bisect_right(self._ends, moment) - 1
        return self._events[at] if at >= 0 else -1

    def title(self, event: int) -> str:
        """What an event is called: the instruction alone where the name is a whole one."""
        name = self._trace.name[event] or ""
        result = _INSTRUCTION.fullmatch(name) if name.startswith("%") else None
        return result[1] if result else name

    def before(self, event: int) -> tuple[int, str]:
        """What released an event: of its operands and the work before it on its line the one that
        ended last, -1 for none; and whether that was data or order.
        """
        start = int(self._trace.start[event])
        best, why = self._before.get(event, -1), "order"
        for source in self._sources(event):
            end = int(self._trace.end[source])
            if end <= start and (best < 0 or end >= int(self._trace.end[best])):
                best, why = source, "data"
        if why == "data":
            self.used_hlo = True
        return best, why

    def transfer(self, event: int) -> int:
        """The begin of the asynchronous work whose end ``event`` waited for; -1 if it is none."""
        trace = self._trace
        if int(trace.end[event]) - int(trace.start[event]) <= WAITED_PS:
            return -1
        known = self._instruction(event)
        result = _DONE.fullmatch(known.name if known else self.title(event))
        if result is None:
            return -1
        for source in self._sources(event):
            if "-start" in self.title(source) and int(trace.end[source]) <= int(trace.start[event]):
                self.used_hlo = True
                return source
        return self._named_start(event, f"{result[1]}-start{result[2]}")

    def waited(self, event: int, since: int) -> int:
        """The last event on the line between ``since`` and ``event`` that waited for a transfer,
        -1 for none.
        """
        at = self._before.get(event, -1)
        while at >= 0 and at != since:
            if self.transfer(at) >= 0:
                return at
            at = self._before.get(at, -1)
        return -1

    def slack(self) -> dict[int, int]:
        """How much longer each event could have lasted without the last one ending later.

        Everything that waits for it, by its line or by data, would have begun later by what the
        gaps that were observed leave. Needs every event once, from the last back to the first.
        """
        start, end = self._trace.start, self._trace.end
        late: dict[int, int] = {}
        last = self._ends[-1] if self._ends else 0
        after: dict[int, list[int]] = {}
        for event in self._events:
            followed = [*self._sources(event)]
            if event in self._before:
                followed.append(self._before[event])
            for source in followed:
                if int(end[source]) <= int(start[event]):
                    after.setdefault(source, []).append(event)
        for event in sorted(self._events, key=lambda e: (int(start[e]), int(end[e])), reverse=True):
            own = int(end[event])
            late[event] = min(
                (int(start[one]) - own + late[one] for one in after.get(event, ()) if one in late),
                default=last - own,
            )
        return late

    def _named_start(self, event: int, name: str) -> int:
        """The last event of that name before; for a profile without its programs."""
        at = self._before.get(event, -1)
        while at >= 0:
            if self.title(at) == name:
                return at
            if self.title(at) == self.title(event):
                return -1
            at = self._before.get(at, -1)
        return -1

    def _instruction(self, event: int) -> Instruction | None:
        key = self._keys.get(event)
        if key is None:
            return None
        module = self._modules.get(key[0])
        return None if module is None else module.instructions.get(key[1])

    def _sources(self, event: int) -> list[int]:
        """The events whose results an event uses: the last run of each operand before it."""
        own = self._instruction(event)
        if own is None:
            return []
        program = self._keys[event][0]
        module = self._modules[program]
        start = int(self._trace.start[event])
        result: list[int] = []
        looked_at: set[str] = set()
        waiting = [*own.operands, *own.controls]
        while waiting and len(looked_at) < _MOST_LOOKED_AT:
            name = waiting.pop()
            if name in looked_at:
                continue
            looked_at.add(name)
            runs = self._runs.get((program, name))
            at = bisect_right(runs, (start, -1)) - 1 if runs else -1
            if runs and at >= 0:
                result.append(runs[at][1])
            elif (made := module.instructions.get(name)) is not None:
                waiting += made.operands
                waiting += made.controls
        return result

    def _named(self, profile: Profile, device: Device) -> Iterator[tuple[int, Key]]:
        """Program and instruction of each event: from its stats, or its name and its program."""
        stated = _stats(profile, self._trace, self._events)
        modules = _program_runs(self._trace, device)
        for event in self._events:
            program, name = stated.get(event, (None, None))
            if program is None:
                program = _running(modules, int(self._trace.start[event]))
            # Its name spells a program's id so; stats may hold it as a signed number.
            module = self._modules.get(None if program is None else program % 2**64)
            if module is None:
                continue
            name = name or self.title(event)
            if name in module.instructions:
                yield event, (module.program_id, name)


def _stats(
    profile: Profile, trace: Trace, events: list[int]
) -> dict[int, tuple[int | None, str | None]]:
    """``program_id`` and ``hlo_op`` of events that have them."""
    rows = profile.stats_of(trace.rows(np.array(events, np.int64)))
    place = trace.places(rows.array("event_id")).tolist()
    result: dict[int, tuple[int | None, str | None]] = {}
    for event, stat, value in zip(
        place, rows.names("name").to_list(), rows.names("value").to_list(), strict=True
    ):
        program, name = result.get(event, (None, None))
        if stat == "program_id" and _INTEGER.fullmatch(value or ""):
            program = int(value or 0)
        elif stat == "hlo_op":
            name = value
        result[event] = program, name
    return result


def _program_runs(trace: Trace, device: Device) -> list[tuple[int, int, int]]:
    """Begin, end and program of the runs on the device's line of modules."""
    runs = []
    for line in trace.lines:
        if trace.planes[line.plane].plane_id != device.plane_id or line.name != "XLA Modules":
            continue
        for event in range(line.first, line.last):
            result = re.search(r"\((\d{1,20})\)$", trace.name[event] or "")
            if result:
                runs.append((int(trace.start[event]), int(trace.end[event]), int(result[1])))
    return sorted(runs)


def _running(runs: list[tuple[int, int, int]], moment: int) -> int | None:
    at = bisect_right(runs, (moment, 2**63, 2**64)) - 1
    return runs[at][2] if at >= 0 and moment < runs[at][1] else None


MOST_PIECES = 20_000
_WAITS = {int(Activity.WAIT): "wait", int(Activity.INPUT_WAIT): "input"}
_WORKING = (Activity.HOST_OP, Activity.COMPUTE, Activity.INPUT_WORK, Activity.COMMUNICATION)

Raw = tuple[str, str, str, str, int, int, int, int, int]
"""The fields of a Piece up to its line."""


class _Climb(NamedTuple):
    """Events from the one of a thread that began last outwards, and their ends, ascending; after
    the outermost -1, which ends with the step.
    """

    events: list[int]
    ends: list[int]


class Walk:
    """One path. A place in it is an event of the device, or a thread of the host at a moment."""

    def __init__(
        self, profile: Profile, device: Device | None, main: int, begin: int, end: int
    ) -> None:
        self._trace = trace = trace_of(profile)
        self._main, self._begin, self._end = main, begin, end
        self._parent = nesting_of(profile).parent
        self._activity = activity_of(profile)
        self._work = None if device is None else DeviceWork(profile, device, begin, end)
        launches, contexts = links_within(profile, begin, end)
        self._launch = launches.target, launches.cause
        self._context = contexts.target, contexts.cause
        self._others = self._ends_of_others()
        self._pieces: list[Raw] = []
        self._kinds: dict[int, str] = {}
        self._climbs: dict[int, _Climb] = {}
        self._now = end
        self._why = "start"
        self._host_lines = [
            number
            for number, line in enumerate(trace.lines)
            if trace.planes[line.plane].kind == HOST and line.last > line.first
        ]
        self.guesses = 0
        self.is_cut = False

    def source(self) -> str:
        """By what the path was found: hlo, or links."""
        return "hlo" if self._work is not None and self._work.used_hlo else "links"

    def title(self, event: int) -> str:
        """What an event of the device is called."""
        return self._name(event) if self._work is None else self._work.title(event)

    def slack(self) -> dict[int, int]:
        """Slack of the device's work by event; empty without a device."""
        return {} if self._work is None else self._work.slack()

    def run(self) -> list[Raw]:
        """The pieces, the last first."""
        event, line = (-1, self._main) if self._work is None else (self._work.last(), -1)
        while self._now > self._begin:
            if len(self._pieces) >= MOST_PIECES:
                self.is_cut = True
                break
            if event >= 0 and self._work is not None:
                event, line = self._device(self._work, event)
            elif line >= 0:
                event, line = self._host(line)
            else:
                break
        return self._pieces

    def _add(
        self, name: str, kind: str, place: str, begin: int, event: int = -1, line: int = -1
    ) -> None:
        """A piece from ``begin`` until now, after which the path is at ``begin``.

        What began before the step counts from the step's begin. ``line`` is for a piece without an
        ``event``, which has its own.
        """
        begin = max(begin, self._begin)
        if begin < self._now:
            line = self._line(event) if event >= 0 else line
            self._pieces.append((name, kind, place, self._why, begin, self._now, 0, event, line))
            self._now = begin

    def _because(self, why: str) -> None:
        """Why the last piece that was added came after the one that will be added next."""
        if self._pieces:
            self._pieces[-1] = (*self._pieces[-1][:3], why, *self._pieces[-1][4:])

    def _name(self, event: int) -> str:
        return self._trace.name[event] or ""

    def _line(self, event: int) -> int:
        return int(self._trace.lines_of(np.array([event]))[0])

    def _device(self, work: DeviceWork, event: int) -> tuple[int, int]:
        """Work of the device, and what it waited for: an event or a thread."""
        trace = self._trace
        place = trace.lines[self._line(event)].name
        start, end = int(trace.start[event]), int(trace.end[event])
        self._now = min(self._now, end)
        transfer = work.transfer(event)
        if transfer >= 0:
            # Transfers of one device share its link: this one had it since the one before.
            other = work.waited(event, transfer)
            since = transfer if other < 0 else other
            self._add(work.title(transfer), "transfer", place, int(trace.end[since]), event)
            self._because("transfer")
            return since, -1
        self._add(work.title(event), "op", place, start, event)
        before, why = work.before(event)
        ready = min(int(trace.end[before]), start) if before >= 0 else self._begin
        launch = _linked(self._launch, event)
        # A stream waits for another (a collective's) by an event that profilers do not record.
        other = work.ended_by(start)
        free = max(ready, int(trace.end[launch]) if launch >= 0 else ready)
        if other >= 0 and int(trace.end[other]) > free:
            self.guesses += 1
            self._because("guess")
            return other, -1
        if launch >= 0:
            called = int(trace.start[launch])
            if called < start and (before < 0 or called > ready):
                self._because("launch")
                self._add(self._name(launch), "launch", place, called, launch)
                self._because("thread")
                return -1, self._line(launch)
        self._because(why)
        return before, -1

    def _host(self, line: int) -> tuple[int, int]:
        """What a thread did until now, and where the path goes on."""
        trace = self._trace
        own = trace.lines[line]
        at, ended = self._innermost(line)
        if at < 0:
            return self._idle(line, ended)
        begin = int(trace.start[at])
        if ended >= 0:
            begin = max(begin, int(trace.end[ended]))
        kind = self._blocks(at)
        if kind != "host":
            result = self._released(line, begin)
            if result is not None:
                return result
        self._add(self._name(at), kind, own.name, begin, at)
        self._because("thread")
        if begin == int(trace.start[at]):
            return self._handed(at, line)
        return -1, line

    def _blocks(self, event: int) -> str:
        """Whether an event waits, for input or anything else, or is part of one that does: wait or
        input, else host.
        """
        climbed: list[int] = []
        kind: str | None = None
        while event >= 0:
            kind = self._kinds.get(event) or _WAITS.get(int(self._activity[event]))
            climbed.append(event)
            if kind is not None:
                break
            event = int(self._parent[event])
        result = kind or "host"
        self._kinds.update(dict.fromkeys(climbed, result))
        return result

    def _innermost(self, line: int) -> tuple[int, int]:
        """The innermost event of a thread that is going on just before now, and the one directly in
        it that had ended by then, on the way to what began last; -1 for none.
        """
        trace, own = self._trace, self._trace.lines[line]
        at = int(np.searchsorted(trace.start[own.events], self._now)) + own.first - 1
        if at < own.first:
            return -1, -1
        climb = self._climbs.get(line)
        if climb is None or climb.events[0] != at:
            climb = self._climbs[line] = _Climb([at], [int(trace.end[at])])
        # Now only goes back, so that what was climbed over for an earlier question is enough.
        events, ends = climb.events, climb.ends
        while ends[-1] < self._now:
            outer = int(self._parent[events[-1]])
            events.append(outer)
            ends.append(int(trace.end[outer]) if outer >= 0 else self._end)
        place = bisect_left(ends, self._now)
        return events[place], events[place - 1] if place else -1

    def _idle(self, line: int, ended: int) -> tuple[int, int]:
        """The thread had nothing to do: another was at work then, which is a guess; else what the
        thread did before, if that is in the step.
        """
        other = self._at_work(line)
        if other >= 0:
            self.guesses += 1
            self._because("guess")
            return -1, other
        if ended < 0 or int(self._trace.end[ended]) <= self._begin:
            return -1, -1
        self._now = int(self._trace.end[ended])
        return -1, line

    def _at_work(self, line: int) -> int:
        """The thread that is in an event just before now: that of the step if it does not wait,
        else the one whose event began last; -1 for none.
        """
        trace, result, began = self._trace, -1, self._begin - 1
        for number in self._host_lines:
            if number == line:
                continue
            at, _ = self._innermost(number)
            if at < 0 or self._blocks(at) == "wait":
                continue
            if number == self._main:
                return number
            if int(trace.start[at]) > began:
                result, began = number, int(trace.start[at])
        return result

    def _released(self, line: int, begin: int) -> tuple[int, int] | None:
        """The thread blocks from ``begin`` on: what ended last before it went on.

        The device's work, which the call waits for, else work of other threads: that is a guess.
        """
        trace = self._trace
        if self._work is not None:
            event = self._work.ended_by(self._now)
            if event >= 0 and int(trace.end[event]) > begin:
                self._wait(line, int(trace.end[event]))
                return event, -1
        ends, events = self._others
        place = bisect_right(ends, self._now) - 1
        for at in range(place, max(place - 64, -1), -1):
            if ends[at] <= begin:
                break
            other = self._line(events[at])
            if other != line:
                self.guesses += 1
                self._wait(line, ends[at])
                return -1, other
        return None

    def _wait(self, line: int, until: int) -> None:
        """Between the end of what was waited for and the thread's going on."""
        own = self._trace.lines[line]
        self._add("(going on)", "host", own.name, until, line=line)
        self._because("release")

    def _handed(self, event: int, line: int) -> tuple[int, int]:
        """Where a thread began something: who handed it over, if the thread was free before."""
        trace = self._trace
        cause = _linked(self._context, event)
        if cause < 0 or int(trace.start[cause]) >= self._now:
            return -1, line
        other = self._line(cause)
        if other == line or other not in self._host_lines:
            return -1, line
        handed = min(int(trace.end[cause]), self._now)
        own = trace.lines[line]
        at = bisect_left(trace.start[own.events], self._now) + own.first - 1
        if at >= own.first and handed <= int(trace.end[at]) <= self._now:
            return -1, line
        self._because("context")
        self._now = handed
        return -1, other

    def _ends_of_others(self) -> tuple[list[int], list[int]]:
        """Ends and places of the work of the host's threads in the window, by end."""
        trace, result = self._trace, [np.zeros(0, np.int64)]
        for line in trace.lines_on(HOST):
            first, last = np.searchsorted(trace.start[line.events], (self._begin, self._end))
            own = np.arange(line.first + int(first), line.first + int(last))
            result.append(own[np.isin(self._activity[own], _WORKING)])
        events = np.concatenate(result)
        events = events[
            (trace.end[events] <= self._end) & (trace.end[events] > trace.start[events])
        ]
        events = events[np.argsort(trace.end[events], kind="stable")]
        return trace.end[events].tolist(), events.tolist()


def _linked(pairs: tuple[np.ndarray, np.ndarray], event: int) -> int:
    """The cause of an event, -1 for none."""
    target, cause = pairs
    at = int(np.searchsorted(target, event))
    return int(cause[at]) if at < target.size and target[at] == event else -1
