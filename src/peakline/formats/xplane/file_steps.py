"""The steps of an XSpace, marked or not, and its events, which are read with them."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from peakline.formats.common.annotations import counted, outermost, steps_columns, turns
from peakline.formats.xplane.event_stats import typed_columns
from peakline.formats.xplane.events import (
    NO_STEP,
    PLAIN,
    EventTables,
    PlaneEvents,
    planes_table,
    read_plain_events,
    steps_table,
)
from peakline.formats.xplane.forest import PrunedTooMuch
from peakline.formats.xplane.grouping import Grouping, Step, needs_grouping
from peakline.formats.xplane.names import IMPLICIT_ROOTS, TPU_STEP_LINES
from peakline.formats.xplane.passes import Passes
from peakline.process_memory import give_back_memory
from peakline.tables.columns import Columns, Names
from peakline.tables.joins import causes
from peakline.tables.reader import Reader, Warnings
from peakline.tables.table_source import TableSource
from peakline.tables.tables import empty_columns

COLUMNS = frozenset(("line_id", "name", "start_ps", "duration_ps", "step_id"))
"""What is read of the events."""
_CALL = re.compile(r"(?:Pjit|Pmap|Compiled)Function\(")
"""What JAX writes around every call of a compiled function: only the program lies around it."""
_PYTHON = "$"
"""What the names of Python's frames begin with."""
_EAGER = re.compile(r"EagerLocalExecute: __(?:inference|forward|backward)_(.+)_\d+")
"""What TensorFlow writes around the run of a function that was called."""


@dataclass(frozen=True)
class Unmarked:
    """What events of a host's threads can be looked at for, by their names alone.

    ``annotations``: calls of JAX, that `annotated_steps` may find something around; ``functions``:
    what says to `named_runs` which function ran.
    """

    annotations: bool
    functions: bool

    @classmethod
    def of(cls, names: AbstractSet[str]) -> Unmarked:
        """For events of these names."""
        return cls(any(map(_CALL.match, names)), any(map(_EAGER.fullmatch, names)))


def recorded_steps(events: Columns, lines: Columns, planes: Columns) -> Columns:
    """The ``steps`` table of a file whose events say their group themselves.

    A group is a step where the ``Steps`` line of a device shows it; without such a line where the
    outermost event of a thread that has the group is one that begins a step.
    """
    names = lines.names("name").to_list()
    on_step_line = np.array([name in TPU_STEP_LINES for name in names], np.bool_)
    has = events.is_valid("step_id") & events.is_valid("start_ps")
    line = events.array("line_id")
    rows = np.flatnonzero(has & (on_step_line & _on(planes, lines, "device"))[line])
    found_by = "device"
    if not rows.size:
        found_by = "function"
        begins = _named(events, IMPLICIT_ROOTS.__contains__)
        rows = np.flatnonzero(has & begins & _on(planes, lines, "host")[line])
    start = events.array("start_ps")[rows]
    end = start + events.array("duration_ps")[rows]
    step = events.array("step_id")[rows].astype(np.int64)
    order = np.lexsort((-end, start, step))
    ids, first = np.unique(step[order], return_index=True)
    at = order[first]
    last = end[at]
    shown = [str(number) for number in ids.tolist()]
    if found_by == "device" and ids.size:
        # Several devices show the same step.
        last = np.maximum.reduceat(end[order], first)
        shown = [name or "" for name in events.names("name").take(rows[at]).to_list()]
    return steps_columns(ids, shown, start[at], last, Names.constant(found_by, ids.size))


