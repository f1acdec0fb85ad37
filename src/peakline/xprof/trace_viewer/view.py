"""The events that XProf's trace viewers show: its choice of planes, with what it adds and renames.

Sources: as in `peakline.viewer.view`, and ``group_events.cc`` (openxla/xla,
``xla/tsl/profiler/utils``).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from peakline.tables import Columns, Names, Profile
from peakline.tables.once import once
from peakline.trace.events import FARTHEST, nesting_of, trace_of
from peakline.viewer.derived import Arguments, Derived, DerivedEvents, derived_lines
from peakline.viewer.flows import Flows, flows_of
from peakline.viewer.names import ShownNames, name_order, step_names
from peakline.viewer.view import (
    ASYNC,
    COMPLETE,
    COUNTER,
    COUNTER_LINE,
    HOST_PID,
    HOST_PLANE,
    MOST_DEVICE_PID,
    OTHER_PID,
    Process,
    Track,
    View,
    zero_of,
)

_GPU, _TPU, _CUSTOM = "/device:GPU:", "/device:TPU:", "/device:CUSTOM:"
_STEP_LINES = ("Steps", "Sparse Core Steps")
_MODULE_LINES = ("XLA Modules", "Sparse Core Modules")
_REGION, _REGION_START, _REGION_STOP = (
    f"ThreadpoolListener::{what}" for what in ("Region", "StartRegion", "StopRegion")
)


@once
def xprof_view(profile: Profile) -> View:
    """What XProf's ``trace_viewer@`` shows; made once.

    Raises InputError when the profile cannot be read.
    """
    return _view(profile, _Streaming())


def xprof_whole_view(profile: Profile) -> View:
    """What XProf's ``trace_viewer`` shows, before it cuts it: other planes, all lines, and no
    counters or asynchronous events apart. Raises InputError when the profile cannot be read.
    """
    return _view(profile, _Whole())


class _Streaming:
    """What ``trace_viewer@`` shows: source ``ConvertXSpaceToTraceEventsContainer``."""

    tells_points = True
    """Whether counters and asynchronous events are apart from the others."""
    lists_empty = False
    """Whether lines of the host without events, and planes without lines, are named."""

    def processes(self, names: list[str], natives: list[int | None]) -> dict[int, int]:
        """The process of every plane that is shown."""
        result = sorted((name, p) for p, name in enumerate(names) if name.startswith(HOST_PLANE))
        pids = {plane: HOST_PID + place for place, (_, plane) in enumerate(result)}
        for plane in _first_kind(names, (_GPU, _TPU)):
            pid = (1 + (natives[plane] or 0)) & 0xFFFFFFFF
            pids[plane] = pid if pid <= MOST_DEVICE_PID else 1
        for plane, name in enumerate(names):
            if name.startswith(_CUSTOM):
                pids[plane] = OTHER_PID + (natives[plane] or 0)
        return pids

    hidden_line: str | None = None
    """The events of a line of that name are not shown."""


class _Whole(_Streaming):
    """What ``trace_viewer`` shows: source ``xplane_to_trace_events.cc``."""

    tells_points = False
    lists_empty = True

    def processes(self, names: list[str], natives: list[int | None]) -> dict[int, int]:
        pids = {names.index(HOST_PLANE): HOST_PID} if HOST_PLANE in names else {}
        for plane in _first_kind(names, (_GPU, _TPU, _CUSTOM)):
            pids[plane] = (1 + (natives[plane] or 0)) & 0xFFFFFFFF
        return pids

    hidden_line = "Async XLA Ops"


def _first_kind(names: list[str], prefixes: tuple[str, ...]) -> list[int]:
    """The planes whose name begins with the first of ``prefixes`` that there is."""
    for prefix in prefixes:
        planes = [plane for plane, name in enumerate(names) if name.startswith(prefix)]
        if planes:
            return planes
    return []


@dataclass(eq=False)
class _Rows:
    """Events that are shown: of the file (``row`` >= 0) and made ones, on numbered lines."""

    line: AnyArray
    start: Int64Array
    end: Int64Array
    code: Int32Array
    row: Int64Array
    group: AnyArray
    has_group: BoolArray
    made: Int64Array
    """Its place among the events that are made, -1 for one of the file."""

    def take(self, rows: AnyArray) -> _Rows:
        return _Rows(*(getattr(self, part.name)[rows] for part in fields(self)))

    @classmethod
    def join(cls, parts: list[_Rows]) -> _Rows:
        if len(parts) == 1:
            return parts[0]
        return cls(
            *(np.concatenate([getattr(p, part.name) for p in parts]) for part in fields(cls))
        )

    @classmethod
    def made_ones(
        cls,
        line: Int64Array,
        start: Int64Array,
        end: Int64Array,
        code: Int32Array,
        group: AnyArray | None = None,
        first: int = -1,
    ) -> _Rows:
        """Events that are not in the file; ``first`` is the number of the first among those."""
        size = start.size
        none = np.full(size, -1, np.int64)
        own = none if group is None else group
        number = none if first < 0 else first + np.arange(size)
        return cls(line, start, end, code, none, own, own >= 0, number)


@dataclass(frozen=True)
class _Line:
    """A line as it is shown; ``pid`` is -1 for one that is not."""

    pid: int
    tid: int
    name: str


def _view(profile: Profile, shows: _Streaming) -> View:
    planes, lines, events = (profile.columns(name) for name in ("planes", "lines", "events"))
    plane_names = [name or "" for name in planes.names("name").to_list()]
    pids = shows.processes(plane_names, planes.array("native_id").tolist())
    derived = derived_lines(profile)
    shown = _lines(lines, pids, derived)
    names = ShownNames(profile, events)
    rows = _file_rows(events, lines, plane_names, names, derived)
    at, texts = step_names(profile)
    new = np.array([names.code(text) for text in texts], np.int32)
    rows.code[at] = np.where(names.hidden[rows.code[at]], rows.code[at], new)
    arguments: dict[int, Arguments] = {
        int(row): [("step_name", text)] for row, text in zip(at, texts, strict=True)
    }
    arguments |= _merge_steps(profile, rows, lines, plane_names, names)
    hidden = np.array([line.pid < 0 or line.name == shows.hidden_line for line in shown], np.bool_)
    keep = ~np.append(hidden, True)
    regions = _regions(profile, events, names)
    parts = [
        rows.take(keep[rows.line] & ~names.hidden[rows.code]), regions.take(keep[regions.line])
    ]  # fmt: skip
    filled = np.bincount(rows.line, minlength=len(shown)) > 0
    threads: dict[int, dict[int, str]] = {}
    line_plane = lines.array("plane_id").tolist()
    has_lines: set[int] = set()
    for number, (line, plane) in enumerate(zip(shown, line_plane, strict=True)):
        is_device = plane_names[plane].startswith((_GPU, _TPU))
        if filled[number] or not is_device:
            has_lines.add(plane)
        is_listed = filled[number] or (shows.lists_empty and not is_device)
        is_counter = shows.tells_points and line.name == COUNTER_LINE
        if line.pid >= 0 and is_listed and not is_counter:
            threads.setdefault(line.pid, {})[line.tid] = line.name
    behind = 0
    for made in derived.lines:
        first, behind = behind, behind + made.start.size
        if made.plane not in pids:
            continue
        pid = pids[made.plane]
        has_lines.add(made.plane)
        threads.setdefault(pid, {})[made.tid] = made.name
        code = np.array([names.code(text) for text, _ in made.texts] or [0], np.int32)
        parts.append(
            _Rows.made_ones(
                np.full(made.start.size, len(shown)), made.start, made.end, code[made.code],
                made.group, first,
            )
        )  # fmt: skip
        shown.append(_Line(pid, made.tid, made.name))
    processes = {
        pid: Process(pid, plane_names[plane], threads.get(pid, {}))
        for plane, pid in pids.items()
        if plane in has_lines or shows.lists_empty
    }
    sorts = np.zeros(len(shown), np.bool_)
    sorts[np.unique(regions.line)] = True
    for number, plane in enumerate(line_plane):
        sorts[number] |= plane_names[plane].startswith(_TPU)
    ordered = [processes[pid] for pid in sorted(processes)]
    return _arranged(
        profile,
        _Rows.join(parts),
        shown,
        names,
        ordered,
        sorts,
        arguments,
        tells_points=shows.tells_points,
    )


def _lines(lines: Columns, pids: dict[int, int], derived: Derived) -> list[_Line]:
    shown = []
    for line, (plane, name, native) in enumerate(
        zip(
            lines.array("plane_id").tolist(),
            lines.names("name").to_list(),
            lines.array("native_id").tolist(),
            strict=True,
        )
    ):
        tid = derived.tids.get(line, native & 0xFFFFFFFF)
        shown.append(_Line(pids.get(plane, -1), tid, name or ""))
    return shown


def _file_rows(
    events: Columns, lines: Columns, planes: list[str], names: ShownNames, derived: Derived
) -> _Rows:
    line = events.array("line_id")
    start = events.array("start_ps")
    timed = events.is_valid("start_ps")
    if not timed.all():
        # What was only counted stands at the begin of its line.
        start = np.where(timed, start, lines.array("start_ps")[line])
    with np.errstate(over="ignore"):
        end = start + np.maximum(events.array("duration_ps"), 0)
    group, has_group = events.array("step_id"), events.is_valid("step_id")
    touching = _touching(events, lines, planes)
    if touching.size:
        # Upstream adds the group of what they overlap, which is the one before that they touch.
        group, has_group = group.copy(), has_group.copy()
        group[touching], has_group[touching] = group[touching - 1], has_group[touching - 1]
    if derived.rows.size:
        group, has_group = group.astype(np.int64), has_group.copy()
        group[derived.rows] = derived.groups
        has_group[derived.rows] = True
    return _Rows(
        line, start, end, names.of_events(), np.arange(events.rows), group, has_group,
        np.full(events.rows, -1, np.int64),
    )  # fmt: skip


def _merge_steps(
    profile: Profile, rows: _Rows, lines: Columns, planes: list[str], names: ShownNames
) -> dict[int, Arguments]:
    """Steps of a TPU: neighbours of one group become one, those without are not shown, and all
    have the name of their group. Returns what is arguments of each, by row.
    """
    arguments: dict[int, Arguments] = {}
    steps = profile.columns("steps")
    named = dict(zip(steps.array("step_id").tolist(), steps.names("name").to_list(), strict=True))
    line_plane = lines.array("plane_id").tolist()
    for line, name in enumerate(lines.names("name").to_list()):
        if name not in _STEP_LINES or not planes[line_plane[line]].startswith(_TPU):
            continue
        own = np.flatnonzero(rows.line == line)
        group = np.where(rows.has_group[own], rows.group[own], -1)
        if not (group >= 0).any():
            continue
        before = rows.end[own] - rows.start[own]
        opens = np.flatnonzero(np.diff(group, prepend=-2) != 0)
        last = np.append(opens[1:], own.size) - 1
        rows.end[own[opens]] = rows.end[own[last]]
        shown = group[opens] >= 0
        texts = [named.get(number) or str(number) for number in group[opens[shown]].tolist()]
        rows.code[own[opens[shown]]] = [names.code(text) for text in texts]
        gone = np.ones(own.size, np.bool_)
        gone[opens[shown]] = False
        rows.code[own[gone]] = names.hidden_code
        lengths = rows.end[own[opens]] - rows.start[own[opens]]
        idle = lengths - np.add.reduceat(before, opens)
        for row, text, time in zip(
            rows.row[own[opens[shown]]].tolist(), texts, idle[shown].tolist(), strict=True
        ):
            arguments[row] = [("step_name", text), ("step_idle_time_ps", time)]
    return arguments


def _touching(events: Columns, lines: Columns, planes: list[str]) -> Int64Array:
    """Events of the lines that guide the steps of a TPU that begin before the one in front of
    them has ended, or as it ends.
    """
    result = [np.zeros(0, np.int64)]
    names, plane_of = lines.names("name").to_list(), lines.array("plane_id").tolist()
    for plane, name in enumerate(planes):
        if not name.startswith(_TPU):
            continue
        for guides in (_STEP_LINES, _MODULE_LINES):
            own = [line for line, own_name in enumerate(names)
                   if plane_of[line] == plane and own_name in guides]  # fmt: skip
            rows = np.flatnonzero(events.array("line_id") == own[-1]) if own else result[0]
            if rows.size:
                start = events.array("start_ps")[rows]
                end = start + events.array("duration_ps")[rows]
                result.append(rows[1:][end[:-1] >= start[1:]])
                break
    return np.concatenate(result)


def _regions(profile: Profile, events: Columns, names: ShownNames) -> _Rows:
    """What a thread pool did between two marks: upstream adds an event for each."""
    none = np.zeros(0, np.int64)
    name = events.names("name")
    starts, stops = name.code_of(_REGION_START), name.code_of(_REGION_STOP)
    if starts < 0 or stops < 0 or flows_of(profile).is_from_file:
        return _Rows.made_ones(none, none, none, none.astype(np.int32))
    marks = np.flatnonzero((name.codes == starts) | (name.codes == stops))
    is_start = name.codes[marks] == starts
    consumed = profile.typed_stats(frozenset(("_c",))).array("event_id")
    marks = marks[~is_start | np.isin(marks, consumed)]
    is_start = name.codes[marks] == starts
    line, start = events.array("line_id")[marks], events.array("start_ps")[marks]
    opened = np.maximum.accumulate(np.where(is_start, np.arange(marks.size), -1))
    stop = np.flatnonzero(~is_start & (opened >= 0))
    begin = opened[stop]
    same = (line[begin] == line[stop]) & (start[begin] != -profile.zero_ps)
    begin, stop = begin[same], stop[same]
    end = np.maximum(start[stop], start[begin])
    return _Rows.made_ones(
        line[stop], start[begin], end, np.full(stop.size, names.code(_REGION), np.int32),
        _groups_around(profile, events, marks[begin], end),
    )  # fmt: skip


def _groups_around(profile: Profile, events: Columns, rows: AnyArray, end: AnyArray) -> AnyArray:
    """The group of the innermost event around what lasts from the begin of each of ``rows`` to
    ``end``; -1 for none.
    """
    trace, parent = trace_of(profile), nesting_of(profile).parent
    around = parent[trace.places(rows)]
    while True:
        short = (around >= 0) & (trace.end[around] < end)
        if not short.any():
            break
        around = np.where(short, parent[around], around)
    row = trace.rows(np.maximum(around, 0))
    known = (around >= 0) & events.is_valid("step_id")[row]
    return np.where(known, events.array("step_id")[row], -1).astype(np.int64)


def _arranged(
    profile: Profile,
    rows: _Rows,
    lines: list[_Line],
    names: ShownNames,
    processes: list[Process],
    sorts: BoolArray,
    arguments: dict[int, Arguments],
    *,
    tells_points: bool,
) -> View:
    """The rows by process and track, each track in upstream's order."""
    flows = flows_of(profile).take(rows.row)
    pid = np.array([line.pid for line in lines] or [0], np.int64)[rows.line]
    own = np.array([line.tid for line in lines] or [0], np.int64)[rows.line]
    is_counter = np.array(
        [tells_points and line.name == COUNTER_LINE for line in lines] or [False], np.bool_
    )
    kind = np.where(is_counter[rows.line], COUNTER, COMPLETE).astype(np.int64)
    asynchronous = profile.typed_stats(frozenset(("_a",))).array("event_id")
    if asynchronous.size and tells_points:
        is_async = np.isin(rows.row, asynchronous) & (flows.number >= 0) & (kind == COMPLETE)
        kind[is_async] = ASYNC
    # Points share a track by name; those of interned names share one.
    order_code = name_order(names.texts())
    point = kind != COMPLETE
    own[point] = np.where(kind[point] == COUNTER, rows.code[point], order_code[rows.code[point]])
    # Upstream sorts lines that it adds to, and those of TPUs; the others stay as they are.
    length = np.where(sorts[rows.line], rows.start - rows.end, 0)
    order = np.lexsort((length, rows.start, own, kind, pid))
    rows, pid, own, kind = rows.take(order), pid[order], own[order], kind[order]
    opens = np.ones(rows.start.size, np.bool_)
    opens[1:] = (pid[1:] != pid[:-1]) | (own[1:] != own[:-1]) | (kind[1:] != kind[:-1])
    first = np.flatnonzero(opens).tolist()
    ends = [*first[1:], rows.start.size] if first else []
    tracks = tuple(
        Track(int(pid[at]), int(own[at]), int(kind[at]), at, last)
        for at, last in zip(first, ends, strict=True)
    )
    flows = Flows(
        flows.number[order], flows.direction[order], flows.category[order], flows.count,
        is_from_file=flows.is_from_file,
    )  # fmt: skip
    texts = names.texts()
    start, end = (np.clip(own, -FARTHEST, FARTHEST, out=own) for own in (rows.start, rows.end))
    return View(
        profile, tuple(processes), tracks, start, end,
        Names(rows.code.astype(np.int32), texts), np.zeros(max(len(texts), 1), np.bool_),
        rows.row, zero_of(profile, start, end), (rows.group, rows.has_group), flows,
        DerivedEvents(derived_lines(profile).lines, place=rows.made), arguments,
    )  # fmt: skip
