"""The tables of all events, read only when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from peakline.deadline import check_deadline
from peakline.formats.common.annotations import steps_columns
from peakline.formats.common.files import SourceFile
from peakline.formats.xplane.grouping import Grouping, Step
from peakline.formats.xplane.groups import (
    by_owner,
    narrow,
    no_group,
    of_owners,
    pieces,
    ungrouped,
    wide,
)
from peakline.formats.xplane.line_parts import (
    LineFacts,
    LinePart,
    StatRows,
    name_codes,
    named,
    names_of_types,
    places_of,
    type_bases,
)
from peakline.formats.xplane.line_reader import LineReader
from peakline.formats.xplane.lines import SelectedLine
from peakline.formats.xplane.outline import Outline, PlaneOutline
from peakline.formats.xplane.store import Found
from peakline.formats.xplane.times import (
    OCCURRENCES,
    OFFSET,
    Far,
    add_durations,
    limit_durations,
    nearest_duration,
    nearest_line,
    nearest_start,
    place,
)
from peakline.formats.xplane.tpu import TpuPlane, overlap_groups, timed
from peakline.tables.columns import Columns, Names
from peakline.wire import Damage


def planes_table(planes: list[PlaneOutline]) -> Columns:
    """The ``planes`` table."""
    return Columns(
        {
            "plane_id": np.arange(len(planes), dtype=np.int64),
            "name": Names.encode([plane.name for plane in planes]),
            "kind": Names.encode([plane.kind for plane in planes]),
            "native_id": np.array([plane.native_id for plane in planes], np.int64),
        }
    )


def lines_table(facts: list[list[LineFacts]], zero_ps: int) -> tuple[Columns, Far]:
    """The ``lines`` table from what the lines of each plane say, and how many of its times were
    out of reach.
    """
    every = [(plane, fact) for plane, some in enumerate(facts) for fact in some]
    times = [fact.timestamp_ns * 1000 - zero_ps for _, fact in every]
    starts = [nearest_line(time) for time in times]
    rows = zip(every, times, starts, strict=True)
    far = Far((plane, "line") for (plane, _), time, start in rows if time != start)
    table = Columns(
        {
            "line_id": np.arange(len(every), dtype=np.int64),
            "plane_id": np.array([plane for plane, _ in every], np.int64),
            "name": Names.encode([fact.shown for _, fact in every]),
            "start_ps": np.array(starts, np.int64),
            "native_id": np.array([fact.native_id for _, fact in every], np.int64),
        }
    )
    return table, far


def steps_table(steps: Iterable[Step], zero_ps: int) -> tuple[Columns, Far]:
    """The ``steps`` table, and how many of its times were out of reach."""
    result = sorted(steps, key=lambda step: step.step_id)
    begins, ends, far = list[int](), list[int](), Far()
    for step in result:
        base = step.line_ps - zero_ps
        begin, length = nearest_start(base, step.offset_ps), nearest_duration(step.length_ps)
        begins.append(begin)
        ends.append(begin + length)
        if begin != base + step.offset_ps:
            far[step.plane, "start"] += 1
        if length != step.length_ps:
            far[step.plane, "duration"] += 1
    ids = np.array([step.step_id for step in result], np.int64)
    start, end = np.array(begins, np.int64), np.array(ends, np.int64)
    found_by = Names.encode([step.found_by for step in result])
    return steps_columns(ids, [step.name for step in result], start, end, found_by), far


PLAIN = frozenset(("event_id", "line_id", "name", "start_ps", "duration_ps", "category", "type_id"))
"""Columns that this module can read."""


def read_plain_events(
    file: SourceFile, outline: Outline, zero_ps: int, wanted: AbstractSet[str]
) -> tuple[Columns, dict[int, Damage], dict[int, list[LineFacts]], Far]:
    """The ``wanted`` columns of ``events`` in file order (all of `PLAIN`); by plane the damage,
    what its lines say about themselves, and how many times were out of reach.

    Rows and values are those of the whole table. The file is read piece by piece into columns that
    are made once.
    """
    result, counts, far = Found(), [np.zeros(0, np.int64)], Far()
    damage: dict[int, Damage] = {}
    facts: dict[int, list[LineFacts]] = {}
    bases = type_bases(outline)
    codes: Int32Array = np.zeros(0, np.int32)
    values: list[str] | None = None
    if "name" in wanted and "type_id" not in wanted:
        # Then a column of types is not needed either.
        codes, values = name_codes(outline)
    all_bytes = float(sum(int(plane.lines.length.sum()) for plane in outline.planes)) or 1.0
    before = 0.0
    for plane in outline.with_lines:
        bytes_here = float(plane.lines.length.sum())
        first = int(plane.lines.start[0]) if len(plane.lines) else 0
        counts.append(np.zeros(len(plane.lines), np.int64))
        base, after = bases[plane.index : plane.index + 2].tolist()
        here = np.append(codes[base:after], codes[-1:])
        line_bases = None
        if "start_ps" in wanted:
            # When each line begins, on the profile's clock.
            headers = LineReader(file, plane.lines).read_facts()
            line_bases = [line.timestamp_ns * 1000 - zero_ps for line in headers]
        reader = LineReader(file, plane.lines)
        for part in reader.parts():
            read = min(bytes_here, float(part.position - first))
            result.reserve("event", part.ids.size, min(1.0, max(before + read, 1.0) / all_bytes))
            _add_types(result.free("event_place"), part, plane, base, here, wanted)
            far += _add(result, part, plane, line_bases, wanted)
            counts[-1][part.line] += part.ids.size
        damage[plane.index], facts[plane.index] = reader.damage, reader.facts
        before += bytes_here
    columns = _as_columns(result, outline, np.concatenate(counts), values, wanted)
    return columns, damage, facts, far


def _add_types(
    types: Int32Array,
    part: LinePart,
    plane: PlaneOutline,
    first_type: int,
    codes: Int32Array,
    wanted: AbstractSet[str],
) -> None:
    """Write the type of each event of one part, or the code of its name, as far as is ``wanted``;
    ``codes`` are those of the plane's types, and at the end that of no type.
    """
    types = types[: part.ids.size]
    if "type_id" in wanted:
        types[:] = places_of(part.ids, plane)
        types[types >= 0] += np.int32(first_type)
    elif "name" in wanted:
        types[:] = codes[places_of(part.ids, plane)]


def _add(
    result: Found,
    part: LinePart,
    plane: PlaneOutline,
    line_bases: list[int] | None,
    wanted: AbstractSet[str],
) -> Far:
    """Write one part's events behind those that are there; which of its times were too far."""
    rows, far = part.ids.size, Far()
    if "duration_ps" in wanted:
        length = result.free("event_length")[:rows]
        length[:] = part.duration
        far[plane.index, "duration"] = limit_durations(length)
    if line_bases is not None:
        result.free("event_case")[:rows] = part.case
        begin = result.free("event_begin")[:rows]
        begin[:] = part.bits
        begin[part.case != OFFSET] = 0
        far[plane.index, "start"] = place(begin, line_bases[part.line], part.case)
    result.used["event"] += rows
    return far


