"""XSpace files (``*.xplane.pb``): the profiles that JAX, TensorFlow and PyTorch/XLA write."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from functools import cached_property
from operator import methodcaller
from typing import TYPE_CHECKING, cast

from peakline.arrays import AnyArray, Int64Array
from peakline.formats.common.annotations import CORRELATION, OF_TPUS, parse_details
from peakline.formats.common.files import SourceFile
from peakline.formats.common.reader import FileReader
from peakline.formats.xplane.event_stats import (
    EventBytes,
    read_stats,
    read_typed_stats,
    typed_columns,
)
from peakline.formats.xplane.events import planes_table, read_module_runs
from peakline.formats.xplane.file_steps import FileSteps, RuntimeSteps
from peakline.formats.xplane.line_reader import LineReader
from peakline.formats.xplane.memory import MemoryRecords
from peakline.formats.xplane.names import KEPT_STATS
from peakline.formats.xplane.outline import read_outline
from peakline.formats.xplane.passes import OUTLINE, Passes
from peakline.formats.xplane.presence import SNAPSHOTS, TABLES, has_events, has_memory_events
from peakline.formats.xplane.times import FARTHEST_PS, Far
from peakline.formats.xplane.types import METADATA, TypeTables
from peakline.tables.columns import Columns
from peakline.tables.event_rules import EventRules, FunctionCalls, LaunchStats, PlaneNames
from peakline.tables.program_tables import PROGRAM_TABLES
from peakline.tables.rank_facts import RankFacts
from peakline.tables.reader import Warnings
from peakline.tables.table_source import TableSource
from peakline.tables.tables import empty_columns

if TYPE_CHECKING:
    from peakline.formats.hlo_proto.tables import ProgramTables
    from peakline.tables.reader import Reader


RULES = EventRules(
    links=(CORRELATION, *OF_TPUS),
    launches=LaunchStats(
        ("kernel_details",), lambda texts: parse_details(texts[0]), is_on_every_kernel=True
    ),
    function_calls=FunctionCalls(
        re.compile(r"EagerLocalExecute: __(?:inference|forward|backward)_(?P<name>.+)_\d+"),
        "tracing_count",
    ),
    planes=PlaneNames(),
    recorders=frozenset(("JAX", "TensorFlow")),
)


_OF_EVERY_PROGRAM = frozenset(("hlo_modules", "hlo_computations", "hlo_instructions"))
_DEVICE = re.compile(r"/device:(?!CUSTOM:)\w+:\d+")
_SINCE_EPOCH_NS = 10**18
"""A line's time from here on (September 2001) counts from 1970, not from the profiler's start."""


class XPlaneReader(FileReader):
    """One XSpace. A table is decoded when it is read, and only as far as it needs."""

    __retained__ = "_file _outline _passes _steps _types _event_bytes _programs"

    event_rules = RULES
    never_derived = frozenset((SNAPSHOTS,))
    """They are read by upstream's rules; without host threads there are none."""

    def __init__(self, file: SourceFile, form: str = "xplane") -> None:
        super().__init__(file, form)
        self._outline = read_outline(file)
        damage = self._outline.damage
        if damage and not any(len(p.lines) or p.event_names for p in self._outline.planes):
            raise self._nothing_whole(damage)
        self._passes = Passes(file, self._outline)
        self._steps = FileSteps(self._passes)
        times = self._profile_times()
        if times is not None and (times[1] - times[0]) * 1000 > FARTHEST_PS:
            self._passes.far.note(Far({(OUTLINE, "profiler"): 1}))

    @property
    def host(self) -> str:
        """The name before ``.xplane.pb``, else the first host the file names."""
        if self._file.host:
            return self._file.host
        return next(iter(self._outline.hostnames), "")

    @property
    def rank_facts(self) -> RankFacts:
        """The machine, the process and its devices; XSpaces have no rank and no process index."""
        planes = self._outline.planes
        processes = {plane.process_id for plane in planes if plane.process_id is not None}
        devices = {plane.name for plane in planes if _DEVICE.fullmatch(plane.name)}
        return RankFacts(
            host_name=next(iter(self._outline.hostnames), ""),
            process=processes.pop() if len(processes) == 1 else None,
            devices=len(devices) or None,
        )

    @property
    def tables(self) -> frozenset[str]:
        """Tables of an XSpace; without a host plane there are no memory snapshots."""
        if self._outline.host_plane is None:
            return TABLES - {SNAPSHOTS}
        return TABLES

    def has_rows(self, table: str) -> bool | None:
        """Whether a table has a row, where that is known without reading it."""
        if table in {"planes", "lines"}:
            planes = self._outline.planes
            return bool(planes) if table == "planes" else any(len(p.lines) for p in planes)
        if table in {SNAPSHOTS, "allocator_events"}:
            return has_memory_events(self._file, self._outline)
        if table in PROGRAM_TABLES and not any(p.name == METADATA for p in self._outline.planes):
            return False
        if table in _OF_EVERY_PROGRAM:
            return len(self._programs) > 0
        return has_events(self._file, self._outline) if table == "events" else None

    def expect(self, tables: AbstractSet[str]) -> None:
        """All of ``tables`` will be read: one pass over the file is to give what it can."""
        self._passes.reads_together = {"events", "allocator_events"} <= tables

    def forget(self, table: str) -> None:
        """Nobody reads ``table`` again: free what only it needs."""
        if table == "allocator_events":
            self._passes.memory = None

    def duration_ps(self) -> int:
        """Until the last event ends, and as long as the profiler ran, where the file says so."""
        start, stop = self._profile_times() or (0, 0)
        ends = [min((stop - start) * 1000, FARTHEST_PS)]
        for plane in self._outline.with_lines:
            if plane.index not in self._passes.line_facts:
                reader = LineReader(self._file, plane.lines)
                deque(reader.parts(), maxlen=0)
                self._passes.line_facts[plane.index] = reader.facts
            ends += [
                line.last_end_ps(self.zero_ps) for line in self._passes.line_facts[plane.index]
            ]
        return max(ends)

    def read(
        self, table: str, warnings: Warnings, columns: AbstractSet[str] | None = None
    ) -> Columns:
        """Read one table."""
        if table in PROGRAM_TABLES:
            return self._programs.table(table, warnings, columns)
        read: dict[str, Callable[[], Columns]] = {
            "planes": lambda: planes_table(self._outline.planes),
            "lines": self._passes.lines,
            "events": lambda: self._steps.events(columns),
            "event_stats": lambda: self._passes.noting(
                *read_stats(self._file, self._outline, columns=columns)
            ),
            "steps": self._steps.table,
            "allocator_events": lambda: self._allocator_events(columns),
            SNAPSHOTS: self._memory_snapshots,
            "module_runs": self._module_runs,
            **dict.fromkeys(
                ("event_types", "event_type_stats", "plane_stats"),
                lambda: methodcaller(table)(self._types),
            ),
        }
        result = read[table]()
        self._passes.warn(warnings)
        return result

    def holds_stats(self, wanted: AbstractSet[str]) -> bool:
        """Whether the stats of these names are held with the events."""
        return wanted <= KEPT_STATS and self._steps.has_event_tables

    def typed_stats(self, wanted: AbstractSet[str], warnings: Warnings) -> Columns:
        """The stats of events called ``wanted``, numbers as numbers."""
        if self.holds_stats(wanted):
            return typed_columns(self._file, self._steps.event_tables.selected_stats(wanted))
        result = self._passes.noting(*read_typed_stats(self._file, self._outline, wanted))
        self._passes.warn(warnings)
        return result

    def stats_of(self, rows: AnyArray) -> Columns:
        """The stats of a few events, without reading those of all."""
        return self._event_bytes.stats_of(rows)

    @cached_property
    def _event_bytes(self) -> EventBytes:
        return EventBytes(self._file, self._outline)

    def programs(self) -> ProgramTables:
        """The compiled programs."""
        return self._programs

    @cached_property
    def _programs(self) -> ProgramTables:
        from peakline.formats.hlo_proto.tables import MOST_PROGRAMS, ProgramTables

        result = self._types.programs()
        return ProgramTables(result[:MOST_PROGRAMS], max(len(result) - MOST_PROGRAMS, 0))

    def plane_bytes(self, name: str) -> dict[int, bytes]:
        """The bytes of the stat called ``name``, by plane."""
        return self._types.plane_bytes(name)

    def type_bytes(self, name: str) -> dict[int, bytes]:
        """The bytes of the stat called ``name``, by kind of event."""
        return self._types.type_bytes(name)

    def type_children(self) -> dict[int, tuple[int, ...]]:
        """The kinds of events that a kind consists of."""
        return self._types.type_children()

    def is_grouped(self) -> bool:
        """Whether the steps of the events stand in the file."""
        return self._steps.is_grouped

    def step_links(self) -> tuple[Int64Array, int]:
        """Which steps hand work to which, and how many links were left out."""
        return self._steps.links(runtime=False)

    def messages(self) -> tuple[list[str], list[str]]:
        """What the profiler itself reported: errors, and warnings."""
        return self._outline.errors, self._outline.notes

    @cached_property
    def _types(self) -> TypeTables:
        return TypeTables(self._outline)

    # Clock and outline.

    @property
    def zero_ps(self) -> int:
        """The profile's start on the file's clock, in ps."""
        return self._passes.zero_ps

    @property
    def start_ns(self) -> int | None:
        """When the profile's clock is zero, in ns since 1970, where the file says.

        Profilers write times of lines either so, or counted from when they started.
        """
        zero = self.zero_ps // 1000
        if zero >= _SINCE_EPOCH_NS:
            return zero
        times = self._profile_times()
        return None if times is None or zero < 0 else times[0] + zero

    def _profile_times(self) -> tuple[int, int] | None:
        """Start and stop of the profiler in ns since the epoch, from the task's plane."""
        plane = next((p for p in self._outline.planes if p.name == "Task Environment"), None)
        if plane is None:
            return None
        start, stop = (plane.numbers.get(f"profile_{w}_time") for w in ("start", "stop"))
        if start is None or stop is None or stop < start:
            return None
        return start, stop

    # Memory and steps.

    def _records(self) -> MemoryRecords | None:
        if self._outline.host_plane is None:
            return None
        if self._passes.memory is None and self._passes.reads_together:
            # Read with them, unless they have been read before.
            self._steps.event_tables  # noqa: B018
        if self._passes.memory is None:
            self._steps.read_groups(everything=False)
        return self._passes.memory

    def _memory_snapshots(self) -> Columns:
        records = self._records()
        return empty_columns(SNAPSHOTS) if records is None else records.snapshots()

    def _allocator_events(self, columns: AbstractSet[str] | None) -> Columns:
        passes = self._passes
        needs_steps = columns is None or "step_id" in columns
        if not (needs_steps or passes.reads_together or passes.memory is not None):
            # Most of the time goes into steps, which nobody wants here.
            alone = passes.memory_alone()
            if alone is None:
                return empty_columns("allocator_events")
            return passes.placed(*alone.allocator_events(self.zero_ps))
        records = self._records()
        if records is None:
            return empty_columns("allocator_events")
        try:
            table = self._passes.placed(*records.allocator_events(self.zero_ps))
        except MemoryError:
            # They may be in no order now: the next reading takes them from the file again.
            self._passes.memory = None
            raise
        return self._steps.of_memory(table)

    def _module_runs(self) -> Columns:
        result, damage, far = read_module_runs(self._file, self._outline)
        return self._passes.noting(self._passes.placed(result, far), damage)

    def runtime(self, profile: TableSource) -> Reader | None:
        """What reads ``profile``, which reads this file, with the steps into which upstream's
        profiler groups events; None where they are those of ``steps``.
        """
        # Read with their steps at once: whoever reads these needs the events too.
        profile.columns("events", frozenset(("step_id",)))
        table = self._steps.runtime_steps()
        if table is None:
            return None
        return cast("Reader", RuntimeSteps(profile, self, table, self._steps))
