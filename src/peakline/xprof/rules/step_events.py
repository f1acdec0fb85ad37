"""What XProf's step database is made of: typed spans of time and markers, by step.

Sources of the rules: ``convert/xplane_to_step_events.cc``, ``utils/derived_timeline.cc`` and
``utils/event_span.cc`` of openxla/xprof. A step is known by its place in `StepEvents.ids`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array, UInt8Array
from peakline.kernels.step_spans import host_spans
from peakline.kernels.trace_layout import MARKER, NOTHING, SKIP
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.trace.activity import is_xla_line
from peakline.trace.device_lines import first_devices
from peakline.trace.events import DEVICE, HOST, Trace, TraceLine, trace_of
from peakline.xprof.rules.step_kinds import (
    SHAPES,
    SpanKind,
    activity_kinds,
    device_kinds,
    host_kinds,
    named_kinds,
    special_kinds,
)

_Times = tuple[AnyArray, AnyArray]

GPU_PREFIX, TPU_PREFIX = "/device:GPU:", "/device:TPU:"
_HOST_PLANE = "/host:CPU"
"""Numbers of the lines that XProf derives from others (``utils/trace_utils.h``)."""
_IMPLICIT = frozenset(("FunctionRun", "SessionRun", "RunGraph", "ExecutorState::Process"))
"""Events that open a step without giving it a name."""
_STEP_LINES = frozenset(("Steps", "Sparse Core Steps", "XLA Modules", "Sparse Core Modules"))
"""And the lines that do so with every event, on whatever plane."""


@dataclass(frozen=True, eq=False)
class Groups:
    """Steps of a profile: their ids (ascending), and per event of the trace the place of its step.

    ``names``, ``begin`` and ``end`` are those of the event that opened each; an end before the
    begin where that is not known.
    """

    ids: AnyArray
    place: Int32Array
    names: list[str]
    begin: Int64Array
    end: Int64Array
    given: bool
    """Whether the groups stand in the file, rather than having been found in it."""


@dataclass(frozen=True, eq=False)
class StepEvents:
    """The spans of steps (in no order), and begin and end of the longest markers of each.

    A marker's end is not after its begin where a step has none. ``names`` are empty where the
    step's name is its number; ``opened`` is the event that opened a step, marker or not.
    """

    groups: Groups
    kind: AnyArray
    step: Int64Array
    begin: Int64Array
    end: Int64Array
    host_marker: _Times
    device_marker: _Times
    names: list[str]


def device_planes(profile: Profile) -> list[int]:
    """The places of the planes whose steps count: those of TPUs, or where there are none of GPUs.

    Of another format than an XSpace all devices. Of very many the first count.
    """
    planes = trace_of(profile).planes
    result = [n for n, plane in enumerate(planes) if plane.kind == DEVICE]
    if profile.event_rules.planes is not None:
        of_tpus, of_gpus = (
            [n for n, plane in enumerate(planes) if plane.name.startswith(prefix)]
            for prefix in (TPU_PREFIX, GPU_PREFIX)
        )
        result = of_tpus or of_gpus
    return list(first_devices(profile, tuple(result)))


def _host_planes(profile: Profile) -> list[int]:
    """The planes of the host's threads: of an XSpace the first ``/host:CPU``."""
    trace = trace_of(profile)
    if profile.event_rules.planes is None:
        return [n for n, plane in enumerate(trace.planes) if plane.kind == HOST]
    return [n for n, plane in enumerate(trace.planes) if plane.name == _HOST_PLANE][:1]


@once
def groups_of(profile: Profile) -> Groups:
    """The steps of the events of `trace_of`, also of those that ``steps`` does not hold."""
    trace = trace_of(profile)
    ids, place = np.zeros(0, np.int64), np.full(trace.size, -1, np.int32)
    if trace.size:
        own = profile.columns(trace.source, frozenset(("step_id",)))
        ids, place = _placed(own.array("step_id"), own.is_valid("step_id"))
        if trace.row is not None:
            place = place[trace.row]
    names = [""] * ids.size
    begin, end = np.zeros(ids.size, np.int64), np.full(ids.size, -1, np.int64)
    if "steps" not in profile.tables:
        return Groups(ids, place, names, begin, end, given=True)
    table = profile.columns("steps")
    own_ids, own_names = table.array("step_id"), table.names("name")
    at = np.searchsorted(ids, own_ids)
    for row, number in enumerate(at.tolist()):
        if number < ids.size and ids[number] == own_ids[row]:
            names[number] = own_names[row] or ""
            begin[number] = table.array("start_ps")[row]
            end[number] = table.array("end_ps")[row]
    grouped = profile.is_grouped()
    given = table.rows == 0 if grouped is None else grouped
    return Groups(ids, place, names, begin, end, given=given)


