"""What a query needs: which tables it names, and which of their columns its plan scans.

The database itself plans the query over empty tables of the same columns, and the
scans of that plan name what would be read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from peakline.deadline import interrupting
from peakline.errors import CheckFailed, UsageError
from peakline.safe_text import cut_middle
from peakline.tables.definition import TableDef
from peakline.tables.sql_guard import Guard
from peakline.tables.sql_views import View, missing_table, view, views_over
from peakline.tables.tables import columns_without_rows

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

MOST_COLUMNS = 4096
"""So many may the answer to a query with a limit of memory have: a PIVOT makes one of every name,
and JSON says all of them in every row."""
LONGEST_REASON = 1000
"""Characters of what is said of a query that is refused."""
_CHUNK_ROWS = 1 << 16
SqlValue = str | float | bool | None
"""What a parameter of a query may be; integers of up to 64 bits too."""
SqlParameters = Sequence[SqlValue] | Mapping[str, SqlValue] | None
"""The values for ``?`` or ``$1`` in order, or for ``$name`` by name; None: the query has none."""
QueryNeeds = dict[str, AbstractSet[str] | None]
"""The columns wanted of each table; None means all."""


def connect(memory_limit: int | None = None, spill: str = "") -> duckdb.DuckDBPyConnection:
    """An empty database that reaches nothing outside and takes ``memory_limit`` bytes; what does
    not fit into them goes to the folder ``spill``, where there is one.
    """
    import duckdb

    config = LOCKED_DOWN | {"temp_directory": spill}
    if memory_limit is not None:
        config |= {"memory_limit": f"{memory_limit}B", "pivot_limit": MOST_COLUMNS}
    return duckdb.connect(":memory:", config=config)


@contextmanager
def reading(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """What is executed in the block writes nothing."""
    connection.execute("begin transaction read only")
    try:
        yield
    finally:
        connection.execute("rollback")


def checked_parameters(parameters: SqlParameters) -> SqlParameters:
    """The parameters of a query as a list or a dictionary; raises UsageError for a value that no
    query takes.
    """
    if parameters is None:
        return None
    if isinstance(parameters, str) or not isinstance(parameters, Sequence | Mapping):
        raise UsageError("the parameters of a query are a list of values, or a dictionary of them")
    is_named = isinstance(parameters, Mapping)
    values = parameters.items() if isinstance(parameters, Mapping) else enumerate(parameters, 1)
    for name, value in values:
        kind = type(value).__name__
        if not isinstance(value, str | int | float | None):
            raise UsageError(f"parameter {name} of the query is {kind}; use text, a number or None")
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise UsageError(f"parameter {name} of the query has more than 64 bits")
        if is_named and not isinstance(name, str):
            raise UsageError(f"the name of parameter {name} of the query is no text")
    return dict(parameters) if isinstance(parameters, Mapping) else list(parameters)


def needs_of(
    connection: duckdb.DuckDBPyConnection,
    query: str,
    tables: Mapping[str, TableDef],
    guard: Guard,
    parameters: SqlParameters = None,
) -> QueryNeeds:
    """What ``query`` needs of the ``tables`` there are; a view that is none of them needs what its
    own query does.

    ``connection`` may not know any table of the profile yet. Raises CheckFailed for what no query
    may do, duckdb.Error when the query cannot be planned.
    """
    known = set(tables)
    try:
        query.encode()
    except UnicodeEncodeError as error:
        raise CheckFailed(f"the query is not valid Unicode at character {error.start}") from None
    with connection.cursor() as planner:
        kind = guard.check(planner, query, known)
        named = _named(planner, query, known)
        views = [view(name) for name in sorted(named - known)]
        named = (named & known).union(*(result.needs for result in views))
        if kind != "SELECT" or not named:
            return dict.fromkeys(named)
        for name in named:
            planner.register(name, columns_without_rows(tables[name]).arrow())
        for result in views:
            planner.execute(result.statement)
        with reading(planner), interrupting(planner.interrupt):
            explained = f"EXPLAIN (FORMAT JSON) {query}"
            rows = planner.execute(explained, parameters).fetchall()
    try:
        plan = json.loads(rows[0][1])
    except RecursionError:
        return dict.fromkeys(named)
    scanned = set(_scanned(plan))
    # The plan does not say which table a scan reads, so a name counts for every table that has it.
    return {
        name: frozenset(column.name for column in tables[name].columns if column.name in scanned)
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
    return (named & known).union(result.name for result in views_over(known, named))


def _scanned(plan: list[Any]) -> Iterator[str]:
    """Every word in what the scans of a plan say of themselves."""
    waiting = list(plan)
    while waiting:
        node = waiting.pop()
        if "SCAN" in node["name"]:
            yield from _identifiers(node["extra_info"])
        waiting.extend(node["children"])


def _identifiers(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield from re.findall(r"\w+", value)
    elif value:
        for item in value.values() if isinstance(value, dict) else value:
            yield from _identifiers(item)


def with_nulls(definition: TableDef, read: pa.Table, rows: int) -> pa.Table:
    """The table with all columns of its definition; those not in ``read`` are null.

    The nulls share one small piece of memory however many rows there are.
    """
    import pyarrow as pa

    arrays = {}
    schema = columns_without_rows(definition).arrow().schema
    for column in definition.columns:
        if column.name in read.column_names:
            arrays[column.name] = read[column.name]
            continue
        kind = schema.field(column.name).type
        piece = pa.nulls(min(rows, _CHUNK_ROWS), kind)
        pieces = [piece] * (rows // _CHUNK_ROWS) + [piece[: rows % _CHUNK_ROWS]]
        arrays[column.name] = pa.chunked_array(pieces, kind)
    return pa.table(arrays)


def refusal(error: Exception, tables: Iterable[str]) -> str:
    """DuckDB's message as one line, without its excerpt of the query."""
    text = str(error).split("\nLINE ")[0].split("\nDatabase is launched ")[0]
    if is_broken(error):
        # What it then says is for its developers, some of it about queries that came before.
        return f"the database failed at the query ({type(error).__name__}); request less"
    if "Pivot column limit" in text:
        return too_many_columns("more columns than")
    if "Table with name" in text:
        first = text.splitlines()[0].removeprefix("Catalog Error: ")
        return missing_table(first.split()[3], tables) or first
    # It repeats the texts of a query, and lists all functions of a name.
    return cut_middle(" ".join(text.split()), LONGEST_REASON)


def is_broken(error: Exception) -> bool:
    """Whether no query works any more in the database that raised ``error``."""
    import duckdb

    return isinstance(error, duckdb.InternalException | duckdb.FatalException)


def lacks_memory(text: str) -> bool:
    """Whether an error of the database says that it has no memory left."""
    return "Out of Memory" in text or "Memory allocation failure" in text


def too_many_columns(count: str) -> str:
    """What is said of an answer with more than `MOST_COLUMNS`; ``count`` says how many it has."""
    return f"the answer has {count} {MOST_COLUMNS}; pivot fewer values, or GROUP BY them"
