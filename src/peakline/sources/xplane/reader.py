"""XSpace files (``*.xplane.pb``): the profiles that JAX, TensorFlow and PyTorch/XLA write."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from peakline import schema
from peakline.errors import DamagedError
from peakline.profile.columns import Columns, Names
from peakline.profile.reader import Warnings
from peakline.profile.tables import empty_columns
from peakline.sources.files import SourceFile
from peakline.sources.xplane.event_stats import read_stats
from peakline.sources.xplane.events import EventTables, read_module_runs
from peakline.sources.xplane.grouping import (
    GroupedPlane,
    Grouping,
    PrunedTooMuch,
    group,
    needs_grouping,
)
from peakline.sources.xplane.lines import PlanePass, read_headers
from peakline.sources.xplane.memory import MemoryRecords
from peakline.sources.xplane.names import EVENT_KINDS, EventKind
from peakline.sources.xplane.outline import Outline, PlaneOutline, read_outline
from peakline.sources.xplane.plain_events import PLAIN, read_plain_events
from peakline.sources.xplane.presence import has_events, has_memory_events
from peakline.sources.xplane.tpu import read_tpu_plane
from peakline.wire import Damage, Plan, decode

__all__ = ["TABLES", "XPlaneReader"]

_SNAPSHOTS = "memory_snapshots"
TABLES = frozenset(
    (
        "planes",
        "lines",
        "events",
        "event_stats",
        "steps",
        "allocator_events",
        "module_runs",
        _SNAPSHOTS,
    )
)
"""What an XSpace can fill; memory_snapshots only with a host plane."""
_OUTLINE = -1
_MAKES_GROUPS = frozenset(("_r", "_pt", "_p"))
_TAKES_GROUPS = frozenset(("_ct", "_c", "correlation_id", "group_id"))


class XPlaneReader:
    """One XSpace. Tables are decoded when asked for, and only as far as they need."""

    def __init__(self, file: SourceFile, form: str = "xplane") -> None:
        self.format = form
        self._file = file
        self._outline = read_outline(file.buffer)
        _check(file, self._outline)
        self._memory: MemoryRecords | None = None
        self._grouping: dict[bool, tuple[Grouping, list[GroupedPlane]]] = {}
        self._damage: dict[int, Damage] = {_OUTLINE: self._outline.damage}
        """Damage by plane, as whoever read it first found it."""
        self._told: set[int | str] = set()
        self._nameless: set[str] = set()

    @property
    def path(self) -> str:
        """What was opened."""
        return self._file.path

    @property
    def host(self) -> str:
        """The name before ``.xplane.pb``, else the first host the file names."""
        if self._file.host:
            return self._file.host
        return next(iter(self._outline.hostnames), "")

    @property
    def tables(self) -> frozenset[str]:
        """Tables of an XSpace; without a host plane there are no memory snapshots."""
        if self._outline.host_plane is None:
            return TABLES - {_SNAPSHOTS}
        return TABLES

    def has_rows(self, table: str) -> bool | None:
        """Whether a table has a row, where that is known without reading it."""
        if table in {"planes", "lines"}:
            planes = self._outline.planes
            return bool(planes) if table == "planes" else any(len(p.lines) for p in planes)
        if table in {_SNAPSHOTS, "allocator_events"}:
            return has_memory_events(self._outline)
        return has_events(self._outline) if table == "events" else None

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    def duration_ps(self) -> int:
        """Between the profiler's start and stop where the file tells, else until the last event."""
        times = self._profile_times()
        if times is not None:
            return (times[1] - times[0]) * 1000
        return self._event_tables.last_end_ps(self.zero_ps)

    def read(
        self, table: str, warnings: Warnings, columns: AbstractSet[str] | None = None
    ) -> Columns:
        """Read one table."""
        read: dict[str, Callable[[], Columns]] = {
            "planes": self._planes,
            "lines": self._lines,
            "events": lambda: self._events(columns),
            "event_stats": lambda: self._noting(
                *read_stats(self._file, self._outline, columns=columns)
            ),
            "steps": self._steps,
            "allocator_events": self._allocator_events,
            _SNAPSHOTS: self._memory_snapshots,
            "module_runs": lambda: self._noting(*read_module_runs(self._file, self._outline)),
        }
        found = read[table]()
        self._warn(warnings)
        return found

    # Clock and outline.

    @cached_property
    def zero_ps(self) -> int:
        """The profile's start: the earliest line timestamp of all planes, in ps."""
        earliest = [
            header.timestamp_ns
            for plane in self._outline.planes
            for header in read_headers(self._file.buffer, plane)
        ]
        return min(earliest, default=0) * 1000

    def _profile_times(self) -> tuple[int, int] | None:
        """Start and stop of the profiler in ns since the epoch, from the task's plane."""
        plane = next((p for p in self._outline.planes if p.name == "Task Environment"), None)
        if plane is None:
            return None
        start, stop = (plane.numbers.get(f"profile_{w}_time") for w in ("start", "stop"))
        if start is None or stop is None or stop < start:
            return None
        return start, stop

    def _planes(self) -> Columns:
        planes = self._outline.planes
        return Columns(
            {
                "plane_id": np.arange(len(planes), dtype=np.int64),
                "name": Names.encode([plane.name for plane in planes]),
                "kind": Names.encode([plane.kind for plane in planes]),
                "native_id": np.array([plane.native_id for plane in planes], np.int64),
            }
        )

    def _lines(self) -> Columns:
        names: list[str] = []
        starts: list[npt.NDArray[Any]] = [np.zeros(0, np.int64)]
        counts = [len(plane.lines) for plane in self._outline.planes]
        native: list[npt.NDArray[Any]] = [np.zeros(0, np.int64)]
        buffer, plan = self._file.buffer, _line_plan("id", "name", "display_name", "timestamp_ns")
        for plane in self._outline.planes:
            table = decode(buffer, plan, plane.lines)[""]
            own, shown = table.spans("name").texts(buffer), table.spans("display_name")
            names += [d or n for d, n in zip(shown.texts(buffer), own, strict=True)]
            starts.append(table.array("timestamp_ns").astype(np.int64))
            native.append(table.array("id"))
        with np.errstate(over="ignore"):
            start_ps = np.concatenate(starts) * 1000 - np.int64(self.zero_ps)
        return Columns(
            {
                "line_id": np.arange(sum(counts), dtype=np.int64),
                "plane_id": np.repeat(np.arange(len(counts), dtype=np.int64), counts),
                "name": Names.encode(names),
                "start_ps": start_ps,
                "native_id": np.concatenate(native, dtype=np.int64),
            }
        )

    # Memory and steps.

    def _grouped(self, *, everything: bool) -> tuple[Grouping, list[GroupedPlane]]:
        """Group the nodes of the planes that can matter for host events, or of every plane."""
        if everything not in self._grouping:
            try:
                self._grouping[everything] = self._group(
                    everything=everything, prune=not everything
                )
            except PrunedTooMuch:
                self._grouping[everything] = self._group(everything=everything, prune=False)
        return self._grouping[everything]

    def _group(self, *, everything: bool, prune: bool) -> tuple[Grouping, list[GroupedPlane]]:
        rewrite, assign = needs_grouping(self._outline.planes)
        planes, first = [], 0
        memory: tuple[PlanePass, int] | None = None
        for plane in self._outline.planes:
            is_host = plane is self._outline.host_plane
            if not (is_host or _takes_part(plane, everything=everything)):
                continue
            if plane.is_tpu:
                tpu = read_tpu_plane(self._file.buffer, plane, rewrite=rewrite)
                planes.append(GroupedPlane.of_tpu(plane, first, tpu))
                self._damage.setdefault(plane.index, tpu.damage)
            else:
                found = PlanePass(
                    self._file.buffer, plane, want_memory=is_host, rewrite=rewrite, prune=prune,
                    release=self._file.release,
                )  # fmt: skip
                planes.append(GroupedPlane.of_pass(plane, first, found))
                self._damage.setdefault(plane.index, found.damage)
                if is_host:
                    memory = found, first
            first += planes[-1].nodes
        grouping = group(self._file.buffer, planes, first, assign=assign)
        if memory is not None and self._memory is None:
            found, at = memory
            read = grouping.group if grouping.memory_group is None else grouping.memory_group
            nodes = slice(at, at + found.nodes)
            self._memory = MemoryRecords(found, read[nodes], grouping.spread[nodes])
        return grouping, [replace(p, found=None) for p in planes]

    def _records(self) -> MemoryRecords | None:
        if self._memory is None and self._outline.host_plane is not None:
            self._grouped(everything=False)
        return self._memory

    def _memory_snapshots(self) -> Columns:
        records = self._records()
        return empty_columns(_SNAPSHOTS) if records is None else records.snapshots()

    def _allocator_events(self) -> Columns:
        records = self._records()
        if records is None:
            return empty_columns("allocator_events")
        return records.allocator_events(self.zero_ps)

    def _steps(self) -> Columns:
        has_tpu = any(plane.is_tpu for plane in self._outline.planes)
        steps = sorted(self._grouped(everything=has_tpu)[0].steps, key=lambda s: s.step_id)
        zero = self.zero_ps
        return Columns(
            {
                "step_id": np.array([step.step_id for step in steps], np.int64),
                "name": Names.encode([step.name for step in steps]),
                "start_ps": _wrapped([step.begin_ps - zero for step in steps]),
                "end_ps": _wrapped([step.end_ps - zero for step in steps]),
            }
        )

    @cached_property
    def _event_tables(self) -> EventTables:
        grouping, planes = self._grouped(everything=True)
        rewrite = needs_grouping(self._outline.planes)[0]
        tables = EventTables(self._file, self._outline, grouping, planes, rewrite=rewrite)
        for plane, damage in tables.damage.items():
            self._damage.setdefault(plane, damage)
        return tables

    def _events(self, columns: AbstractSet[str] | None) -> Columns:
        if columns is not None and columns <= PLAIN and "_event_tables" not in vars(self):
            return self._noting(
                *read_plain_events(self._file, self._outline, self.zero_ps, columns)
            )
        return self._event_tables.events(self.zero_ps)

    def _noting(self, columns: Columns, damage: dict[int, Damage]) -> Columns:
        for plane, harm in damage.items():
            self._damage.setdefault(plane, harm)
        return columns

    def _warn(self, warnings: Warnings) -> None:
        """Tell of damage and of what the profiler itself reported, each once."""
        size = self._file.buffer.size
        for where, damage in self._damage.items():
            if where in self._told or not damage:
                continue
            self._told.add(where)
            places = damage.places
            if damage.missing_bytes:
                places -= 1
                self._told.add("truncated")
                warnings.add(
                    "truncated",
                    f"the file ends {damage.missing_bytes} bytes before its content does "
                    f"(cut at offset {size}); answered from what is whole",
                )
            if "truncated" in self._told and damage.first_offset + damage.skipped_bytes == size:
                # The event that the end of the file cuts in two.
                continue
            warnings.add(
                "damaged",
                f"first at offset {damage.first_offset}; {damage.skipped_bytes} bytes skipped",
                places,
            )
        for plane in self._outline.planes if "truncated" in self._told else ():
            if len(plane.lines) and not plane.event_names and plane.name not in self._nameless:
                self._nameless.add(plane.name)
                warnings.add(
                    "names_lost",
                    f"{plane.name}: the names of its events stood behind the cut, so none is known",
                )
        if "profiler" not in self._told:
            self._told.add("profiler")
            for kind, texts in (
                ("profiler_error", self._outline.errors),
                ("profiler_warning", self._outline.notes),
            ):
                for text in texts:
                    warnings.add(kind, " ".join(text.split()))


def _line_plan(*paths: str) -> Plan:
    return Plan(schema.descriptor("tensorflow.profiler.XLine"), paths)


def _wrapped(values: list[int]) -> npt.NDArray[Any]:
    return np.array([(v + 2**63) % 2**64 - 2**63 for v in values], np.int64)


def _takes_part(plane: PlaneOutline, *, everything: bool) -> bool:
    """Whether the plane's events can open a group, or (with ``everything``) get one."""
    if not len(plane.lines):
        return False
    kinds = {EVENT_KINDS.get(name, EventKind.OTHER) for name in plane.event_name_set}
    if plane.stat_name_set & _MAKES_GROUPS or kinds - {EventKind.OTHER}:
        return True
    return everything and bool(plane.is_tpu or plane.stat_name_set & _TAKES_GROUPS)


def _check(file: SourceFile, outline: Outline) -> None:
    """Raise DamagedError when nothing of use is left."""
    damage = outline.damage
    if not damage:
        return
    if not any(len(plane.lines) or plane.event_names for plane in outline.planes):
        raise DamagedError(
            f"{file.path}: damaged at offset {damage.first_offset}; nothing whole is left",
            damage.first_offset,
        )
