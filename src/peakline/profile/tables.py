"""The tables: their columns, types, units and meaning. The single source for code, checks and docs.

Times are int64 picoseconds on one clock per host, zero at the profile's start. Sizes are int64
bytes. ``string`` columns are dictionary-encoded. ``?`` after a type marks a nullable column.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.profile.columns import Columns, Names

__all__ = ["TABLES", "ColumnDef", "TableDef", "check_columns", "empty_columns"]


@dataclass(frozen=True)
class ColumnDef:
    """One column: ``type`` is int64, int32, uint64, float64, bool or string."""

    name: str
    type: str
    nullable: bool
    doc: str


@dataclass(frozen=True)
class TableDef:
    """One table: its columns in order and what a row is."""

    name: str
    doc: str
    columns: tuple[ColumnDef, ...]

    def __getitem__(self, name: str) -> ColumnDef:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)


def _table(name: str, doc: str, columns: str) -> TableDef:
    """Parse ``name type doc`` lines; the type ends in ``?`` when nulls may occur."""
    parsed = []
    for line in columns.strip().splitlines():
        column, kind, text = line.split(maxsplit=2)
        parsed.append(ColumnDef(column, kind.rstrip("?"), kind.endswith("?"), text))
    return TableDef(name, doc, tuple(parsed))


TABLES: dict[str, TableDef] = {
    table.name: table
    for table in (
        _table(
            "planes",
            "One row per plane: a device, the host's threads, or a group of other data.",
            """
            plane_id int64 row number of the plane in the file
            name string name, such as /host:CPU or /device:GPU:0
            kind string host, device or other
            """,
        ),
        _table(
            "lines",
            "One row per line of a plane: a thread, a stream, or a derived line.",
            """
            line_id int64 row number of the line in the file
            plane_id int64 the plane it belongs to
            name string display name where given, else name
            start_ps int64 the line's own base time
            """,
        ),
        _table(
            "events",
            "One row per event of a line, in file order.",
            """
            event_id int64 row number of the event in the file
            line_id int64 the line it belongs to
            name string name of the event's metadata, empty when the file does not give one
            start_ps int64? start; null for an aggregated event, which has no time
            duration_ps int64 duration, 0 for an instant
            step_id int64? the step it belongs to; null when it belongs to none
            """,
        ),
        _table(
            "event_stats",
            "One row per stat of an event.",
            """
            event_id int64 the event it belongs to
            name string the stat's name
            value string? the value as text; null when the stat holds none
            """,
        ),
        _table(
            "steps",
            "One row per step (a group of events that belong together).",
            """
            step_id int64 the step's sequence number, not the user's number
            name string the step's name, such as train 170
            start_ps int64 start of the event that began it
            end_ps int64 end of the event that began it
            """,
        ),
        _table(
            "allocator_events",
            "One row per activity of an allocator (allocation, deallocation, ...), in time order.",
            """
            time_ps int64 when it happened
            sequence int64 its place in the file, to order equal times
            allocator string the allocator or memory it belongs to, empty when not named
            activity string allocation, deallocation, reservation or expansion
            address uint64? address of the buffer
            allocation_id int64? the allocator's number for the buffer
            requested_bytes int64? what was asked for
            allocated_bytes int64? what was handed out
            op string? the op that asked, null when not known
            region_type string? output, temp, persist, dynamic, ...
            data_type string? element type
            shape string? shape as the runtime spells it, such as [3, 3, 512, 512]
            step_id int64? the step it belongs to; null when it belongs to none
            in_use_bytes int64? bytes in use after it, as the allocator reported
            reserved_bytes int64? bytes reserved outside the heap (stack), as reported
            free_bytes int64? bytes still available, as reported
            fragmentation float64? 0 to 1, as reported; NaN when nothing is free
            peak_bytes int64? the allocator's lifetime peak so far, as reported
            """,
        ),
        _table(
            "memory_snapshots",
            "One row per MemoryProfileSnapshot, read by the rules of the memory_profile tool.",
            """
            memory_id string the allocator or memory, empty when not named
            time_offset_ps int64 offset on its own line, not on the common clock
            activity int32 MemoryActivity: 1 allocation, 2 deallocation
            stack_reserved_bytes int64 bytes reserved outside the heap
            heap_allocated_bytes int64 bytes in use
            free_memory_bytes int64 bytes available
            fragmentation float64 0 to 1
            peak_bytes_in_use int64 lifetime peak so far
            requested_bytes int64 what was asked for
            allocation_bytes int64 what was handed out
            address uint64 address of the buffer
            tf_op_name string the op, empty when not given
            step_id int64 group of the event, -1 when it has none
            region_type string region, empty when not given
            data_type string element type, empty when not given
            tensor_shape string shape, empty when not given
            """,
        ),
        _table(
            "module_runs",
            "One row per run of a compiled module on a device (the XLA Modules line).",
            """
            name string the module's name
            start_ps int64 offset on its own line
            end_ps int64 offset of its end on its own line
            plane_name string the device
            """,
        ),
        _table(
            "warnings",
            "Everything lost, skipped or guessed.",
            """
            kind string what happened, a fixed word per kind
            count int64 how often
            detail string one line for a person
            """,
        ),
    )
}


def empty_columns(table: str) -> Columns:
    """The named table without rows, every column of its declared type."""
    data = {
        column.name: Names(np.zeros(0, np.int32), [])
        if column.type == "string"
        else np.zeros(0, column.type)
        for column in TABLES[table].columns
    }
    return Columns(data)


def check_columns(table: str, columns: Columns) -> Columns:
    """Return ``columns`` if they are those of ``table`` (names, order, types); else TypeError."""
    definition = TABLES[table]
    if list(columns) != [column.name for column in definition.columns]:
        raise TypeError(f"{table}: columns {list(columns)}")
    for column in definition.columns:
        value = columns[column.name]
        kind = "string" if isinstance(value, Names) else value.dtype.name
        wide = {"int32": "int64", "bool": "bool"}.get(kind, kind)
        if kind != column.type and wide != column.type:
            raise TypeError(f"{table}.{column.name}: {kind}, not {column.type}")
        if not column.nullable and not columns.is_valid(column.name).all():
            raise TypeError(f"{table}.{column.name}: null")
    return columns
