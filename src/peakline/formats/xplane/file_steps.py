"""The steps of an XSpace, and its events, which are read with them."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import cached_property
from typing import Any

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.formats.xplane.event_stats import typed_columns
from peakline.formats.xplane.events import NO_STEP, EventTables, PlaneEvents
from peakline.formats.xplane.forest import PrunedTooMuch
from peakline.formats.xplane.grouping import Grouping, needs_grouping
from peakline.formats.xplane.opening import Step
from peakline.formats.xplane.passes import Passes
from peakline.formats.xplane.plain_events import PLAIN, read_plain_events
from peakline.formats.xplane.small_tables import planes_table, steps_table
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
from peakline.tables.reader import Reader, Warnings
from peakline.tables.table_source import TableSource
from peakline.tables.tables import empty_columns

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
        found = self._both_steps()[0]
        if not found and unmarked.annotations:
            self.event_tables  # noqa: B018 (found while they are read)
            annotated: Columns | None = self._annotated
            return empty_columns("steps") if annotated is None else annotated
        table = self._passes.placed(*steps_table(found, self._passes.zero_ps))
        if unmarked.functions and found and found[0].found_by == "function":
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
        found = (grouping.runtime if runtime else grouping).links
        return (np.zeros((0, 2), np.int64), 0) if found is None else found

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
            found, damage, facts, far = read_plain_events(
                self._passes.file, self._passes.outline, self._passes.zero_ps, columns
            )
            self._passes.line_facts.update(facts)
            return self._passes.noting(self._passes.placed(found, far), damage)
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
        found = self._profile.columns(table, columns)
        if table != "events" or (columns is not None and "step_id" not in columns):
            return found
        step, known = self._steps.event_tables.runtime_steps()
        return Columns({**found.data, "step_id": step}, {**found.valid, "step_id": known})


def _are_steps(table: Columns, steps: Columns) -> BoolArray:
    """Which rows have a step that ``steps`` has."""
    found: BoolArray = np.isin(table.array("step_id"), steps.array("step_id"))
    return found & table.is_valid("step_id")


def _after_grouping(grouping: Grouping) -> None:
    """Grouping takes as much for a moment as the events do, in pieces that are held back."""
    if grouping.group.size >= _MANY_NODES:
        give_back_memory()