def _as_columns(
    result: Found,
    outline: Outline,
    counts: Int64Array,
    values: list[str] | None,
    wanted: AbstractSet[str],
) -> Columns:
    """``values`` are the names where their codes were read, not the types."""
    rows = result.used["event"]
    data: dict[str, AnyArray | Names] = {}
    valid: dict[str, BoolArray] = {}
    if "event_id" in wanted:
        data["event_id"] = np.arange(rows, dtype=np.int64)
    if "line_id" in wanted:
        data["line_id"] = np.repeat(np.arange(counts.size, dtype=np.int32), counts)
    types = result.get("event_place")
    if "name" in wanted:
        data["name"] = names_of_types(types, outline) if values is None else named(types, values)
    if "type_id" in wanted:
        data["type_id"] = types
        valid["type_id"] = types >= 0
    if "start_ps" in wanted:
        data["start_ps"] = result.get("event_begin")
        valid["start_ps"] = result.get("event_case") != OCCURRENCES
    if "duration_ps" in wanted:
        data["duration_ps"] = result.get("event_length")
    return Columns(data, {name: mask for name, mask in valid.items() if not mask.all()})


NO_STEP = -1
"""Stands for no step in ``step_id``, whose null rows hold it too."""


@dataclass(frozen=True, eq=False)
class PlaneEvents:
    """The events of one plane, as the pass over it found them."""

    plane: PlaneOutline
    lines: list[SelectedLine]
    stats: StatRows
    """Those of their stats that are among `KEPT_STATS`."""
    nodes: slice | None
    """The plane's nodes in the forest; None when it takes no part."""
    tpu: TpuPlane | None