def _placed(step: AnyArray, known: BoolArray) -> tuple[AnyArray, Int32Array]:
    """The distinct ids and where each event's stands; they are nearly always 0, 1, 2 ..."""
    positive = step >= 0
    known = known & positive
    count = np.count_nonzero(known)
    if step.dtype == np.int32 and count and count == np.count_nonzero(positive):
        # As unsigned numbers those below zero, which are none, are the largest.
        first, last = int(step.view(np.uint32).min()), int(step.max())
        if last - first <= 2 * count:
            place = np.maximum(step, np.int32(first - 1))
            return np.arange(first, last + 1), np.subtract(place, np.int32(first), out=place)
    used = step if known.all() else step[known]
    if not used.size:
        return used, np.full(step.size, -1, np.int32)
    first, last = int(used.min()), int(used.max())
    if last - first <= 2 * used.size:
        place = (step - first).astype(np.int32)
        place[~known] = -1
        return np.arange(first, last + 1), place
    ids, number = np.unique(used, return_inverse=True)
    place = np.full(step.size, -1, np.int32)
    place[known] = number
    return ids, place


def step_events(profile: Profile, *, compatible: bool) -> StepEvents:
    """The spans and markers of the host's steps, and of its GPUs'.

    With ``compatible`` a host that has a GPU counts by the GPU alone; else everything counts.
    Raises InputError when the profile cannot be read.
    """
    trace, groups = trace_of(profile), groups_of(profile)
    devices = device_planes(profile)
    gpus = [n for n in devices if not trace.planes[n].name.startswith(TPU_PREFIX)]
    made = _Maker(profile, trace, groups, compatible)
    if not (gpus and compatible):
        for plane in _host_planes(profile):
            made.add_host(plane, with_device=bool(gpus))
    for plane in gpus:
        made.add_gpu(plane)
    return made.events()


