"""The tables: their columns, types, units and meaning. The single source for code, checks and docs.

Times are int64 picoseconds on one clock per host, zero at the profile's start. Sizes are int64
bytes. ``string`` columns are dictionary-encoded. ``?`` after a type marks a nullable column.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from peakline.arrays import BoolArray
from peakline.tables import (
    graph_tables,
    memory_tables,
    op_tables,
    program_tables,
    time_tables,
    trace_tables,
)
from peakline.tables.columns import Column, Columns, Names
from peakline.tables.definition import TableDef, parse_tables

if TYPE_CHECKING:
    import pyarrow as pa

_WARNINGS = parse_tables("""
warnings: Everything lost, skipped or guessed.
    kind string what happened, a fixed word per kind
    count int64 how often
    detail string one line for a person
""")

TABLES: dict[str, TableDef] = {
    definition.name: definition
    for definition in (
        *trace_tables.DEFINITIONS,
        *memory_tables.DEFINITIONS,
        *op_tables.DEFINITIONS,
        *graph_tables.DEFINITIONS,
        *program_tables.DEFINITIONS,
        *time_tables.DEFINITIONS,
        *_WARNINGS,
    )
}


def whole_table(name: str) -> frozenset[str]:
    """The names of all columns of the named table."""
    return frozenset(column.name for column in TABLES[name].columns)


def empty_columns(name: str) -> Columns:
    """The named table without rows, every column of its declared type."""
    return columns_without_rows(TABLES[name])


def columns_without_rows(definition: TableDef) -> Columns:
    """A table without rows, every column of its declared type."""
    data = {
        column.name: Names(np.zeros(0, np.int32), [])
        if column.type == "string"
        else np.zeros(0, column.type)
        for column in definition.columns
    }
    return Columns(data)


def columns_of_rows(name: str, rows: Iterable[Iterable[Any]]) -> Columns:
    """The named table of ``rows``, each with a value per column in its order; None is null."""
    return columns_of_rows_in(TABLES[name], rows)


def columns_of_rows_in(definition: TableDef, rows: Iterable[Iterable[Any]]) -> Columns:
    """As `columns_of_rows`, for the table of a ``definition``."""
    columns = definition.columns
    data: dict[str, Column] = {}
    valid: dict[str, BoolArray] = {}
    lists = [*zip(*rows, strict=True)] or [()] * len(columns)
    for column, values in zip(columns, lists, strict=True):
        if column.type == "string":
            data[column.name] = Names.encode(values)
        else:
            data[column.name] = np.array([value or 0 for value in values], column.type)
            if column.nullable:
                valid[column.name] = np.array([value is not None for value in values], np.bool_)
    return Columns(data, valid)


def arrow_of(name: str, columns: Columns) -> pa.Table:
    """``columns`` of the named table as Arrow, each of its declared type: readers may have them in
    fewer bits.
    """
    import pyarrow as pa

    declared = empty_columns(name).arrow().schema
    return columns.arrow().cast(pa.schema([declared.field(column) for column in columns]))


def check_columns(name: str, columns: Columns, wanted: Iterable[str] | None = None) -> Columns:
    """``columns`` as the table's definition says, in its order; else TypeError.

    ``wanted`` are the columns that must be there (default: all); others that came along
    stay. A nullable column that the reader left out is filled with nulls.
    """
    definition = TABLES[name]
    known = [column.name for column in definition.columns]
    if strange := [column for column in columns if column not in known]:
        raise TypeError(f"{name}: columns {strange}")
    needed = set(known if wanted is None else wanted)
    absent: BoolArray | None = None
    data: dict[str, Column] = {}
    valid = dict(columns.valid)
    for column in definition.columns:
        if column.name not in columns:
            if column.name not in needed:
                continue
            if not column.nullable:
                raise TypeError(f"{name}: no column {column.name}")
            if column.type == "string":
                data[column.name] = Names.constant(None, columns.rows)
            else:
                # All such columns share their zeros: a table may have a dozen of them.
                if absent is None:
                    absent = np.zeros(8 * columns.rows, np.bool_)
                size = np.dtype(column.type).itemsize
                data[column.name] = absent[: size * columns.rows].view(column.type)
                valid[column.name] = absent[: columns.rows]
            continue
        value = data[column.name] = columns[column.name]
        kind = "string" if isinstance(value, Names) else value.dtype.name
        wide = {"int32": "int64"}.get(kind, kind)
        if kind != column.type and wide != column.type:
            raise TypeError(f"{name}.{column.name}: {kind}, not {column.type}")
        if not column.nullable and not columns.is_valid(column.name).all():
            raise TypeError(f"{name}.{column.name}: null")
    return Columns(data, valid)