class EventTables:
    """The ``events`` table, from the events that were read while they were grouped.

    Columns that not everybody wants are made when somebody does.
    """

    __retained__ = "_outline _lines _stats _other _step_id far"

    def __init__(
        self, outline: Outline, planes: list[PlaneEvents], grouping: Grouping, zero_ps: int
    ) -> None:
        self._outline = outline
        self._lines = [(events.plane, line) for events in planes for line in events.lines]
        counts = [sum(line.begin.size for line in events.lines) for events in planes]
        firsts = np.cumsum([0, *counts]).tolist()
        self._stats = [(first, events.stats) for first, events in zip(firsts, planes, strict=False)]
        has_tpu = any(plane.is_tpu for plane in outline.planes)
        # By the lines' own times: before they are moved to the profile's clock.
        self._other: tuple[Int32Array, BoolArray | None] | None = None
        if grouping.other is not None:
            # First: our own stand in the place of what both are made of.
            self._other = _steps(planes, grouping.other, has_tpu=has_tpu, is_last=False)
        self._step_id, self._has_step = _steps(planes, grouping, has_tpu=has_tpu)
        self.far = Far()
        """How many times were out of reach."""
        for plane, line in self._lines:
            check_deadline()
            # Nobody else reads the line's own times any more: they become the column.
            base = line.header.timestamp_ns * 1000 - zero_ps
            self.far[plane.index, "start"] += place(line.begin, base, line.case)
            self.far[plane.index, "duration"] += limit_durations(line.length)
        none = np.zeros(0, np.int32)
        self._lines = [(plane, replace(line, owner=none)) for plane, line in self._lines]

    @property
    def rows(self) -> int:
        """The number of events."""
        return self._step_id.size

    def events(self, wanted: AbstractSet[str] | None) -> Columns:
        """The ``wanted`` columns of the ``events`` table (None: all)."""
        lines = [line for _, line in self._lines]
        make: dict[str, Callable[[], AnyArray | Names]] = {
            "event_id": lambda: np.arange(self.rows, dtype=np.int64),
            "line_id": self._line_ids,
            "name": self._names,
            "start_ps": lambda: _joined([line.begin for line in lines], np.int64),
            "duration_ps": lambda: _joined([line.length for line in lines], np.int64),
            "step_id": lambda: self._step_id,
            "type_id": self._types,
        }
        data = {name: made() for name, made in make.items() if wanted is None or name in wanted}
        valid: dict[str, BoolArray] = {}
        if "start_ps" in data and any(line.case is not None for line in lines):
            every = [np.ones(line.begin.size, np.bool_) for line in lines]
            for line, has_start in zip(lines, every, strict=True):
                if line.case is not None:
                    has_start[:] = line.case != OCCURRENCES
            valid["start_ps"] = np.concatenate(every)
        if "step_id" in data:
            has_step = self._has_step
            valid["step_id"] = _known(self._step_id, has_step)
        types = data.get("type_id")
        if isinstance(types, np.ndarray):
            valid["type_id"] = types >= 0
        return Columns(data, {name: mask for name, mask in valid.items() if not mask.all()})

    def set_steps(self, step: AnyArray, has_step: BoolArray | None = None) -> None:
        """Give every event another step, `NO_STEP` for none; what the runtime groups stays.

        ``has_step`` says which have one where `NO_STEP` may be one.
        """
        self._other = self._other_steps
        self._step_id, self._has_step = step, has_step

    def runtime_steps(self) -> tuple[AnyArray, BoolArray]:
        """The group of every event as upstream's profiler decides it, and which have one."""
        return self._other_steps[0], _known(*self._other_steps)

    @property
    def _other_steps(self) -> tuple[AnyArray, BoolArray | None]:
        return (self._step_id, self._has_step) if self._other is None else self._other

    def selected_stats(self, wanted: AbstractSet[str]) -> list[tuple[int, StatRows]]:
        """The stats called ``wanted``, all of which are among `KEPT_STATS`, by plane; with the row
        of the plane's first event.
        """
        return [(first, stats.named(wanted)) for first, stats in self._stats]

    def _line_ids(self) -> Int32Array:
        numbers = [plane.first_line + line.number for plane, line in self._lines]
        counts = [line.begin.size for _, line in self._lines]
        return np.repeat(np.array(numbers, np.int32), counts)

    def _types(self) -> Int32Array:
        """The row of each event's type, -1 for one whose metadata the file does not give."""
        return self._by_type(np.arange(type_bases(self._outline)[-1] + 1, dtype=np.int32), -1)

    def _names(self) -> Names:
        codes, values = name_codes(self._outline)
        return named(self._by_type(codes, int(codes[-1])), values)

    def _by_type(self, values: Int32Array, other: int) -> Int32Array:
        """For every event the value of its type, ``other`` for one without a type."""
        result = np.empty(self.rows, np.int32)
        bases = type_bases(self._outline).tolist()
        first = 0
        for plane, line in self._lines:
            here = np.append(values[bases[plane.index] : bases[plane.index + 1]], np.int32(other))
            for part in pieces(line.place):
                result[first : first + part.size] = here[part]
                first += part.size
        return result


