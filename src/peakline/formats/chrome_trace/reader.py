"""Chrome traces: the reader of the Trace Event Format's JSON, of any size.

The file is read block by block, so that a compressed one is never held as a whole. One pass
collects what all tables but the events' arguments need (about 30 bytes per event); those are read
by another pass when they are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cached_property

import numpy as np

from peakline.arrays import Int32Array
from peakline.errors import DamagedError, InputError
from peakline.formats.chrome_trace import kineto, memory
from peakline.formats.chrome_trace.collect import collect, objects_of, phases_of
from peakline.formats.chrome_trace.phases import (
    ASYNC,
    CLASS_OF,
    EVENT,
    IS_END,
    SKIPPED,
    STEP_ARGUMENT,
    UNKNOWN,
)
from peakline.formats.chrome_trace.ranks import facts_of_root, text_of
from peakline.formats.chrome_trace.rules import RULES
from peakline.formats.chrome_trace.steps import Steps, find_steps, steps_of_events
from peakline.formats.chrome_trace.texts import Texts
from peakline.formats.chrome_trace.trace import Events, Trace, finish
from peakline.formats.common.files import SourceFile
from peakline.formats.common.reader import ReportingReader
from peakline.kernels import json_kinds
from peakline.kernels.trace_events import compact
from peakline.tables.columns import Column, Columns, Names
from peakline.tables.event_rules import ProcessGroup
from peakline.tables.joins import REPEATED
from peakline.tables.rank_facts import RankFacts
from peakline.tables.reader import Warnings
from peakline.wire import Spans
from peakline.wire.json_events import Members, Objects, members_of


def event_stats(file: SourceFile, events: Events) -> Columns:
    """The ``event_stats`` table: one row per argument, text as it is, nested values as JSON.

    The arguments of an event's end are its too. They come in the order of the events.
    """
    names, values = Texts(), Texts()
    event_parts, name_parts, value_parts = ([np.zeros(0, np.int32)] for _ in range(3))
    next_event = next_end = 0
    _, objects = objects_of(file, ("ph", "args"))
    for result in objects:
        phase = phases_of(result)
        of_class = CLASS_OF[phase]
        rows = np.flatnonzero((of_class == EVENT) | (of_class == ASYNC))
        is_end = IS_END[phase[rows]]
        event = np.empty(rows.size, np.int64)
        ends = int(np.count_nonzero(is_end))
        event[is_end] = events.event_of_end[next_end : next_end + ends]
        event[~is_end] = np.arange(next_event, next_event + rows.size - ends)
        next_end += ends
        next_event += rows.size - ends
        has_args = (result.kind("args")[rows] == json_kinds.OBJECT) & (event >= 0)
        if not has_args.any():
            continue
        members = members_of(result.buffer, result.spans("args").take(rows[has_args]))
        event_parts.append(event[has_args][members.parent].astype(np.int32))
        name_parts.append(names.codes(result.buffer, members.key_kind, members.key))
        value_parts.append(_values(values, result, members))
    event_id = np.concatenate(event_parts)
    name, value = np.concatenate(name_parts), np.concatenate(value_parts)
    if events.event_of_end.size:
        order = np.argsort(event_id, kind="stable")
        event_id, name, value = event_id[order], name[order], value[order]
    return Columns(
        {
            "event_id": event_id,
            "name": Names(name, names.values),
            "value": Names(value, values.values),
        }
    )


def _values(values: Texts, result: Objects, members: Members) -> Int32Array:
    codes = values.codes(result.buffer, members.kind, members.value)
    nested = np.flatnonzero(members.kind >= json_kinds.ARRAY)
    if nested.size:
        spans = members.value.take(nested)
        out = np.empty(int(spans.length.sum()), np.uint8)
        starts, lengths = np.empty(nested.size, np.int64), np.empty(nested.size, np.int64)
        compact(result.buffer, spans.start, spans.length, out, starts, lengths)
        codes[nested] = values.add_spans(out, Spans(starts, lengths))
    return codes


_TABLES = frozenset(
    ("planes", "lines", "events", "event_stats", "steps", "flows", "counters", "allocator_events",
     "stacks")
)  # fmt: skip


class ChromeTraceReader(ReportingReader):
    """One trace: a JSON array of events, or an object with ``traceEvents``.

    The format is described in "Trace Event Format" (Google, 2016).
    """

    __retained__ = "_file _losses _read _steps _owners"

    event_rules = RULES
    tables = _TABLES
    """Those of memory are empty where PyTorch did not record it."""

    def __init__(self, file: SourceFile, form: str = "chrome_trace") -> None:
        super().__init__(file, form)
        self._losses = Warnings()

    @property
    def host(self) -> str:
        """What PyTorch wrote as ``host_name``, else empty."""
        return text_of(self._root.get("host_name", b""))

    @property
    def rank_facts(self) -> RankFacts:
        """What ``distributedInfo`` and its like say of the process."""
        return replace(facts_of_root(self._root), process=self._trace.planes.process())

    @property
    def start_ns(self) -> int | None:
        """When the profile's clock is zero, in ns since 1970, where the file says."""
        base = self._root.get("baseTimeNanoseconds", b"")
        try:
            return int(base) + self._trace.zero_ps // 1000
        except ValueError:
            return None

    def process_groups(self) -> tuple[ProcessGroup, ...]:
        """Those of PyTorch's ``distributedInfo``."""
        return kineto.process_groups(self._root.get("distributedInfo", b""))

    def duration_ps(self) -> int:
        """From the earliest event to the end of the last."""
        return self._trace.end_ps()

    def _report(self, warnings: Warnings) -> None:
        for kind, count, detail in self._losses.entries():
            warnings.add(kind, detail, count)
        warnings.add("truncated", self._file.unpacking_error, bool(self._file.unpacking_error))

    def _table(self, table: str, columns: AbstractSet[str] | None) -> Columns:
        trace = self._trace
        read: dict[str, Callable[[], Columns]] = {
            "planes": self._planes,
            "lines": self._lines,
            "events": lambda: self._events(columns),
            "event_stats": self._stats,
            "steps": self._steps.table,
            "flows": self._flows,
            "counters": self._counters,
            "allocator_events": lambda: memory.allocator_events(
                trace, self._steps, self._owners, memory.device_bytes(self._device_properties)
            ),
            "stacks": lambda: memory.stacks(trace, self._owners),
        }
        return read[table]()

    @cached_property
    def _read(self) -> tuple[Trace, dict[str, bytes]]:
        result, source = collect(self._file)
        damaged, first = source.damaged
        path, losses = self._file.path, self._losses
        seen = {kind: int(result.seen[kind == CLASS_OF].sum()) for kind in (UNKNOWN, SKIPPED)}
        if not result.seen.sum() and (damaged or source.cut >= 0):
            offset = first if damaged else source.cut
            raise DamagedError(f"{path}: damaged at offset {offset}; no event is whole", offset)
        if result.seen.sum() and result.seen.sum() == result.seen[0]:
            raise InputError(f"{path}: JSON objects, but no trace: none has a phase (ph)")
        trace = finish(result)
        if source.cut >= 0:
            losses.add(
                "truncated",
                f"the file ends in the middle (cut at offset {source.cut}); "
                "answered from what is whole",
            )
        losses.add("damaged", f"first at offset {first}; read on at the next whole event", damaged)
        losses.add("too_big", "objects too large for an event, left out", source.too_big)
        losses.add("unknown_phase", "records whose phase (ph) is missing or unknown", seen[UNKNOWN])
        phases = "".join(chr(c) for c in np.flatnonzero(result.seen) if CLASS_OF[c] == SKIPPED)
        losses.add(
            "skipped_records",
            f"records of objects, memory dumps and the like (phases {phases}), not read",
            seen[SKIPPED],
        )
        losses.add(
            "bad_times",
            "records whose time (ts) is missing, no number or 104 days from the others; "
            "events keep their place without a start",
            result.bad_times,
        )
        losses.add(
            "bad_durations",
            "complete events (X) whose duration is missing or no length of time, taken as 0",
            result.bad_durations,
        )
        losses.add("repeated_ids", REPEATED, trace.repeated_flows)
        losses.add(
            "unmatched_begins",
            "events that began and never ended, taken to last until the end of the line",
            trace.unmatched_begins,
        )
        losses.add("unmatched_ends", "ends of events that never began", trace.unmatched_ends)
        losses.add("bad_counters", "values of counters that are no numbers", result.bad_counters)
        losses.add("bad_memory", "[memory] events without a size", result.bad_memory)
        capacities = memory.device_bytes(source.root.get("deviceProperties", b""))
        for device, size in memory.oversize(trace.memory, capacities).items():
            losses.add(
                "capacities_disagree",
                f"device {device} has {capacities[device]:,} bytes by deviceProperties, yet "
                f"{size:,} were reserved of it; its capacity counts as not known",
            )
        return trace, source.root

    @property
    def _trace(self) -> Trace:
        return self._read[0]

    @property
    def _root(self) -> dict[str, bytes]:
        return self._read[1]

    @property
    def _device_properties(self) -> bytes:
        return self._root.get("deviceProperties", b"")

    @cached_property
    def _steps(self) -> Steps:
        return find_steps(self._trace)

    @cached_property
    def _owners(self) -> memory.Owners:
        return memory.find_owners(self._trace)

    def _planes(self) -> Columns:
        planes = self._trace.planes
        busy = np.zeros(planes.line_count, np.bool_)
        busy[self._trace.events.line] = True
        table = planes.planes_table(busy)
        if self._has_line_of_steps:
            table = table.take(table.array("plane_id") != planes.plane_of_line[-1])
        return table

    def _lines(self) -> Columns:
        table = self._trace.planes.lines_table()
        return table.take(np.arange(table.rows - 1)) if self._has_line_of_steps else table

    @cached_property
    def _has_line_of_steps(self) -> bool:
        """Whether the last line holds the steps that ``peakline export`` wrote, and only them."""
        trace, marked = self._trace, self._steps.marked
        plane = trace.planes.plane_of_line
        last = trace.planes.line_count - 1
        return (
            marked.size > 0
            and np.count_nonzero(plane == plane[last]) == 1
            and not (trace.flows["line"] == last).any()
            and np.array_equal(np.flatnonzero(trace.events.line == last), marked)
        )

    @cached_property
    def _is_event(self) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Which rows are events of the profile: the steps of ``peakline export`` are not."""
        is_event = np.ones(self._trace.events.rows, np.bool_)
        is_event[self._steps.marked] = False
        return is_event

    def _stats(self) -> Columns:
        table = event_stats(self._file, self._trace.events)
        if not self._steps.marked.size:
            return table
        # The step of an event is in its column.
        names = table.names("name")
        table = table.take(
            self._is_event[table.array("event_id")] & (names.codes != names.code_of(STEP_ARGUMENT))
        )
        number = (np.cumsum(self._is_event) - 1).astype(np.int32)
        return Columns({**table.data, "event_id": number[table.array("event_id")]})

    def _events(self, columns: AbstractSet[str] | None) -> Columns:
        events, result = self._trace.events, self._trace.collected
        timed = events.timed
        data: dict[str, Column] = {
            "event_id": np.arange(events.rows, dtype=np.int32),
            "line_id": events.line,
            "name": _named(events.name, result.names.values),
            "start_ps": events.start,
            "duration_ps": events.duration,
            "category": Names(events.category, result.categories.values),
        }
        valid = {} if timed.all() else {"start_ps": timed}
        if columns is None or "step_id" in columns:
            step = steps_of_events(self._trace, self._steps)
            data["step_id"], valid["step_id"] = step, step >= 0
        table = Columns(data, valid)
        if self._steps.marked.size:
            table = table.take(self._is_event)
            numbers = np.arange(table.rows, dtype=np.int32)
            table = Columns({**table.data, "event_id": numbers}, table.valid)
        return table

    def _flows(self) -> Columns:
        flows, names = self._trace.flows, self._trace.collected.names.values
        phases = np.array([ord(letter) for letter in "fst"])
        return Columns(
            {
                "flow_id": flows["flow"],
                "name": _named(flows["name"], names),
                "phase": Names(
                    np.searchsorted(phases, flows["phase"]).astype(np.int32), list("fst")
                ),
                "line_id": flows["line"],
                "time_ps": flows["time"],
                "binds_enclosing": flows["binds"],
            }
        )

    def _counters(self) -> Columns:
        counters, result = self._trace.counters, self._trace.collected
        return Columns(
            {
                "plane_id": counters["plane"],
                "name": _named(counters["name"], result.names.values),
                "series": Names(counters["series"], result.series.values),
                "time_ps": counters["time"],
                "value": counters["value"],
            }
        )


def _named(codes: np.ndarray[tuple[int, ...], np.dtype[np.int32]], values: list[str]) -> Names:
    """A column of names without nulls: a missing name is empty."""
    if codes.size and codes.min() < 0:
        return Names(np.where(codes < 0, len(values), codes).astype(np.int32), [*values, ""])
    return Names(codes, values)
