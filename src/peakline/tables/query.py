"""What a query needs: which tables it names, and which of their columns its plan scans.

The database itself plans the query over empty tables of the same columns, and the
scans of that plan name what would be read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

from peakline.deadline import interrupting
from peakline.tables.columns import Columns
from peakline.tables.sql_guard import bound_generators, largest_cell, refuse_calls
from peakline.tables.sql_views import View, view, views_over
from peakline.tables.tables import TABLES, arrow_of, empty_columns

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

LOCKED_DOWN: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "temp_directory": "",
    "lock_configuration": "true",
}
"""What a connection may never do: a query sees the profile and nothing else. Spilling to disk is
off too, since nothing may be written beside the profile."""

READING = frozenset({"SELECT", "EXPLAIN", "MULTI"})
"""Statements that only read. MULTI is how DuckDB parses a PIVOT that has to find its columns."""

_CHUNK_ROWS = 1 << 16
QueryNeeds = dict[str, AbstractSet[str] | None]
"""The columns wanted of each table; None means all."""


def connect(memory_limit: int | None) -> duckdb.DuckDBPyConnection:
    """An empty database that reaches nothing outside and takes ``memory_limit`` bytes."""
    import duckdb

    config = dict(LOCKED_DOWN)
    if memory_limit is not None:
        config["memory_limit"] = f"{memory_limit}B"
    connection = duckdb.connect(":memory:", config=config)
    if memory_limit is not None:
        bound_generators(connection, largest_cell(memory_limit))
    return connection


def needs_of(
    query: str, kind: str, tables: Iterable[str], memory_limit: int | None = None
) -> QueryNeeds:
    """What ``query`` (a statement of type ``kind``) needs of the ``tables`` there are.

    A view needs what its own query does. Planning computes what is constant, so it has the
    ``memory_limit`` too. Raises CheckFailed for what no query may call, duckdb.Error when the query
    cannot be planned.
    """
    known = set(tables)
    with connect(memory_limit) as planner:
        refuse_calls(planner, query, bounded=memory_limit is not None)
        named = _named(planner, query, known)
        views = [view(name) for name in sorted(named - known)]
        named = (named & known).union(*(found.needs for found in views))
        if kind != "SELECT" or not named:
            return dict.fromkeys(named)
        for name in named:
            planner.register(name, empty_columns(name).arrow())
        for found in views:
            planner.execute(found.statement)
        with interrupting(planner.interrupt):
            rows = planner.execute(f"EXPLAIN (FORMAT JSON) {query}").fetchall()
    scanned = set(_scanned(json.loads(rows[0][1])))
    # The plan does not say which table a scan reads, so a name counts for every table that has it.
    return {
        name: frozenset(column.name for column in TABLES[name].columns if column.name in scanned)
        for name in named
    }


def views_in(query: str, tables: Iterable[str]) -> list[View]:
    """The views that ``query`` may name, by its words, of those that stand on ``tables`` alone."""
    return views_over(tables, {word.lower() for word in re.findall(r"\w+", query)})


def _named(planner: duckdb.DuckDBPyConnection, query: str, known: AbstractSet[str]) -> set[str]:
    """The tables of ``known``, and the views over those, that ``query`` names."""
    import duckdb

    try:
        named = {name.lower() for name in planner.get_table_names(query)}
    except duckdb.Error:
        # Some statements cannot be planned before their tables exist (PIVOT, for one).
        named = {word.lower() for word in re.findall(r"\w+", query)}
    return (named & known).union(found.name for found in views_over(known, named))


def _scanned(plan: Any) -> Iterator[str]:
    """Every word in what the scans of a plan say of themselves."""
    if isinstance(plan, list):
        for node in plan:
            yield from _scanned(node)
        return
    if "SCAN" in plan["name"]:
        yield from _identifiers(plan["extra_info"])
    yield from _scanned(plan["children"])


def _identifiers(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from re.findall(r"\w+", value)
    elif value:
        for item in value.values() if isinstance(value, dict) else value:
            yield from _identifiers(item)


def arrow_with_nulls(name: str, columns: Columns) -> pa.Table:
    """The Arrow table with all columns of the definition; those not read are null.

    The nulls share one small piece of memory however many rows there are.
    """
    import pyarrow as pa

    whole, rows = arrow_of(name, columns), columns.rows
    arrays = {}
    schema = empty_columns(name).arrow().schema
    for column in TABLES[name].columns:
        if column.name in columns:
            arrays[column.name] = whole[column.name]
            continue
        kind = schema.field(column.name).type
        piece = pa.nulls(min(rows, _CHUNK_ROWS), kind)
        pieces = [piece] * (rows // _CHUNK_ROWS) + [piece[: rows % _CHUNK_ROWS]]
        arrays[column.name] = pa.chunked_array(pieces, kind)
    return pa.table(arrays)