def named_runs(steps: Columns, events: Columns) -> Columns:
    """The table ``steps`` of runs of functions, by what TensorFlow says which function it was."""
    rows = np.flatnonzero(_named(events, _EAGER.fullmatch))
    start = events.array("start_ps")[rows]
    rows = rows[np.argsort(start, kind="stable")]
    start = events.array("start_ps")[rows]
    if not rows.size:
        return steps
    end = start + events.array("duration_ps")[rows]
    at = np.maximum(np.searchsorted(start, steps.array("start_ps"), side="right") - 1, 0)
    inside = (start[at] <= steps.array("start_ps")) & (end[at] >= steps.array("end_ps"))
    names = events.names("name").take(rows[at]).to_list()
    known = [
        match[1] if fits and (match := _EAGER.fullmatch(name or "")) else None
        for name, fits in zip(names, inside.tolist(), strict=True)
    ]
    if not any(known):
        return steps
    in_time = np.argsort(steps.array("start_ps"), kind="stable").tolist()
    shown = counted(known[row] or "function" for row in in_time)
    texts = [""] * steps.rows
    for row, text in zip(in_time, shown, strict=True):
        texts[row] = text
    return Columns({**steps.data, "name": Names.encode(texts)}, steps.valid)


def annotated_steps(events: Columns, lines: Columns, planes: Columns) -> Columns | None:
    """The ``steps`` table of a program that annotated each turn of its loop without a number.

    Such is what lies around calls of compiled functions, in nothing but frames of Python, is
    called the same twice or more, and is not called as a part of a turn; of several threads the
    one with the longest time. None without any. ``planes`` and ``lines`` are the whole tables.
    """
    line, start = events.array("line_id"), events.array("start_ps")
    end = start + events.array("duration_ps")
    on_host = _on(planes, lines, "host")
    calls = np.flatnonzero(_named(events, _CALL.match))
    best: AnyArray = calls[:0]
    most = 0
    for number in np.unique(line[calls]).tolist():
        if not on_host[number]:
            continue
        own = np.flatnonzero((line == number) & events.is_valid("start_ps") & (end > start))
        own = own[~_named(events.take(own), lambda name: name.startswith(_PYTHON))]
        own = outermost(own, start, events.array("duration_ps"))
        called = np.sort(start[calls[line[calls] == number]])
        first, last = (np.searchsorted(called, times[own]) for times in (start, end))
        own = own[last > first]
        own = turns(own, events.names("name").take(own), _CALL.match)
        length = int((end[own] - start[own]).sum())
        if length > most:
            best, most = own, length
    if not best.size:
        return None
    shown = counted(name or "" for name in events.names("name").take(best).to_list())
    ids, found_by = np.arange(best.size, dtype=np.int64), Names.constant("annotation", best.size)
    return steps_columns(ids, shown, start[best], end[best], found_by)


def steps_by_time(
    steps: Columns, events: Columns, lines: Columns, planes: Columns, correlation: Columns
) -> Int32Array:
    """For every event the row of its step, -1 for none: that in which an event of a host begins,
    and for work of a device that of the event with the same ``correlation`` (typed stats), of
    several that which began last before it.
    """
    at = step_at(steps, events.array("start_ps"))
    on_host = _on(planes, lines, "host")[events.array("line_id")]
    result = np.where(on_host & events.is_valid("start_ps"), at, np.int32(-1))
    event, number = correlation.array("event_id"), correlation.array("integer")
    launches, works = on_host[event], ~on_host[event]
    start = events.array("start_ps")[event]
    cause = causes(number[launches], start[launches], number[works], start[works])
    known = cause >= 0
    result[event[works][known]] = result[event[launches][cause[known]]]
    return result


def step_at(steps: Columns, time: AnyArray) -> Int32Array:
    """The place of the step in which each moment lies, -1 for none; steps follow one another."""
    if not steps.rows:
        return np.full(time.size, -1, np.int32)
    at = np.searchsorted(steps.array("start_ps"), time, side="right") - 1
    inside = (at >= 0) & (time < steps.array("end_ps")[np.maximum(at, 0)])
    return np.where(inside, at, -1).astype(np.int32)


def _on(planes: Columns, lines: Columns, kind: str) -> BoolArray:
    """Which lines are on planes of a kind."""
    kinds = planes.names("kind")
    own = kinds.codes == kinds.code_of(kind)
    result: BoolArray = own[lines.array("plane_id")]
    return result


def _named(events: Columns, fits: Any) -> BoolArray:
    """Which events have a name that fits."""
    return events.names("name").per_row(fits, np.bool_)


_MANY_NODES = 1 << 20