def _known(step: AnyArray, has_step: BoolArray | None) -> BoolArray:
    """Which events have a step, from what `_steps` returns."""
    result: BoolArray = step != NO_STEP if has_step is None else has_step
    return result


def _steps(
    planes: list[PlaneEvents], grouping: Grouping, *, has_tpu: bool, is_last: bool = True
) -> tuple[AnyArray, BoolArray | None]:
    """The group of every event, `NO_STEP` for none; narrow where the numbers are.

    Which events have one is said beside it only where `NO_STEP` is somebody's group. Of the
    ``is_last`` grouping the groups stand in the place of the events' owners, which are gone then.
    """
    parts: list[AnyArray] = []
    for events in planes:
        for part in _steps_of(events, grouping, has_tpu=has_tpu, is_last=is_last):
            check_deadline()
            parts.append(part)
    if all(part.dtype == np.int32 for part in parts):
        step = _joined(parts, np.int32)
    else:
        step = np.concatenate([wide(part) for part in parts])
    none = no_group(step)
    has_step = step != none if (step == NO_STEP).any() else None
    # What no step has as its row, so that rows of steps need no column of their own.
    step[step == none] = NO_STEP
    return step, has_step


def _steps_of(
    events: PlaneEvents, grouping: Grouping, *, has_tpu: bool, is_last: bool
) -> Iterator[AnyArray]:
    """The groups of the events of each line of a plane, narrow where they fit."""
    if events.tpu is not None and events.nodes is not None:
        groups = wide(grouping.group[events.nodes])
        per_line = events.tpu.event_groups(groups, assigned=grouping.assigned)
        yield from (narrow(per_line[line.number]) for line in events.lines)
        return
    own: Iterable[AnyArray]
    if events.nodes is None:
        own = (ungrouped(line.begin.size) for line in events.lines)
    else:
        groups = by_owner(grouping.spread[events.nodes], grouping.group[events.nodes])
        owners = (line.owner if is_last else line.owner.copy() for line in events.lines)
        own = (of_owners(owner, groups) for owner in owners)
    if has_tpu and events.plane.kind == "device" and grouping.assigned:
        lines = [timed(line) for line in events.lines]
        own = map(narrow, overlap_groups(lines, [wide(part) for part in own]))
    yield from own


def read_module_runs(file: SourceFile, outline: Outline) -> tuple[Columns, dict[int, Damage], Far]:
    """The ``module_runs`` table, by plane the damage, and how many ends were out of reach: events
    of the ``XLA Modules`` lines of the TPU planes.
    """
    names, starts, ends, devices = [], [], [], []
    damage: dict[int, Damage] = {}
    far = Far()
    for plane in outline.planes:
        headers = LineReader(file, plane.lines).read_facts() if plane.is_tpu else []
        lines = [k for k, header in enumerate(headers) if header.name == "XLA Modules"]
        if not lines:
            continue
        reader = LineReader(file, plane.lines.take(np.array(lines)))
        for part in reader.parts():
            names += [plane.event_names.get(i, "") for i in part.ids.tolist()]
            start = np.where(part.case == OFFSET, part.bits, 0)
            starts.append(start)
            end, wrapped = add_durations(start, part.duration)
            ends.append(end)
            far[plane.index, "end"] += wrapped
            devices += [plane.name.removeprefix("/device:")] * start.size
        damage[plane.index] = reader.damage
    columns = Columns(
        {
            "name": Names.encode(names),
            "start_ps": np.concatenate([np.zeros(0, np.int64), *starts]),
            "end_ps": np.concatenate([np.zeros(0, np.int64), *ends]),
            "plane_name": Names.encode(devices),
        }
    )
    return columns, damage, far


def _joined(parts: list[AnyArray], dtype: Any) -> AnyArray:
    """The parts as one array; the memory they already share where they follow each other in it."""
    if not parts:
        return np.zeros(0, dtype)
    base, ends = parts[0].base, [_address(part) + part.nbytes for part in parts]
    begins = [_address(part) for part in parts]
    if base is not None and begins[1:] == ends[:-1] and all(part.base is base for part in parts):
        first = (begins[0] - _address(base)) // base.itemsize
        shared: AnyArray = base[first : first + sum(part.size for part in parts)]
        return shared
    return np.concatenate(parts, dtype=dtype)


def _address(array: AnyArray) -> int:
    return int(array.__array_interface__["data"][0])
