"""SQL over the tables of one profile: a connection, and what it knows."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from peakline.deadline import check_deadline, holding, interrupting
from peakline.errors import CheckFailed
from peakline.tables.columns import Columns
from peakline.tables.definition import TableDef
from peakline.tables.query import (
    QueryNeeds,
    SqlParameters,
    connect,
    is_broken,
    lacks_memory,
    needs_of,
    reading,
    refusal,
    views_in,
    with_nulls,
)
from peakline.tables.sql_guard import Guard
from peakline.tables.sql_listing import plain_query
from peakline.tables.table_source import TableSource
from peakline.tables.tables import TABLES, arrow_of, whole_table

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


WARNINGS = "warnings"
"""The table of what was lost, which every profile has."""


class Database:
    """The database of ``profile``, opened by its first query.

    ``lock`` is held during a query, and taken before any lock of the profile: a long query keeps
    nobody from the tables.
    """

    def __init__(self, profile: TableSource) -> None:
        self._profile = profile
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._registered: dict[str, Columns] = {}
        self.lock = threading.RLock()

    def answer(self, query: str, parameters: SqlParameters = None) -> pa.Table:
        """As `Profile.sql` without a limit."""
        with holding(self.lock):
            self._profile.check_open()
            tables = {name: TABLES[name] for name in self._profile.tables}
            if self._connection is None:
                self._connection = connect()
            connection = self._connection
            try:
                return answered(
                    connection, query, parameters, tables,
                    lambda needs: self._register(connection, needs),
                )  # fmt: skip
            except CheckFailed as error:
                if isinstance(error.__cause__, Exception) and is_broken(error.__cause__):
                    self.disconnect()
                raise

    def disconnect(self) -> None:
        """Close the connection, if there is one; the next query opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._registered.clear()

    def _register(self, connection: duckdb.DuckDBPyConnection, needs: QueryNeeds) -> None:
        """Make every table of ``needs`` known to ``connection``, with the columns it needs."""
        for name, columns in needed(self._profile, needs):
            if self._registered.get(name) is not columns:
                table = with_nulls(TABLES[name], arrow_of(name, columns), columns.rows)
                connection.register(name, table)
                self._registered[name] = columns


def answered(
    connection: duckdb.DuckDBPyConnection,
    query: str,
    parameters: SqlParameters,
    tables: Mapping[str, TableDef],
    register: Callable[[QueryNeeds], object],
) -> pa.Table:
    """The answer to a local caller's query over ``tables``; ``register`` makes those that it needs
    known to ``connection``. Raises CheckFailed, and what ``register`` raises.
    """
    import duckdb

    try:
        query = plain_query(query, tables)
        needs = needs_of(connection, query, tables, Guard(connection, remote=False), parameters)
        register(needs)
        for view in views_in(query, needs):
            connection.execute(view.statement)
        with reading(connection), interrupting(connection.interrupt):
            return connection.sql(query, params=parameters).to_arrow_table()
    except duckdb.Error as error:
        text = "the query takes more memory than there is for it; request less"
        if not lacks_memory(str(error)):
            text = refusal(error, tables)
        raise CheckFailed(text) from error


def needed(profile: TableSource, needs: QueryNeeds) -> Iterator[tuple[str, Columns]]:
    """The tables of ``needs``, each read with the columns that are wanted."""
    for name in sorted(needs.keys() - {WARNINGS}):
        wanted = needs[name]
        columns = profile.columns(name, whole_table(name) if wanted is None else wanted)
        check_deadline()
        yield name, columns
    if WARNINGS in needs:
        # Last, and each time anew: reading the other tables may have added to it.
        yield WARNINGS, profile.columns(WARNINGS)