class FileSteps:
    """The steps that one file marks, shows or lets infer."""

    __retained__ = "_passes _planes _found _annotated _recorded _unmarked event_tables"

    def __init__(self, passes: Passes) -> None:
        self._passes, self._planes = passes, passes.outline.planes
        self._found: dict[bool, tuple[list[Step], list[Step] | None]] = {}
        """The steps, as grouping some of the planes gave them, or all; and what upstream's
        profiler makes of them, where that differs."""
        self._annotated: Columns | None = None
        self._recorded: Columns = empty_columns("steps")
        """The steps of a program that marked none with a number, once events have been read."""

    @cached_property
    def is_grouped(self) -> bool:
        """Whether the steps of the events stand in the file."""
        return not needs_grouping(self._planes)[0]

    def table(self) -> Columns:
        """The table ``steps``."""
        unmarked = self._unmarked
        if self.is_grouped:
            self.event_tables  # noqa: B018 (found while they are read)
            return self._recorded
        result = self._both_steps()[0]
        if not result and unmarked.annotations:
            self.event_tables  # noqa: B018 (found while they are read)
            annotated: Columns | None = self._annotated
            return empty_columns("steps") if annotated is None else annotated
        table = self._passes.placed(*steps_table(result, self._passes.zero_ps))
        if unmarked.functions and result and result[0].found_by == "function":
            return named_runs(table, self.events(COLUMNS))
        return table

    @cached_property
    def _unmarked(self) -> Unmarked:
        host = self._passes.outline.host_plane
        return Unmarked.of(frozenset() if host is None else host.event_name_set)

    def _both_steps(self) -> tuple[list[Step], list[Step] | None]:
        # The steps are the same either way; that all events have been grouped may be known.
        everything = True in self._found or any(p.is_tpu for p in self._planes)
        if everything not in self._found:
            self.read_groups(everything=everything)
        return self._found[everything]

    def read_groups(self, *, everything: bool) -> None:
        """Group the nodes of the planes that can matter for host events, or of every plane."""
        try:
            grouping = self._passes.group(everything=everything, prune=not everything)
        except PrunedTooMuch:
            grouping = self._passes.group(everything=everything, prune=False)
        self._note_steps(grouping, everything=everything)
        _after_grouping(grouping)

    def _note_steps(self, grouping: Grouping, *, everything: bool) -> None:
        other = None if grouping.other is None else grouping.other.steps
        self._found[everything] = grouping.steps, other

    def runtime_steps(self) -> Columns | None:
        """The steps as upstream's profiler groups them; None where they are those of ``steps``."""
        if self.is_grouped:
            return empty_columns("steps")
        own, other = self._both_steps()
        renamed = self._unmarked.functions and own and own[0].found_by == "function"
        if not (self._holds_groups or renamed) and other is None and self._annotated is None:
            return None
        return self._passes.placed(
            *steps_table(own if other is None else other, self._passes.zero_ps)
        )

    def links(self, *, runtime: bool) -> tuple[Int64Array, int]:
        """Which steps hand work to which (see `peakline.formats.xplane.grouping`), as ours or as
        upstream's profiler groups them; none of steps that stand in the file.
        """
        # A pass of its own: few questions need it.
        grouping = self._passes.group(everything=True, prune=False, links=True)
        result = (grouping.runtime if runtime else grouping).links
        return (np.zeros((0, 2), np.int64), 0) if result is None else result

    @property
    def has_event_tables(self) -> bool:
        """Whether `event_tables` have been read."""
        return "event_tables" in vars(self)

    @cached_property
    def event_tables(self) -> EventTables:
        """All events with their steps."""
        events: list[PlaneEvents] = []
        grouping = self._passes.group(everything=True, prune=False, events=events)
        self._note_steps(grouping, everything=True)
        tables = EventTables(self._passes.outline, events, grouping, self._passes.zero_ps)
        del events
        if self.is_grouped:
            planes = planes_table(self._planes)
            self._recorded = recorded_steps(tables.events(COLUMNS), self._passes.lines(), planes)
            self._only_steps(tables, self._recorded)
        elif not grouping.steps and self._unmarked.annotations:
            self._annotate(tables)
        elif self._holds_groups:
            self._only_steps(tables, steps_table(grouping.steps, self._passes.zero_ps)[0])
        _after_grouping(grouping)
        return tables

    @cached_property
    def _holds_groups(self) -> bool:
        """Whether groups may stand in the file."""
        return any("group_id" in plane.stat_name_set for plane in self._planes)

    @staticmethod
    def _only_steps(tables: EventTables, steps: Columns) -> None:
        """Groups that stand in the file and that nothing shows as a step are none."""
        events = tables.events(frozenset(("step_id",)))
        is_step = _are_steps(events, steps)
        tables.set_steps(np.where(is_step, events.array("step_id"), NO_STEP), is_step)

    def _annotate(self, tables: EventTables) -> None:
        """Make what the program annotated once a turn of its loop the steps of the events."""
        events, lines = tables.events(COLUMNS), self._passes.lines()
        planes = planes_table(self._planes)
        self._annotated = annotated_steps(events, lines, planes)
        if self._annotated is not None:
            stats = tables.selected_stats(frozenset(("correlation_id",)))
            launched = typed_columns(self._passes.file, stats)
            tables.set_steps(steps_by_time(self._annotated, events, lines, planes, launched))

    def events(self, columns: AbstractSet[str] | None) -> Columns:
        """The table ``events``: at least the named columns, None for all."""
        # Who expects events and records together reads all columns of the events soon.
        alone = not (self.has_event_tables or self._passes.reads_together)
        if columns is not None and columns <= PLAIN and alone:
            result, damage, facts, far = read_plain_events(
                self._passes.file, self._passes.outline, self._passes.zero_ps, columns
            )
            self._passes.line_facts.update(facts)
            return self._passes.noting(self._passes.placed(result, far), damage)
        return self._passes.placed(self.event_tables.events(columns), self.event_tables.far)

    def of_memory(self, table: Columns) -> Columns:
        """``allocator_events`` whose ``step_id`` are those of the table of steps."""
        if self._holds_groups:
            is_step = _are_steps(table, self.table())
            return Columns(table.data, {**table.valid, "step_id": is_step})
        if self._unmarked.annotations and not self._both_steps()[0]:
            at = step_at(self.table(), table.array("time_ps"))
            return Columns({**table.data, "step_id": at}, {**table.valid, "step_id": at >= 0})
        return table


