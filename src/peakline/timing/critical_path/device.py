"""The work of one device in a step, and what each piece of it waited for.

See `peakline.timing.critical_path.path`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator

import numpy as np

from peakline.hlo.modules import Instruction, Module, modules_of
from peakline.tables import Profile
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity
from peakline.trace.device_lines import Device, Role
from peakline.trace.events import Trace, nesting_of, trace_of

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
        found = _INSTRUCTION.fullmatch(name) if name.startswith("%") else None
        return found[1] if found else name

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
        found = _DONE.fullmatch(known.name if known else self.title(event))
        if found is None:
            return -1
        for source in self._sources(event):
            if "-start" in self.title(source) and int(trace.end[source]) <= int(trace.start[event]):
                self.used_hlo = True
                return source
        return self._named_start(event, f"{found[1]}-start{found[2]}")

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
        found: list[int] = []
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
                found.append(runs[at][1])
            elif (made := module.instructions.get(name)) is not None:
                waiting += made.operands
                waiting += made.controls
        return found

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
    found: dict[int, tuple[int | None, str | None]] = {}
    for event, stat, value in zip(
        place, rows.names("name").to_list(), rows.names("value").to_list(), strict=True
    ):
        program, name = found.get(event, (None, None))
        if stat == "program_id" and _INTEGER.fullmatch(value or ""):
            program = int(value or 0)
        elif stat == "hlo_op":
            name = value
        found[event] = program, name
    return found


def _program_runs(trace: Trace, device: Device) -> list[tuple[int, int, int]]:
    """Begin, end and program of the runs on the device's line of modules."""
    runs = []
    for line in trace.lines:
        if trace.planes[line.plane].plane_id != device.plane_id or line.name != "XLA Modules":
            continue
        for event in range(line.first, line.last):
            found = re.search(r"\((\d{1,20})\)$", trace.name[event] or "")
            if found:
                runs.append((int(trace.start[event]), int(trace.end[event]), int(found[1])))
    return sorted(runs)


def _running(runs: list[tuple[int, int, int]], moment: int) -> int | None:
    at = bisect_right(runs, (moment, 2**63, 2**64)) - 1
    return runs[at][2] if at >= 0 and moment < runs[at][1] else None
