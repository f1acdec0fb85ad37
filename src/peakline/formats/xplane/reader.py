"""XSpace files (``*.xplane.pb``): the profiles that JAX, TensorFlow and PyTorch/XLA write."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from peakline.errors import DamagedError
from peakline.formats.common.files import SourceFile
from peakline.formats.common.reader import FileReader
from peakline.formats.xplane.event_bytes import EventBytes
from peakline.formats.xplane.event_stats import read_stats, read_typed_stats, typed_columns
from peakline.formats.xplane.events import NO_STEP, EventTables, PlaneEvents, read_module_runs
from peakline.formats.xplane.forest import GroupedPlane, PrunedTooMuch, RepeatedIds
from peakline.formats.xplane.grouping import Grouping, group, needs_grouping
from peakline.formats.xplane.line_reader import LineFacts, LineReader
from peakline.formats.xplane.lines import PlanePass, read_line_facts
from peakline.formats.xplane.memory import MemoryRecords
from peakline.formats.xplane.names import EVENT_KINDS, KEPT_STATS, EventKind
from peakline.formats.xplane.opening import Step
from peakline.formats.xplane.outline import Outline, PlaneOutline, read_outline
from peakline.formats.xplane.plain_events import PLAIN, read_plain_events
from peakline.formats.xplane.presence import has_events, has_memory_events
from peakline.formats.xplane.small_tables import (
    lines_table,
    planes_table,
    steps_table,
)
from peakline.formats.xplane.times import (
    FARTHEST_PS,
    Far,
    FarTimes,
    clock_zero_ns,
)
from peakline.formats.xplane.tpu import TpuPlane, read_tpu_plane
from peakline.formats.xplane.types import TypeTables
from peakline.formats.xplane.unmarked import (
    COLUMNS,
    Unmarked,
    annotated_steps,
    named_runs,
    recorded_steps,
    step_at,
    steps_by_time,
)
from peakline.process_memory import give_back_memory
from peakline.tables.columns import Columns
from peakline.tables.reader import Warnings
from peakline.tables.tables import empty_columns
from peakline.wire import Damage

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
        "event_types",
        "event_type_stats",
        "plane_stats",
        _SNAPSHOTS,
    )
)
"""What an XSpace can fill; memory_snapshots only with a host plane."""
_OUTLINE = -1
_MANY_NODES = 1 << 20
_SINCE_EPOCH_NS = 10**18
"""A line's time from here on (September 2001) counts from 1970, not from the profiler's start."""
_MAKES_GROUPS = frozenset(("_r", "_pt", "_p"))
_TAKES_GROUPS = frozenset(("_ct", "_c", "correlation_id", "group_id"))


class XPlaneReader(FileReader):
    """One XSpace. Tables are decoded when asked for, and only as far as they need."""

    __retained__ = (
        "_file _outline _memory _steps_found _recorded _line_facts _damage _far"
        " _unmarked _types _event_tables _event_bytes"
    )

    has_runtime_planes = True
    never_derived = frozenset((_SNAPSHOTS,))
    """They are read by upstream's rules; without host threads there are none."""

    def __init__(self, file: SourceFile, form: str = "xplane") -> None:
        super().__init__(file, form)
        self._outline = read_outline(file)
        _check(file, self._outline)
        self._memory: MemoryRecords | None = None
        self._steps_found: dict[bool, tuple[list[Step], list[Step] | None]] = {}
        """The steps, as grouping some of the planes gave them, or all; and what upstream's
        profiler makes of them, where that differs."""
        self._annotated: Columns | None = None
        self._recorded: Columns = empty_columns("steps")
        """The steps of a program that marked none with a number, once events have been read."""
        self._line_facts: dict[int, list[LineFacts]] = {}
        """What is known of a plane's lines since somebody has read them whole."""
        self._damage: dict[int, Damage] = {_OUTLINE: self._outline.damage}
        """Damage by plane, as whoever read it first found it."""
        self._far = FarTimes()
        times = self._profile_times()
        if times is not None and (times[1] - times[0]) * 1000 > FARTHEST_PS:
            self._far.note(Far({(_OUTLINE, "profiler"): 1}))
        self._repeats = False
        """Whether ids repeat, so that grouping takes the times of all nodes."""
        self._repeated_ids = 0
        self._told: set[int | str] = set()
        self._expected: AbstractSet[str] = frozenset()
        self._nameless: set[str] = set()

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
            return has_memory_events(self._file, self._outline)
        return has_events(self._file, self._outline) if table == "events" else None

    def expect(self, tables: AbstractSet[str]) -> None:
        """All of ``tables`` will be read: one pass over the file is to give what it can."""
        self._expected = tables

    def forget(self, table: str) -> None:
        """Nobody reads ``table`` again: free what only it needs."""
        if table == "allocator_events":
            self._memory = None

    def duration_ps(self) -> int:
        """Until the last event ends, and as long as the profiler ran, where the file says so."""
        start, stop = self._profile_times() or (0, 0)
        ends = [min((stop - start) * 1000, FARTHEST_PS)]
        for plane in self._outline.planes:
            if plane.index not in self._line_facts:
                reader = LineReader(self._file, plane.lines)
                deque(reader.parts(), maxlen=0)
                self._line_facts[plane.index] = reader.facts
            ends += [line.last_end_ps(self.zero_ps) for line in self._line_facts[plane.index]]
        return max(ends)

    def read(
        self, table: str, warnings: Warnings, columns: AbstractSet[str] | None = None
    ) -> Columns:
        """Read one table."""
        read: dict[str, Callable[[], Columns]] = {
            "planes": lambda: planes_table(self._outline.planes),
            "lines": self._lines,
            "events": lambda: self._events(columns),
            "event_stats": lambda: self._noting(
                *read_stats(self._file, self._outline, columns=columns)
            ),
            "steps": self._steps,
            "allocator_events": self._allocator_events,
            _SNAPSHOTS: self._memory_snapshots,
            "module_runs": self._module_runs,
            "event_types": lambda: self._of_types("event_types"),
            "event_type_stats": lambda: self._of_types("event_type_stats"),
            "plane_stats": lambda: self._of_types("plane_stats"),
        }
        found = read[table]()
        self._warn(warnings)
        return found

    def holds_stats(self, wanted: AbstractSet[str]) -> bool:
        """Whether the stats of these names were kept with the events."""
        return wanted <= KEPT_STATS and "_event_tables" in vars(self)

    def typed_stats(self, wanted: AbstractSet[str], warnings: Warnings) -> Columns:
        """The stats of events called ``wanted``, numbers as numbers."""
        if self.holds_stats(wanted):
            return typed_columns(self._file, self._event_tables.kept_stats(wanted))
        found = self._noting(*read_typed_stats(self._file, self._outline, wanted))
        self._warn(warnings)
        return found

    def stats_of(self, rows: npt.NDArray[Any]) -> Columns:
        """The stats of a few events, without reading those of all."""
        return self._event_bytes.stats_of(rows)

    @cached_property
    def _event_bytes(self) -> EventBytes:
        return EventBytes(self._file, self._outline)

    def hlo_modules(self) -> list[tuple[str, bytes]]:
        """The compiled programs (HloProto) by name."""
        return self._types.hlo_modules()

    def plane_bytes(self, name: str) -> dict[int, bytes]:
        """The bytes of the stat called ``name``, by plane."""
        return self._types.plane_bytes(name)

    def is_grouped(self) -> bool:
        """Whether the steps of the events stand in the file."""
        return not needs_grouping(self._outline.planes)[0]

    def messages(self) -> tuple[list[str], list[str]]:
        """What the profiler itself reported: errors, and warnings."""
        return self._outline.errors, self._outline.notes

    def _of_types(self, table: str) -> Columns:
        read: Callable[[], Columns] = getattr(self._types, table)
        return read()

    @cached_property
    def _types(self) -> TypeTables:
        return TypeTables(self._outline)

    # Clock and outline.

    @cached_property
    def zero_ps(self) -> int:
        """The profile's start: the earliest line timestamp of all planes, in ps (but see
        `clock_zero_ns`).
        """
        times, sizes = list[int](), list[int]()
        for plane in self._outline.planes:
            times += [line.timestamp_ns for line in read_line_facts(self._file, plane, whole=False)]
            sizes += plane.lines.length.tolist()
        return clock_zero_ns(times, sizes) * 1000

    @property
    def start_ns(self) -> int | None:
        """When the profile's clock is zero, in ns since 1970, where the file tells.

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

    def _lines(self) -> Columns:
        facts = [
            self._line_facts.get(plane.index) or read_line_facts(self._file, plane, whole=True)
            for plane in self._outline.planes
        ]
        return self._placed(*lines_table(facts, self.zero_ps))

    # Memory and steps.

    def _steps_by(self, *, everything: bool) -> tuple[list[Step], list[Step] | None]:
        """Group the nodes of the planes that can matter for host events, or of every plane."""
        if everything not in self._steps_found:
            self._read_groups(everything=everything)
        return self._steps_found[everything]

    def _read_groups(self, *, everything: bool) -> None:
        try:
            grouping = self._group(everything=everything, prune=not everything)
        except PrunedTooMuch:
            grouping = self._group(everything=everything, prune=False)
        self._note_steps(grouping, everything=everything)
        _after_grouping(grouping)

    def _note_steps(self, grouping: Grouping, *, everything: bool) -> None:
        other = None if grouping.other is None else grouping.other.steps
        self._steps_found[everything] = grouping.steps, other

    def _group(
        self, *, everything: bool, prune: bool, events: list[PlaneEvents] | None = None
    ) -> Grouping:
        """`_group_once`, and again by time where ids repeat."""
        grouping: Grouping | None = None
        if not self._repeats:
            try:
                grouping = self._group_once(everything=everything, prune=prune, events=events)
            except RepeatedIds:
                self._repeats = True
                if events is not None:
                    events.clear()
        if grouping is None:
            grouping = self._group_once(everything=True, prune=False, timed=True, events=events)
        self._repeated_ids = grouping.repeated or self._repeated_ids
        return grouping

    def _group_once(
        self,
        *,
        everything: bool,
        prune: bool,
        timed: bool = False,
        events: list[PlaneEvents] | None = None,
    ) -> Grouping:
        """Read the planes and group their nodes; with their times where ``timed``.

        ``events`` gets the events of every plane; the memory records are then left, unless they
        are expected too, for those who ask for them, who seldom are the same.
        """
        with_memory = self._memory is None and (events is None or self._reads_together)
        rewrite, assign = needs_grouping(self._outline.planes)
        planes, first = [], 0
        memory: tuple[PlanePass, int] | None = None
        for plane in self._outline.planes:
            is_host = plane is self._outline.host_plane
            takes_part = is_host or _takes_part(plane, everything=everything)
            if not takes_part and events is None:
                continue
            tpu: TpuPlane | None = None
            if plane.is_tpu and takes_part:
                tpu = read_tpu_plane(self._file, plane, rewrite=rewrite)
                planes.append(GroupedPlane.of_tpu(plane, first, tpu))
                self._damage.setdefault(plane.index, tpu.damage)
                kept, stats = tpu.kept, tpu.stats
            else:
                found = PlanePass(
                    self._file, plane, want_memory=is_host and with_memory,
                    rewrite=rewrite, prune=prune, own_ends=timed, timed=timed,
                    keep=events is not None,
                )  # fmt: skip
                self._damage.setdefault(plane.index, found.damage)
                kept, stats = found.kept_lines(), found.kept_stats()
                self._line_facts[plane.index] = found.line_facts
                if takes_part:
                    planes.append(GroupedPlane.of_pass(plane, first, found))
                if is_host and with_memory:
                    memory = found, first
            if events is not None:
                nodes = slice(first, first + planes[-1].nodes) if takes_part else None
                events.append(PlaneEvents(plane, kept, stats, nodes, tpu))
            first += planes[-1].nodes if takes_part else 0
        grouping = group(self._file, planes, first, rewritten=rewrite, assign=assign)
        if memory is not None:
            found, at = memory
            self._memory = MemoryRecords(found, slice(at, at + found.nodes), grouping)
        return grouping

    def _records(self) -> MemoryRecords | None:
        if self._outline.host_plane is None:
            return None
        if self._memory is None and self._reads_together:
            self._event_tables.rows  # noqa: B018 (read with them, unless they have been read before)
        if self._memory is None:
            self._read_groups(everything=False)
        return self._memory

    def _memory_snapshots(self) -> Columns:
        records = self._records()
        return empty_columns(_SNAPSHOTS) if records is None else records.snapshots()

    def _allocator_events(self) -> Columns:
        records = self._records()
        if records is None:
            return empty_columns("allocator_events")
        try:
            table = self._placed(*records.allocator_events(self.zero_ps))
        except MemoryError:
            # They may be in no order now: whoever asks next reads them again.
            self._memory = None
            raise
        if self._holds_groups:
            is_step = _are_steps(table, self._steps())
            return Columns(table.data, {**table.valid, "step_id": is_step})
        if self._unmarked.annotations and not self._both_steps()[0]:
            steps = self._steps()
            at = step_at(steps, table.array("time_ps"))
            return Columns({**table.data, "step_id": at}, {**table.valid, "step_id": at >= 0})
        return table

    def _module_runs(self) -> Columns:
        found, damage, far = read_module_runs(self._file, self._outline)
        return self._noting(self._placed(found, far), damage)

    def _steps(self) -> Columns:
        unmarked = self._unmarked
        if self.is_grouped():
            self._event_tables  # noqa: B018 (found while they are read)
            return self._recorded
        found = self._both_steps()[0]
        if not found and unmarked.annotations:
            self._event_tables  # noqa: B018 (found while they are read)
            annotated: Columns | None = self._annotated
            return empty_columns("steps") if annotated is None else annotated
        table = self._placed(*steps_table(found, self.zero_ps))
        if unmarked.functions and found and found[0].found_by == "function":
            return named_runs(table, self._events(COLUMNS))
        return table

    @cached_property
    def _unmarked(self) -> Unmarked:
        host = self._outline.host_plane
        return Unmarked.of(frozenset() if host is None else host.event_name_set)

    def _both_steps(self) -> tuple[list[Step], list[Step] | None]:
        # The steps are the same either way; that all events have been grouped may be known.
        everything = True in self._steps_found or any(p.is_tpu for p in self._outline.planes)
        return self._steps_by(everything=everything)

    def runtime_steps(self) -> Columns | None:
        """The steps as upstream's profiler groups them; None where they are those of ``steps``."""
        if self.is_grouped():
            return empty_columns("steps")
        own, other = self._both_steps()
        renamed = self._unmarked.functions and own and own[0].found_by == "function"
        if not (self._holds_groups or renamed) and other is None and self._annotated is None:
            return None
        return self._placed(*steps_table(own if other is None else other, self.zero_ps))

    def runtime_step_of_events(self) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """The step of every event as upstream's profiler groups them, and which have one."""
        return self._event_tables.runtime_steps()

    @property
    def _reads_together(self) -> bool:
        return {"events", "allocator_events"} <= self._expected

    @cached_property
    def _event_tables(self) -> EventTables:
        events: list[PlaneEvents] = []
        grouping = self._group(everything=True, prune=False, events=events)
        self._note_steps(grouping, everything=True)
        tables = EventTables(self._outline, events, grouping, self.zero_ps)
        del events
        if self.is_grouped():
            planes = planes_table(self._outline.planes)
            self._recorded = recorded_steps(tables.events(COLUMNS), self._lines(), planes)
            self._only_steps(tables, self._recorded)
        elif not grouping.steps and self._unmarked.annotations:
            self._annotate(tables)
        elif self._holds_groups:
            self._only_steps(tables, steps_table(grouping.steps, self.zero_ps)[0])
        _after_grouping(grouping)
        return tables

    @cached_property
    def _holds_groups(self) -> bool:
        """Whether groups may stand in the file."""
        return any("group_id" in plane.stat_name_set for plane in self._outline.planes)

    @staticmethod
    def _only_steps(tables: EventTables, steps: Columns) -> None:
        """Groups that stand in the file and that nothing shows as a step are none."""
        events = tables.events(frozenset(("step_id",)))
        is_step = _are_steps(events, steps)
        tables.set_steps(np.where(is_step, events.array("step_id"), NO_STEP), is_step)

    def _annotate(self, tables: EventTables) -> None:
        """Make what the program annotated once a turn of its loop the steps of the events."""
        events, lines = tables.events(COLUMNS), self._lines()
        planes = planes_table(self._outline.planes)
        self._annotated = annotated_steps(events, lines, planes)
        if self._annotated is not None:
            stats = tables.kept_stats(frozenset(("correlation_id",)))
            launched = typed_columns(self._file, stats)
            tables.set_steps(steps_by_time(self._annotated, events, lines, planes, launched))

    def _events(self, columns: AbstractSet[str] | None) -> Columns:
        if columns is not None and columns <= PLAIN and "_event_tables" not in vars(self):
            found, damage, facts, far = read_plain_events(
                self._file, self._outline, self.zero_ps, columns
            )
            self._line_facts.update(facts)
            return self._noting(self._placed(found, far), damage)
        return self._placed(self._event_tables.events(columns), self._event_tables.far)

    def _noting(self, columns: Columns, damage: dict[int, Damage]) -> Columns:
        for plane, harm in damage.items():
            self._damage.setdefault(plane, harm)
        return columns

    def _placed(self, columns: Columns, far: Far) -> Columns:
        self._far.note(far)
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
        self._far.tell(warnings)
        if self._repeated_ids and "repeated" not in self._told:
            self._told.add("repeated")
            warnings.add(
                "repeated_ids",
                "ids that several steps produce (a merged or repeated file): work belongs to the "
                "event with its id that began last before it, and to no step where that is open",
                self._repeated_ids,
            )
        if "profiler" not in self._told:
            self._told.add("profiler")
            for kind, texts in (
                ("profiler_error", self._outline.errors),
                ("profiler_warning", self._outline.notes),
            ):
                for text in texts:
                    warnings.add(kind, " ".join(text.split()))


def _are_steps(table: Columns, steps: Columns) -> npt.NDArray[np.bool_]:
    """Which rows have a step that ``steps`` has."""
    found: npt.NDArray[np.bool_] = np.isin(table.array("step_id"), steps.array("step_id"))
    return found & table.is_valid("step_id")


def _after_grouping(grouping: Grouping) -> None:
    """Grouping takes as much for a moment as the events do, in pieces that are held back."""
    if grouping.group.size >= _MANY_NODES:
        give_back_memory()


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
