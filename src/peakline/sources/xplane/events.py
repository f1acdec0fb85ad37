"""The tables of all events: read only when somebody asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from peakline.deadline import check_deadline
from peakline.profile.columns import Columns, Names
from peakline.sources.files import SourceFile
from peakline.sources.xplane.grouping import Grouping
from peakline.sources.xplane.line_reader import LineReader
from peakline.sources.xplane.lines import KeptLine, read_line_facts
from peakline.sources.xplane.names import NO_GROUP
from peakline.sources.xplane.outline import Outline, PlaneOutline
from peakline.sources.xplane.places import names_of_types, type_bases
from peakline.sources.xplane.stat_rows import StatRows
from peakline.sources.xplane.times import OCCURRENCES, Far, add_durations, limit_durations, place
from peakline.sources.xplane.tpu import TpuPlane, overlap_groups, timed
from peakline.wire import Damage

__all__ = ["EventTables", "PlaneEvents", "read_module_runs"]

_Array = npt.NDArray[Any]
_OFFSET = 2


@dataclass(frozen=True, eq=False)
class PlaneEvents:
    """The events of one plane, as the pass over it kept them."""

    plane: PlaneOutline
    lines: list[KeptLine]
    stats: StatRows
    """Those of their stats that are among `KEPT_STATS`."""
    nodes: slice | None
    """The plane's nodes in the forest; None when it takes no part."""
    tpu: TpuPlane | None


class EventTables:
    """The ``events`` table, from the events that were kept while they were grouped.

    Columns that not everybody wants are made when somebody does.
    """

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
        self._step_id, self._has_step = _steps(planes, grouping, has_tpu=has_tpu)
        # What no step has as its row, so that rows of steps need no column of their own.
        self._step_id[~self._has_step] = -1
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
        make: dict[str, Callable[[], _Array | Names]] = {
            "event_id": lambda: np.arange(self.rows, dtype=np.int64),
            "line_id": self._line_ids,
            "name": lambda: names_of_types(self._types(), self._outline),
            "start_ps": lambda: _joined([line.begin for line in lines], np.int64),
            "duration_ps": lambda: _joined([line.length for line in lines], np.int64),
            "step_id": lambda: self._step_id,
            "type_id": self._types,
        }
        data = {name: made() for name, made in make.items() if wanted is None or name in wanted}
        valid: dict[str, npt.NDArray[np.bool_]] = {}
        if "start_ps" in data:
            valid["start_ps"] = _joined([line.case for line in lines], np.uint8) != OCCURRENCES
        if "step_id" in data:
            valid["step_id"] = self._has_step
        types = data.get("type_id")
        if isinstance(types, np.ndarray):
            valid["type_id"] = types >= 0
        return Columns(data, {name: mask for name, mask in valid.items() if not mask.all()})

    def kept_stats(self, wanted: AbstractSet[str]) -> list[tuple[int, StatRows]]:
        """The stats called ``wanted``, all of which are among `KEPT_STATS`, by plane; with the row
        of the plane's first event.
        """
        return [(first, stats.named(wanted)) for first, stats in self._stats]

    def last_end_ps(self) -> int:
        """End of the last event, in ps after the profile's start; 0 when there is none."""
        last = 0
        for _, line in self._lines:
            has_time = line.case == _OFFSET
            if has_time.any():
                last = max(last, int((line.begin[has_time] + line.length[has_time]).max()))
        return last

    def _line_ids(self) -> _Array:
        numbers = [plane.first_line + line.number for plane, line in self._lines]
        counts = [line.begin.size for _, line in self._lines]
        return np.repeat(np.array(numbers, np.int32), counts)

    def _types(self) -> npt.NDArray[np.int32]:
        """The row of each event's type, -1 for one whose metadata the file does not give."""
        types = np.empty(self.rows, np.int32)
        bases = type_bases(self._outline)
        first = 0
        for plane, line in self._lines:
            part = types[first : first + line.place.size]
            first += part.size
            np.add(line.place, np.int32(bases[plane.index]), out=part)
            part[line.place < 0] = -1
        return types


def _steps(
    planes: list[PlaneEvents], grouping: Grouping, *, has_tpu: bool
) -> tuple[_Array, npt.NDArray[np.bool_]]:
    """The group of every event, and whether it has one; narrow where the numbers are."""
    step = np.empty(sum(line.begin.size for events in planes for line in events.lines), np.int32)
    at = 0
    for events in planes:
        for part in _steps_of(events, grouping, has_tpu=has_tpu):
            check_deadline()
            if part.dtype != np.int32:
                step = _wide(step)
            step[at : at + part.size] = part if step.dtype == np.int32 else _wide(part)
            at += part.size
    return step, step != (_NONE if step.dtype == np.int32 else NO_GROUP)