class _Maker:
    """Collects spans and markers, plane after plane."""

    def __init__(self, profile: Profile, trace: Trace, groups: Groups, compatible: bool) -> None:
        self.profile, self.trace, self.groups = profile, trace, groups
        self.compatible = compatible
        none = np.zeros(0, np.int64)
        self.spans: list[tuple[AnyArray, ...]] = [(none.astype(np.uint8), none, none, none)]
        self.marks: dict[str, list[tuple[AnyArray, ...]]] = {
            HOST: [(none, none, none)], DEVICE: [(none, none, none)],
        }  # fmt: skip
        self.names = [""] * groups.ids.size
        self._lines: dict[int, list[TraceLine]] = {}
        for line in trace.lines:
            if line.last > line.first:
                self._lines.setdefault(line.plane, []).append(line)
        self._stats = cache(lambda *wanted: profile.typed_stats(frozenset(wanted)))
        """The stats of those names, which are read once for all planes."""

    def events(self) -> StepEvents:
        kind, step, begin, end = (np.concatenate(p) for p in zip(*self.spans, strict=True))
        marker_begin, marker_end = self._longest(HOST)
        if not self.compatible:
            # A step may have no event of its own: a run of StepStats has not.
            bare = (marker_end <= marker_begin) & (self.groups.end > self.groups.begin)
            marker_begin = np.where(bare, self.groups.begin, marker_begin)
            marker_end = np.where(bare, self.groups.end, marker_end)
            self.names = [
                own or name for own, name in zip(self.names, self.groups.names, strict=True)
            ]
        return StepEvents(
            self.groups, kind, step, begin, end,
            (marker_begin, marker_end), self._longest(DEVICE), self.names,
        )  # fmt: skip

    def _longest(self, where: str) -> _Times:
        """Of each step the longest marker, of equals the first."""
        begin, end = (np.zeros(self.groups.ids.size, np.int64) for _ in range(2))
        step, starts, stops = (np.concatenate(p) for p in zip(*self.marks[where], strict=True))
        for row in np.lexsort((np.arange(step.size)[::-1], stops - starts)).tolist():
            begin[step[row]], end[step[row]] = starts[row], stops[row]
        return begin, end

    def add_host(self, plane: int, *, with_device: bool) -> None:
        trace, groups, lines = self.trace, self.groups, self._lines.get(plane, [])
        of_line = None if self.compatible or with_device else named_kinds(self.profile)
        if self.compatible:
            by_name = host_kinds(trace)
            special = special_kinds(self.profile, trace, lines, by_name)
        elif of_line is not None:
            special = by_name = np.zeros(0, np.uint8)
        else:
            by_name = np.full(len(trace.name.values) + 1, SKIP, np.uint8)
            special = activity_kinds(self.profile, slice(None), with_device=with_device)
            if with_device and trace.source == "events" and "event_stats" in self.profile.tables:
                # Whatever it is called: it says what it started on a device.
                started = trace.places(self._stats("correlation_id").array("event_id"))
                plain = special[started] == SpanKind.HOST_COMPUTE
                special[started[plain]] = SpanKind.HOST_PREPARE
        special = self._given_names(special)
        place = groups.place if self.compatible or with_device else self._placed_at_once(lines)
        marks: dict[int, int] = {}
        for line in lines:
            kind_of = by_name if of_line is None else of_line(line)
            size = line.last - line.first
            # As large as they can get: memory that is never written is never there.
            result = (
                np.empty(size, np.uint8), np.empty(size, np.int32),
                np.empty(size, np.int64), np.empty(size, np.int64),
            )  # fmt: skip
            marked = np.empty(size, np.int64)
            count, marks_found = host_spans(
                trace.start, trace.end, place, trace.name.codes, kind_of, special,
                line.first, line.last, groups.begin, groups.end, *result, marked,
            )  # fmt: skip
            self.spans.append(tuple(part[:count].copy() for part in result))
            mark = marked[:marks_found]
            kinds = kind_of[trace.name.codes[mark]]
            if special.size:
                kinds = np.where(special[mark] == SKIP, kinds, special[mark])
            marks.update(zip(mark.tolist(), kinds.tolist(), strict=True))
        self._mark_host(marks)

    def _placed_at_once(self, lines: list[TraceLine]) -> Int32Array:
        """The step of every event, also of what XLA runs on threads of its own for the CPU: nothing
        links that to a step, and it works for the one that goes on.
        """
        trace, groups = self.trace, self.groups
        place = groups.place
        order = np.argsort(groups.begin, kind="stable")
        order = order[groups.end[order] > groups.begin[order]]
        for line in lines:
            if not is_xla_line(line) or not order.size:
                continue
            start = trace.start[line.events]
            at = order[np.maximum(np.searchsorted(groups.begin[order], start, side="right") - 1, 0)]
            inside = (start >= groups.begin[at]) & (start < groups.end[at])
            inside &= groups.place[line.events] < 0
            if inside.any():
                place = place.copy() if place is groups.place else place
                own = place[line.events]
                own[inside] = at[inside]
        return place

    def _given_names(self, special: UInt8Array) -> UInt8Array:
        """Where the file was grouped when it was written, it has the names of the steps."""
        if not (self.groups.given and "event_stats" in self.profile.tables):
            return special
        stats = self.profile.typed_stats(frozenset(("step_name",)))
        texts = stats.names("text")
        place = self.trace.places(stats.array("event_id"))
        for row, step in enumerate(self.groups.place[place].tolist()):
            name = texts[row]
            if step < 0 or not name:
                continue
            if not special.size:
                special = np.full(self.trace.size, SKIP, np.uint8)
            special[place[row]] = MARKER
            self.names[step] = self.names[step] or name
        return special

    def _mark_host(self, kind_of: dict[int, int]) -> None:
        """Separate markers from other events that just lie where the step's first event lies; of
        all of them the kind.
        """
        trace, groups = self.trace, self.groups
        names, code = trace.name.values, trace.name.codes
        opening: dict[int, list[int]] = {}
        marks, others = [], []
        for event, kind in kind_of.items():
            step = int(groups.place[event])
            if trace.start[event] == groups.begin[step] and trace.end[event] == groups.end[step]:
                opening.setdefault(step, []).append(event)
            elif kind == MARKER:
                marks.append(event)
        for step, events in opening.items():
            opened = self._opening(groups.names[step], events)
            line = trace.lines[int(trace.lines_of(np.array([opened]))[0])]
            is_named = names[code[opened]] not in _IMPLICIT and line.name not in _STEP_LINES
            if is_named:
                self.names[step] = self.names[step] or groups.names[step]
            for event in events:
                is_mark = event == opened and (is_named or not self.compatible)
                if is_mark or kind_of[event] == MARKER:
                    marks.append(event)
                else:
                    others.append(event)
        mark = np.array(sorted(marks), np.int64)
        self.marks[HOST].append((groups.place[mark], trace.start[mark], trace.end[mark]))
        kinds = np.array([kind_of[event] for event in others], np.uint8)
        spans = np.array(others, np.int64)[kinds < NOTHING]
        place = groups.place[spans]
        self.spans.append((kinds[kinds < NOTHING], place, trace.start[spans], trace.end[spans]))

    def _opening(self, step: str, events: list[int]) -> int:
        """Which of the events that lie where a step begins and ends is the one that opened it."""
        named = [self.trace.name[event] or "" for event in events]
        for fits in (lambda name: step.startswith(f"{name} "), _IMPLICIT.__contains__):
            for event, name in zip(events, named, strict=True):
                if fits(name):
                    return event
        return events[0]

    def add_gpu(self, plane: int) -> None:
        """The work of one GPU; its streams' work without a step belongs to the one before."""
        trace, groups, lines = self.trace, self.groups, self._lines.get(plane, [])
        streams = [line for line in lines if line.derived is None]
        events = np.concatenate([np.arange(line.first, line.last) for line in streams] or [_NONE])
        order = np.lexsort((trace.end[events], trace.start[events]))
        step = groups.place[events]
        if groups.given:
            runs = [line for line in lines if line.derived == 0]
            run = np.concatenate([np.arange(line.first, line.last) for line in runs] or [_NONE])
            run = run[groups.place[run] >= 0]
            marks = groups.place[run], trace.start[run], trace.end[run]
        else:
            step[order] = _carried_on(step[order])
            marks = _runs(step[order], *(t[events[order]] for t in (trace.start, trace.end)))
        counts = step >= 0
        if self.compatible:
            stats = self._stats("correlation_id")
            name = stats.names("name")
            has = name.codes == name.code_of("correlation_id")
            has &= ~stats.is_valid("integer") | (stats.array("integer") >= 0)
            counts &= np.isin(events, trace.places(stats.array("event_id")[has]))
            # A device has a step where it has both a marker and work that something launched.
            worked = np.isin(marks[0], step[counts])
            marks = marks[0][worked], marks[1][worked], marks[2][worked]
        if groups.given:
            counts &= np.isin(step, marks[0])
        self.marks[DEVICE].append(marks)
        kinds = device_kinds(trace, events, self._stats(SHAPES))
        if not self.compatible:
            own = activity_kinds(self.profile, events, with_device=True)
            computes = own == SpanKind.DEVICE_COMPUTE_32
            kinds[~computes | (kinds < SpanKind.DEVICE_COMPUTE_32)] = own[
                ~computes | (kinds < SpanKind.DEVICE_COMPUTE_32)
            ]
            counts &= kinds != NOTHING
        events, step = events[counts], step[counts]
        self.spans.append((kinds[counts], step, trace.start[events], trace.end[events]))


_NONE = np.zeros(0, np.int64)


def _carried_on(step: Int32Array) -> Int32Array:
    """Each work's step, or that of the last one before that has one."""
    last = np.maximum.accumulate(np.where(step >= 0, np.arange(step.size), -1))
    return np.where(last >= 0, step[last], -1)


def _runs(
    step: Int32Array, begin: Int64Array, end: Int64Array
) -> tuple[Int32Array, Int64Array, Int64Array]:
    """A marker for all work of one step in a row; work in order of time."""
    has = step >= 0
    step, begin, end = step[has], begin[has], end[has]
    if not step.size:
        return step, begin, end
    first = np.flatnonzero(np.concatenate([[True], step[1:] != step[:-1]]))
    return step[first], begin[first], np.maximum.reduceat(end, first)
