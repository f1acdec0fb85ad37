"""From when to when every step lasts: the marker, and the device work it started.

The rule is in docs/steps.md. A window is half-open; windows of one device overlap only where marks
of several threads do, or where one step's work ends after another's has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int32Array, Int64Array, UInt8Array
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity
from peakline.trace.device_lines import Device, devices_of
from peakline.trace.events import DEVICE, HOST, Trace, trace_of
from peakline.trace.steps import step_places_of, steps_of

_TIES = 16
"""So many events of a line that start together are looked at for the one that marks a step."""
_MOST_WINDOWS, _MOST_EACH = 200_000, 4
"""All devices may have that many windows together, or so many for each event: a device that works
in a step has an event of it.
"""
IMPLICIT = frozenset(("FunctionRun", "SessionRun", "RunGraph", "ExecutorState::Process"))
"""Roots of steps that a program did not mark: they only start the work, or are a part of it."""
_STEP_LINES = tuple(
    re.compile(pattern)
    for pattern in ("(?i)(?:sparse ?core )?steps", "(?i)(?:xla|sparse core) modules")
)
_NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True, eq=False)
class Markers:
    """The event that began each row of ``steps``: its time, its place and line in the trace.

    ``event`` and ``line`` are -1 where no event of the trace is it (StepStats, whose steps are
    runs), ``on_device`` where it is one of a device (a TPU's step line).
    """

    start: Int64Array
    end: Int64Array
    event: Int64Array
    line: Int32Array
    on_device: BoolArray


@dataclass(frozen=True, eq=False)
class Windows:
    """The steps of one device (None: of a host without), in order of time.

    ``step`` is the row of ``steps``; ``begin`` and ``end`` are picoseconds.
    """

    device: Device | None
    step: Int64Array
    begin: Int64Array
    end: Int64Array


@once
def markers_of(profile: Profile) -> Markers:
    """The markers of the profile's steps, found once; none where it has no table ``steps``."""
    trace = trace_of(profile)
    place = step_places_of(profile)
    if "steps" not in profile.tables or not trace.size:
        none = np.zeros(0, np.int64)
        return Markers(none, none, none, none.astype(np.int32), none.astype(np.bool_))
    steps = steps_of(profile)
    start, end = steps.begin, steps.end
    event = np.full(start.size, -1, np.int64)
    line_of = np.full(start.size, -1, np.int32)
    on_device = np.zeros(start.size, np.bool_)
    rows = np.arange(start.size)
    for kind in (HOST, DEVICE):
        for number, line in enumerate(trace.lines):
            open_ = np.flatnonzero(event < 0)
            if not open_.size:
                break
            if trace.planes[line.plane].kind != kind or line.first == line.last:
                continue
            at = line.first + np.searchsorted(trace.start[line.events], start[open_])
            for _ in range(_TIES):
                here = np.flatnonzero(at < line.last)
                here = here[trace.start[at[here]] == start[open_[here]]]
                if not here.size:
                    break
                is_it = trace.end[at[here]] == end[open_[here]]
                is_it &= place[at[here]] == rows[open_[here]]
                it = here[is_it]
                free = event[open_[it]] < 0
                event[open_[it[free]]] = at[it[free]]
                line_of[open_[it[free]]] = number
                on_device[open_[it[free]]] = kind == DEVICE
                at = at + 1
    return Markers(start, end, event, line_of, on_device)


def windows_of(profile: Profile) -> tuple[Windows, ...]:
    """The windows of the steps of each device that worked, or of the host; empty without steps.

    A step that a device's own line marks and that the device did not take part in has no window
    on it. Where very many devices have very many steps, the first devices have; the others are a
    warning. Raises InputError when the profile cannot be read.
    """
    result, left_out = _windows(profile)
    if left_out:
        text = "devices whose steps are not looked at, as there are too many of both"
        profile.warn("devices_left_out", text, left_out, once=True)
    return result


@once
def _windows(profile: Profile) -> tuple[tuple[Windows, ...], int]:
    """The windows, and how many devices were left out."""
    trace, markers = trace_of(profile), markers_of(profile)
    if not markers.start.size:
        return (), 0
    place, activity = step_places_of(profile), activity_of(profile)
    devices = devices_of(profile)
    work = _Work(trace, activity, place, markers.start.size)
    if not devices:
        implicit = _implicit(trace, markers)
        end = np.maximum(markers.end, work.host_ends(implicit))
        every = np.arange(end.size)
        rest = bool(implicit.any())
        return (_in_order(None, every, markers.start, end, _NEVER, takes_rest=rest),), 0
    hosted = ~markers.on_device
    events = work.events(devices, grouped=True)
    end = np.maximum(markers.end, work.last(events))
    after = work.leftover(events, devices, markers) if hosted.any() else _NEVER
    result: list[Windows] = []
    left = max(_MOST_WINDOWS, _MOST_EACH * trace.size)
    for device in devices:
        own_begin, own_end = work.marked(device)
        begin = np.where(hosted, markers.start, own_begin)
        until = np.where(hosted, end, own_end)
        taken = np.flatnonzero(hosted | (own_begin != _NEVER))
        left -= taken.size
        if result and left < 0:
            break
        result.append(_in_order(device, taken, begin[taken], until[taken], after))
    return tuple(result), len(devices) - len(result)


def _in_order(
    device: Device | None,
    step: Int64Array,
    begin: Int64Array,
    end: Int64Array,
    earliest: int,
    *,
    takes_rest: bool = True,
) -> Windows:
    """Windows one after the other.

    With ``takes_rest`` a window begins where the one before it ends, if something of it is left
    then; a step of no time there is none.
    """
    order = np.lexsort((end, begin))
    step, begin, end = step[order], begin[order], end[order]
    if begin.size:
        end[0] = max(int(end[0]), int(begin[0]))
        begin[0] = min(max(int(begin[0]), earliest), int(end[0]))
    if takes_rest and begin.size:
        reach = np.maximum.accumulate(end)[:-1]
        later = np.maximum(begin[1:], reach)
        begin[1:] = np.where(later < end[1:], later, begin[1:])
    return Windows(device, step.astype(np.int64), begin, np.maximum(end, begin))


def _implicit(trace: Trace, markers: Markers) -> BoolArray:
    """Which steps were begun by a runtime's own call and not by a marker of the program."""
    codes = [code for code, name in enumerate(trace.name.values) if name in IMPLICIT]
    result = np.zeros(markers.start.size, np.bool_)
    known = markers.event >= 0
    result[known] = np.isin(trace.name.codes[markers.event[known]], codes)
    return result


class _Work:
    """When the work of each step begins and ends."""

    def __init__(self, trace: Trace, activity: UInt8Array, place: Int32Array, steps: int) -> None:
        self.trace, self.activity, self.place, self.steps = trace, activity, place, steps

    def events(self, devices: tuple[Device, ...], *, grouped: bool) -> Int64Array:
        """Events of work on ``devices`` that belong to a step, or to none.

        Of a device with a step line those of it: ops are given the step that they overlap, which
        may be the one before theirs.
        """
        parts = [np.zeros(0, np.int64)]
        for device in devices:
            lines = self._step_lines(device)
            if lines and not grouped:
                continue
            for number in lines or [number for number, _ in device.lines]:
                events = self.trace.lines[number].events
                taken = (self.place[events] >= 0) == grouped
                if not lines:
                    taken &= self.activity[events] != Activity.NOTHING
                parts.append(np.flatnonzero(taken) + events.start)
        return np.concatenate(parts)

    def _step_lines(self, device: Device) -> list[int]:
        """The line of a TPU that shows its steps: its own one, else that of its modules."""
        if not device.is_tpu:
            return []
        for pattern in _STEP_LINES:
            result = [
                number
                for number, line in enumerate(self.trace.lines)
                if self.trace.planes[line.plane].plane_id == device.plane_id
                and pattern.fullmatch(line.name)
                and (self.place[line.events] >= 0).any()
            ]
            if result:
                return result
        return []

    def host_ends(self, wanted: BoolArray) -> Int64Array:
        """Per step that is ``wanted`` the last end of an event of it on a host."""
        if not wanted.any():
            return np.full(self.steps, _NEVER)
        parts = [np.zeros(0, np.int64)]
        for line in self.trace.lines_on(HOST):
            place = self.place[line.events]
            parts.append(np.flatnonzero((place >= 0) & wanted[place]) + line.first)
        return self.last(np.concatenate(parts))

    def last(self, events: Int64Array) -> Int64Array:
        """Per step the last end of its ``events``; before all time where it has none."""
        result = np.full(self.steps, _NEVER)
        np.maximum.at(result, self.place[events], self.trace.end[events])
        return result

    def marked(self, device: Device) -> tuple[Int64Array, Int64Array]:
        """Per step the first begin and last end of what the device's own line shows of it."""
        events = self.events((device,), grouped=True)
        begin = np.full(self.steps, np.iinfo(np.int64).max)
        np.minimum.at(begin, self.place[events], self.trace.start[events])
        end = self.last(events)
        return np.where(end == _NEVER, _NEVER, begin), end

    def leftover(self, grouped: Int64Array, devices: tuple[Device, ...], markers: Markers) -> int:
        """Until when the devices still do what was launched before the first step, whose work and
        that of all others is ``grouped``.

        Where a host runs ahead of its devices, they are busy with earlier steps when the first one
        is marked. That is work without a step before the first work with one, if most of the
        work without a step is that, and if it fills at least half of the time until then.
        """
        others = self.events(devices, grouped=False)
        if not grouped.size or not others.size:
            return int(_NEVER)
        start, end = self.trace.start, self.trace.end
        first = int(start[grouped].min())
        is_before = start[others] < first
        inside = others[is_before & (end[others] > markers.start.min())]
        if not inside.size:
            return int(_NEVER)
        before = int((end[inside] - start[inside]).sum())
        later = others[~is_before]
        marked = int(markers.start.min())
        if before <= int((end[later] - start[later]).sum()) or 2 * before < first - marked:
            return int(_NEVER)
        return int(end[inside].max())
