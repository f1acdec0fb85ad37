"""The walk from the end of a step to its begin. See `peakline.timing.critical_path.path`."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

import numpy as np

from peakline.tables import Profile
from peakline.timing.critical_path.device import DeviceWork
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity
from peakline.trace.device_lines import Device
from peakline.trace.events import HOST, nesting_of, trace_of
from peakline.trace.links import links_within

MOST_PIECES = 20_000
_WAITS = {int(Activity.WAIT): "wait", int(Activity.INPUT_WAIT): "input"}
_WORKING = (Activity.HOST_OP, Activity.COMPUTE, Activity.INPUT_WORK)

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
            found = self._released(line, begin)
            if found is not None:
                return found
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
        found = kind or "host"
        self._kinds.update(dict.fromkeys(climbed, found))
        return found

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
        trace, found, began = self._trace, -1, self._begin - 1
        for number in self._host_lines:
            if number == line:
                continue
            at, _ = self._innermost(number)
            if at < 0 or self._blocks(at) == "wait":
                continue
            if number == self._main:
                return number
            if int(trace.start[at]) > began:
                found, began = number, int(trace.start[at])
        return found

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
        trace, found = self._trace, [np.zeros(0, np.int64)]
        for line in trace.lines_on(HOST):
            first, last = np.searchsorted(trace.start[line.events], (self._begin, self._end))
            own = np.arange(line.first + int(first), line.first + int(last))
            found.append(own[np.isin(self._activity[own], _WORKING)])
        events = np.concatenate(found)
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
