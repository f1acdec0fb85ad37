"""When a device computed, communicated, copied; when a step's host threads did what: sets of time.

Everything that sums up time by activity stands on these sets: the step breakdown, the time of a
device, communication.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from peakline.arrays import BoolArray, Int32Array, Int64Array, UInt8Array
from peakline.kernels.intervals import merge, paint
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.trace.activity import activity_of, is_xla_line
from peakline.trace.activity_names import Activity, is_marker
from peakline.trace.device_lines import Device, Role, devices_of
from peakline.trace.events import HOST, Trace, TraceLine, trace_of
from peakline.trace.intervals import Intervals, union, without
from peakline.trace.steps import step_places_of
from peakline.trace.windows import markers_of

Sets = Mapping[Activity, Intervals]
NEVER: Intervals = (np.zeros(0, np.int64), np.zeros(0, np.int64))
_INNERMOST = np.zeros(256, np.bool_)
_INNERMOST[[Activity.LAUNCH, Activity.WAIT, Activity.HOST_OP, Activity.COMMUNICATION]] = True
"""Of these what is called inside of another counts; input and compilation hold all within them,
and other work of a host is what is left."""


@dataclass(frozen=True, eq=False)
class DeviceSets:
    """What a device did when: ``sets`` by activity, which may overlap.

    ``communication`` is all of it, also what ran beside the ops of a TPU.
    """

    device: Device
    sets: Sets
    communication: Intervals


@dataclass(frozen=True, eq=False)
class LineSets:
    """What one line, a place in `Trace.lines`, did when: ``event`` are the events that say it
    (places in the trace, ascending), ``sets`` the activities, in the order in which they count.
    """

    line: int
    event: Int64Array
    sets: tuple[tuple[Activity, Intervals], ...]


@once
def device_sets_of(profile: Profile) -> tuple[DeviceSets, ...]:
    """The sets of every device that worked, made once."""
    trace, activity = trace_of(profile), activity_of(profile)
    return tuple(_of_device(trace, activity, device) for device in devices_of(profile))


@once
def host_sets_of(profile: Profile) -> Sets:
    """What the host's threads of the profile's steps did when, made once; empty without steps.

    Those are the threads that a step's marker lies on, at all times; other threads where they work
    for a step; and the threads on which XLA runs programs for the CPU. Activities of one thread
    exclude each other; those of several may overlap.
    """
    return _together(result for line in host_lines_between(profile) for result in line.sets)


def host_lines_between(profile: Profile, span: tuple[int, int] | None = None) -> Iterator[LineSets]:
    """The host's threads that `host_sets_of` is made of, the steps' own first; with ``span`` (begin
    and end in ps) of the events that lie in it, also in part.
    """
    trace, markers = trace_of(profile), markers_of(profile)
    if not markers.start.size:
        return
    place, activity = step_places_of(profile), activity_of(profile)
    marked = markers.event[(markers.event >= 0) & ~markers.on_device]
    threads = set(markers.line[markers.line >= 0].tolist())
    for number in sorted(range(len(trace.lines)), key=lambda number: number not in threads):
        line = _between(trace, trace.lines[number], span)
        on_host = trace.planes[line.plane].kind == HOST or trace.source == "op_runs"
        if not on_host or line.first == line.last:
            continue
        code = activity[line.events]
        is_thread = number in threads
        keep = _explaining(trace, line, code, place, is_thread=is_thread)
        if is_thread:
            own = marked[(marked >= line.first) & (marked < line.last)]
            keep[own - line.first] = False
        event = np.flatnonzero(_reaching(trace, line, keep, span)) + line.first
        if event.size:
            sets = _of_thread(trace.start[event], trace.end[event], activity[event])
            yield LineSets(number, event, tuple(sets))


def thread_events_between(
    profile: Profile, span: tuple[int, int]
) -> Iterator[tuple[int, Int64Array]]:
    """Of each thread of the steps (a place in `Trace.lines`) the events that lie in ``span`` (begin
    and end in ps), also in part and whatever they say, but for markers of steps: places in the
    trace, ascending.
    """
    trace, markers = trace_of(profile), markers_of(profile)
    names = np.array([not is_marker(name) for name in trace.name.values] + [True], np.bool_)
    for number in sorted(set(markers.line[(markers.line >= 0) & ~markers.on_device].tolist())):
        line = _between(trace, trace.lines[number], span)
        keep = names[trace.name.codes[line.events]]
        keep &= trace.end[line.events] > trace.start[line.events]
        own = markers.event[(markers.event >= line.first) & (markers.event < line.last)]
        keep[own - line.first] = False
        yield number, np.flatnonzero(_reaching(trace, line, keep, span)) + line.first


def device_lines_between(
    profile: Profile, device: Device, span: tuple[int, int] | None = None
) -> Iterator[LineSets]:
    """The lines that say what ``device`` did, what runs beside its ops last; with ``span`` (begin
    and end in ps) of the events that lie in it, also in part.
    """
    trace, activity = trace_of(profile), activity_of(profile)
    for number, role in sorted(device.lines, key=lambda line: line[1] is Role.ASYNC):
        line = _between(trace, trace.lines[number], span)
        keep = activity[line.events] != Activity.NOTHING
        keep &= trace.end[line.events] > trace.start[line.events]
        event = np.flatnonzero(_reaching(trace, line, keep, span)) + line.first
        if event.size:
            result = _of_device_line(trace.start[event], trace.end[event], activity[event], role)
            yield LineSets(number, event, tuple(result))


def _between(trace: Trace, line: TraceLine, span: tuple[int, int] | None) -> TraceLine:
    """The part of the line from its first to its last event that lies in ``span``."""
    if span is None or line.first == line.last:
        return line
    last = line.first + int(np.searchsorted(trace.start[line.events], span[1]))
    ends_later = trace.end[line.first : last] > span[0]
    first = line.first + int(ends_later.argmax()) if ends_later.any() else last
    return replace(line, first=first, last=last)


def _reaching(
    trace: Trace, line: TraceLine, keep: BoolArray, span: tuple[int, int] | None
) -> BoolArray:
    return keep if span is None else keep & (trace.end[line.events] > span[0])


def either(*sets: Intervals) -> Intervals:
    """When one of ``sets`` is."""
    # Two by two: one after the other, the first of many would be copied as often as there are.
    left = [one for one in sets if one[0].size]
    while len(left) > 1:
        merged = left[len(left) & ~1 :]
        for one, other in zip(left[::2], left[1::2], strict=False):
            room = one[0].size + other[0].size
            begins, ends = np.empty(room, np.int64), np.empty(room, np.int64)
            count = merge(*one, *other, begins, ends)
            merged.append((begins[:count], ends[:count]))
        left = merged
    return left[0] if left else NEVER


def _together(result: Iterable[tuple[Activity, Intervals]]) -> dict[Activity, Intervals]:
    """Sets of several lines, by activity."""
    parts: dict[Activity, list[Intervals]] = {}
    for kind, intervals in result:
        if intervals[0].size:
            parts.setdefault(kind, []).append(intervals)
    return {kind: either(*own) for kind, own in parts.items()}


def _of_device(trace: Trace, activity: UInt8Array, device: Device) -> DeviceSets:
    own: list[tuple[Activity, Intervals]] = []
    beside: list[tuple[Activity, Intervals]] = []
    for number, role in device.lines:
        events = trace.lines[number].events
        start, end, code = trace.start[events], trace.end[events], activity[events]
        home = beside if role is Role.ASYNC else own
        home += _of_device_line(start, end, code, role)
    sets, others = _together(own), _together(beside)
    communication = either(
        sets.get(Activity.COMMUNICATION, NEVER), others.get(Activity.COMMUNICATION, NEVER)
    )
    # The op line says what the core itself was at; a transfer beside it explains only the rest.
    busy = either(*sets.values())
    for kind, intervals in others.items():
        sets[kind] = either(sets.get(kind, NEVER), without(intervals, busy))
    return DeviceSets(device, sets, communication)


def _of_device_line(
    start: Int64Array, end: Int64Array, code: UInt8Array, role: Role
) -> Iterable[tuple[Activity, Intervals]]:
    """The activities of the events of one line of a device."""
    if role is Role.OPS:
        return _painted(start, end, code)
    return [(kind, _union_of(start, end, code == kind)) for kind in _present(code)]


def _explaining(
    trace: Trace, line: TraceLine, code: UInt8Array, place: Int32Array, *, is_thread: bool
) -> BoolArray:
    """Which events of a thread say what a step's time went to."""
    keep: BoolArray = code != Activity.NOTHING
    keep &= trace.end[line.events] > trace.start[line.events]
    if is_thread:
        return keep
    if trace.source == "op_runs":
        # What a device ran is in its sets.
        keep &= code > Activity.HOST_TO_DEVICE
        keep |= (code == Activity.COMMUNICATION) & (trace.planes[line.plane].kind == HOST)
    works_for_step = place[line.events] >= 0
    if is_xla_line(line):
        works_for_step |= (code == Activity.HOST_OP) | (code == Activity.COMMUNICATION)
    keep &= works_for_step & (code != Activity.INPUT_WORK)
    return keep


