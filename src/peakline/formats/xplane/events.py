"""The tables of all events, read only when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array
from peakline.deadline import check_deadline
from peakline.formats.common.files import SourceFile
from peakline.formats.xplane.grouping import Grouping
from peakline.formats.xplane.groups import (
    by_owner,
    narrow,
    no_group,
    of_owners,
    pieces,
    ungrouped,
    wide,
)
from peakline.formats.xplane.line_parts import StatRows
from peakline.formats.xplane.line_reader import LineReader
from peakline.formats.xplane.lines import SelectedLine
from peakline.formats.xplane.outline import Outline, PlaneOutline
from peakline.formats.xplane.places import name_codes, named, type_bases
from peakline.formats.xplane.times import (
    OCCURRENCES,
    OFFSET,
    Far,
    add_durations,
    limit_durations,
    place,
)
from peakline.formats.xplane.tpu import TpuPlane, overlap_groups, timed
from peakline.tables.columns import Columns, Names
from peakline.wire import Damage

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
        found = np.empty(self.rows, np.int32)
        bases = type_bases(self._outline).tolist()
        first = 0
        for plane, line in self._lines:
            here = np.append(values[bases[plane.index] : bases[plane.index + 1]], np.int32(other))
            for part in pieces(line.place):
                found[first : first + part.size] = here[part]
                first += part.size
        return found


def _known(step: AnyArray, has_step: BoolArray | None) -> BoolArray:
    """Which events have a step, from what `_steps` returns."""
    found: BoolArray = step != NO_STEP if has_step is None else has_step
    return found


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