def _steps_of(events: PlaneEvents, grouping: Grouping, *, has_tpu: bool) -> Iterator[_Array]:
    """The groups of the events of each line of a plane, as `_narrow` gives them."""
    if events.tpu is not None and events.nodes is not None:
        groups = grouping.group[events.nodes]
        per_line = events.tpu.event_groups(groups, assigned=grouping.assigned)
        yield from (_narrow(per_line[line.number]) for line in events.lines)
        return
    own: Iterable[_Array]
    if events.nodes is None:
        own = (np.full(line.begin.size, _NONE, np.int32) for line in events.lines)
    else:
        # By `Found.owner_node`: inside a node, in none, a node itself.
        inside, nodes = grouping.spread[events.nodes], grouping.group[events.nodes]
        short = _narrow(np.concatenate([inside[::-1], [NO_GROUP], nodes]))
        middle = np.int32(nodes.size + 1)
        own = (short[line.owner + middle] for line in events.lines)
    if has_tpu and events.plane.kind == "device" and grouping.assigned:
        wide = [_wide(part) for part in own]
        own = map(_narrow, overlap_groups([timed(line) for line in events.lines], wide))
    yield from own


_NONE = np.int32(-(2**31))
"""Stands for no group among groups that fit 32 bits."""


def _wide(groups: _Array) -> _Array:
    """The same groups in 64 bits, `NO_GROUP` for none."""
    if groups.dtype != np.int32:
        return groups
    return np.where(groups == _NONE, np.int64(NO_GROUP), groups.astype(np.int64))


def _narrow(groups: _Array) -> _Array:
    """The same groups in 32 bits where they fit, `_NONE` for none."""
    narrow = groups.astype(np.int32)
    unknown = groups == NO_GROUP
    narrow[unknown] = _NONE
    # What does not fit is another number now, or stands for none.
    if np.count_nonzero(narrow != groups) > np.count_nonzero(unknown) or (
        np.count_nonzero(narrow == _NONE) > np.count_nonzero(unknown)
    ):
        return groups
    return narrow


def read_module_runs(file: SourceFile, outline: Outline) -> tuple[Columns, dict[int, Damage], Far]:
    """The ``module_runs`` table, by plane the damage, and how many ends were out of reach: events
    of the ``XLA Modules`` lines of the TPU planes.
    """
    names, starts, ends, devices = [], [], [], []
    damage: dict[int, Damage] = {}
    far = Far()
    for plane in outline.planes:
        headers = read_line_facts(file, plane, whole=False) if plane.is_tpu else []
        lines = [k for k, header in enumerate(headers) if header.name == "XLA Modules"]
        if not lines:
            continue
        reader = LineReader(file, plane.lines.take(np.array(lines)))
        for part in reader.parts():
            names += [plane.event_names.get(i, "") for i in part.ids.tolist()]
            start = np.where(part.case == _OFFSET, part.bits, 0)
            starts.append(start)
            end, wrapped = add_durations(start, part.duration)
            ends.append(end)
            far[plane.index, "end"] += wrapped
            devices += [plane.name.removeprefix("/device:")] * start.size
        damage[plane.index] = reader.damage
    columns = Columns(
        {
            "name": Names.encode(names),
            "start_ps": _all(starts),
            "end_ps": _all(ends),
            "plane_name": Names.encode(devices),
        }
    )
    return columns, damage, far


def _joined(parts: list[_Array], dtype: Any) -> _Array:
    """The parts as one array; the memory they already share where they follow each other in it."""
    if not parts:
        return np.zeros(0, dtype)
    base, ends = parts[0].base, [_address(part) + part.nbytes for part in parts]
    begins = [_address(part) for part in parts]
    if base is not None and begins[1:] == ends[:-1] and all(part.base is base for part in parts):
        first = (begins[0] - _address(base)) // base.itemsize
        shared: _Array = base[first : first + sum(part.size for part in parts)]
        return shared
    return np.concatenate(parts, dtype=dtype)


def _address(array: _Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _all(parts: list[_Array]) -> _Array:
    return np.concatenate([np.zeros(0, np.int64), *parts]) if parts else np.zeros(0, np.int64)