def _of_thread(
    start: Int64Array, end: Int64Array, code: UInt8Array
) -> Iterable[tuple[Activity, Intervals]]:
    """The activities of one thread's events, each moment with one of them."""
    waits = _union_of(start, end, (code == Activity.INPUT_WAIT) | (code == Activity.INPUT_WORK))
    compiles = _compiling(start, end, code)
    within = either(waits, compiles)
    yield Activity.INPUT_WAIT, waits
    yield Activity.COMPILE, without(compiles, waits)
    inner = _INNERMOST[code]
    rest = _union_of(start, end, code == Activity.HOST)
    for kind, intervals in _painted(start[inner], end[inner], code[inner]):
        if kind == Activity.WAIT:
            rest = without(rest, intervals)
        yield kind, without(intervals, within)
    yield Activity.HOST, without(rest, within)


def _compiling(start: Int64Array, end: Int64Array, code: UInt8Array) -> Intervals:
    """When a thread compiled: a call that had to compile did nothing else until it was done."""
    compiles = _union_of(start, end, code == Activity.COMPILE)
    if not compiles[0].size:
        return compiles
    calls = np.flatnonzero(code == Activity.LAUNCH)
    last = np.searchsorted(compiles[0], end[calls]) - 1
    until = np.where(last >= 0, compiles[1][np.maximum(last, 0)], start[calls])
    until = np.minimum(until, end[calls])
    return union(np.concatenate([compiles[0], start[calls]]), np.concatenate([compiles[1], until]))


def _painted(
    start: Int64Array, end: Int64Array, code: UInt8Array
) -> Iterable[tuple[Activity, Intervals]]:
    """What the innermost events say, by activity."""
    none, stack = np.empty(0, np.int64), np.empty(256, np.int64)
    # Counted first: memory that turns out to be too small has to be touched again.
    while (count := paint(start, end, code, none, none, np.empty(0, np.uint8), stack)) < 0:
        stack = np.empty(4 * stack.size, np.int64)
    begins, ends = np.empty(count, np.int64), np.empty(count, np.int64)
    codes = np.empty(count, np.uint8)
    paint(start, end, code, begins, ends, codes, stack)
    for kind in _present(codes):
        own = codes == kind
        yield kind, (begins[own], ends[own])


def _union_of(start: Int64Array, end: Int64Array, own: BoolArray) -> Intervals:
    return union(start[own], end[own])


def _present(code: UInt8Array) -> list[Activity]:
    """The activities among ``code``, but for NOTHING."""
    counts = np.bincount(code, minlength=1)
    return [Activity(number) for number in np.flatnonzero(counts).tolist() if number]