class RuntimeSteps:
    """A `Reader` of what ``profile`` has read by ``reader``, with the steps into which upstream's
    profiler groups events: all but the steps is the same, and shared.
    """

    __retained__ = "_reader _table _steps"

    def __init__(
        self, profile: TableSource, reader: Reader, table: Columns, steps: FileSteps
    ) -> None:
        self._profile, self._reader, self._table, self._steps = profile, reader, table, steps
        self.format, self.path, self.host = reader.format, reader.path, reader.host
        self.tables = reader.tables

    def __getattr__(self, name: str) -> Any:
        # What only some readers can say.
        return getattr(self._reader, name)

    def step_links(self) -> tuple[Int64Array, int]:
        """Which of these steps hand work to which, and how many links were left out."""
        return self._steps.links(runtime=True)

    def close(self) -> None:
        """Nothing: the file is the other profile's."""

    def read(
        self, table: str, warnings: Warnings, columns: AbstractSet[str] | None = None
    ) -> Columns:
        """One table; warnings are counted in the profile that reads."""
        del warnings
        if table == "steps":
            return self._table
        result = self._profile.columns(table, columns)
        if table != "events" or (columns is not None and "step_id" not in columns):
            return result
        step, known = self._steps.event_tables.runtime_steps()
        return Columns({**result.data, "step_id": step}, {**result.valid, "step_id": known})


def _are_steps(table: Columns, steps: Columns) -> BoolArray:
    """Which rows have a step that ``steps`` has."""
    result: BoolArray = np.isin(table.array("step_id"), steps.array("step_id"))
    return result & table.is_valid("step_id")


def _after_grouping(grouping: Grouping) -> None:
    """Grouping takes as much for a moment as the events do, in pieces that are held back."""
    if grouping.group.size >= _MANY_NODES:
        give_back_memory()
