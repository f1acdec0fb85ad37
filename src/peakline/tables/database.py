"""SQL over the tables of one profile: a connection, and what it knows."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING

from peakline.deadline import check_deadline, holding, interrupting
from peakline.errors import CheckFailed
from peakline.process_memory import give_back_memory
from peakline.tables.columns import Columns
from peakline.tables.query import READING, QueryNeeds, arrow_with_nulls, connect, needs_of, views_in
from peakline.tables.sql_memory import bounded_table, watching_memory
from peakline.tables.sql_views import lacking_tables
from peakline.tables.tables import whole_table

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from peakline.tables.profile import Profile

WARNINGS = "warnings"
"""The table of what was lost, which every profile has."""
_LISTING = re.compile(r"\s*(show|describe|desc)(\s+(all\s+)?tables)?[\s;]*", re.IGNORECASE)


class Database:
    """The database of ``profile``, opened by its first query.

    ``lock`` is held during a query, and taken before any lock of the profile: a long query keeps
    nobody from the tables.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._memory_limit: int | None = None
        self._registered: dict[str, Columns] = {}
        self.lock = threading.RLock()

    def answer(self, query: str, memory_limit: int | None) -> pa.Table:
        """As `Profile.sql`."""
        import duckdb

        with holding(self.lock):
            self._profile.check_open()
            connection = self._connect(memory_limit)
            self._check_query(query)
            try:
                statements = connection.extract_statements(query)
                if len(statements) != 1 or statements[0].type.name not in READING:
                    raise CheckFailed("the query must be one statement that reads, such as SELECT")
                kind = statements[0].type.name
                needs = needs_of(query, kind, self._profile.tables, memory_limit)
                self._register(connection, needs)
                for view in views_in(query, needs):
                    connection.execute(view.statement)
                if memory_limit is not None:
                    return self._within_memory(connection, query, memory_limit)
                with interrupting(connection.interrupt):
                    return connection.sql(query).to_arrow_table()
            except duckdb.Error as error:
                raise CheckFailed(self._refusal(error)) from error

    def _within_memory(
        self, connection: duckdb.DuckDBPyConnection, query: str, limit: int
    ) -> pa.Table:
        try:
            with watching_memory(connection.interrupt, limit), interrupting(connection.interrupt):
                return bounded_table(connection.sql(query), limit)
        except Exception as error:
            # The database keeps what it took until it is closed.
            self.disconnect()
            give_back_memory()
            if isinstance(error, OSError):
                # So says Arrow what the database said to it.
                raise CheckFailed(self._refusal(error)) from error
            raise

    def _check_query(self, query: str) -> None:
        """Refuse what the database would answer wrongly or not as an error of its own."""
        try:
            query.encode()
        except UnicodeEncodeError as error:
            raise CheckFailed(
                f"the query is not valid Unicode at character {error.start}"
            ) from None
        if _LISTING.fullmatch(query):
            # The database knows only the tables that queries have named so far.
            raise CheckFailed(
                f"the tables are: {', '.join(self._profile.tables)}; DESCRIBE explains one"
            )

    def _connect(self, memory_limit: int | None) -> duckdb.DuckDBPyConnection:
        if memory_limit != self._memory_limit:
            self.disconnect()
        if self._connection is None:
            self._memory_limit = memory_limit
            self._connection = connect(memory_limit)
        return self._connection

    def disconnect(self) -> None:
        """Close the connection, if there is one; the next query opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._registered.clear()

    def _register(self, connection: duckdb.DuckDBPyConnection, needs: QueryNeeds) -> None:
        """Make every table of ``needs`` known to ``connection``, with the columns it needs."""
        for name in sorted(needs.keys() - {WARNINGS}):
            wanted = needs[name]
            columns = self._profile.columns(name, whole_table(name) if wanted is None else wanted)
            check_deadline()
            if self._registered.get(name) is not columns:
                connection.register(name, arrow_with_nulls(name, columns))
                self._registered[name] = columns
        if WARNINGS in needs:
            # Last, and each time anew: reading the other tables may have added to it.
            connection.register(WARNINGS, self._profile.table(WARNINGS))

    def _refusal(self, error: Exception) -> str:
        """DuckDB's message as one line, without its excerpt of the query."""
        text = str(error).split("\nLINE ")[0].split("\nDatabase is launched ")[0]
        if "Table with name" in text:
            first = text.splitlines()[0].removeprefix("Catalog Error: ")
            first = lacking_tables(first.split()[3], self._profile.tables) or first
            return f"{first} There is: {', '.join(self._profile.tables)}"
        return " ".join(text.split())
