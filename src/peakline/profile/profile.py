"""One open profile: its tables on demand, SQL over them, and what was lost on the way."""

from __future__ import annotations

import re
import threading
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from peakline.errors import CheckFailed, StrictError, UsageError
from peakline.profile.columns import Columns, Names
from peakline.profile.reader import Reader, Warnings
from peakline.profile.tables import check_columns

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

__all__ = ["Profile", "ProfileWarning"]

_WARNINGS = "warnings"

# What a connection may never do: a query sees the profile and nothing else. Spilling to disk is
# off too, since nothing may be written beside the profile.
_LOCKED_DOWN: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "temp_directory": "",
    "lock_configuration": "true",
}

# Statements that only read. MULTI is how DuckDB 2 parses a PIVOT that has to find its columns.
_READING = frozenset({"SELECT", "EXPLAIN", "MULTI"})

_LISTING = re.compile(r"\s*(show|describe|desc)(\s+(all\s+)?tables)?[\s;]*", re.IGNORECASE)


class ProfileWarning(NamedTuple):
    """Something lost, skipped or guessed: a fixed word, how often, one line for a person."""

    kind: str
    # Hides tuple.count, which nobody needs on a record.
    count: int  # type: ignore[assignment]
    detail: str


class Profile:
    """The profile of one host, read lazily through a `Reader`.

    Tables are read at most once and shared: do not write into their arrays. Methods may be
    called from several threads. With ``strict``, a read that loses anything raises
    `StrictError`.
    """

    def __init__(self, reader: Reader, *, strict: bool = False) -> None:
        self._reader = reader
        self._strict = strict
        self._warnings = Warnings()
        self._columns: dict[str, Columns] = {}
        self._arrow: dict[str, pa.Table] = {}
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._registered: set[str] = set()
        self._duration_ps: int | None = None
        self._closed = False
        self._lock = threading.RLock()

    @property
    def path(self) -> str:
        """What was opened, as the caller named it."""
        return self._reader.path

    @property
    def format(self) -> str:
        """Short name of the file's format, such as ``xplane``."""
        return self._reader.format

    @property
    def host(self) -> str:
        """The host the profile came from, empty when the file does not say."""
        return self._reader.host

    @property
    def duration_ps(self) -> int:
        """Picoseconds from the profile's start to the end of its last event."""
        with self._lock:
            if self._duration_ps is None:
                self._check_open()
                self._duration_ps = self._reader.duration_ps()
            return self._duration_ps

    @property
    def tables(self) -> list[str]:
        """Names of the tables this profile has, sorted."""
        return sorted(self._reader.tables | {_WARNINGS})

    @property
    def warnings(self) -> list[ProfileWarning]:
        """What the reads so far lost, skipped or guessed."""
        return [ProfileWarning(*entry) for entry in self._warnings.entries()]

    def warn(self, kind: str, detail: str, count: int = 1) -> None:
        """Count ``count`` more of a warning; raises StrictError when opened with ``strict``."""
        self._warnings.add(kind, detail, count)
        if self._strict:
            self.strict()

    def strict(self) -> None:
        """Raise StrictError naming the warnings, if there are any."""
        if self._warnings.entries():
            found = "; ".join(f"{w.kind} ({w.count}): {w.detail}" for w in self.warnings)
            raise StrictError(f"{self.path}: {found}")

    def columns(self, name: str) -> Columns:
        """The named table as NumPy columns.

        Raises UsageError for a table this profile does not have, InputError when the file
        cannot be read.
        """
        with self._lock:
            self._check_open()
            if name == _WARNINGS:
                return self._warning_columns()
            if name not in self._reader.tables:
                raise UsageError(self._no_table(name))
            if name not in self._columns:
                self._columns[name] = check_columns(name, self._reader.read(name, self._warnings))
            if self._strict:
                self.strict()
            return self._columns[name]

    def table(self, name: str) -> pa.Table:
        """The named table as Arrow; raises as `columns` does."""
        with self._lock:
            if name == _WARNINGS:
                return self.columns(name).arrow()
            if name not in self._arrow:
                self._arrow[name] = self.columns(name).arrow()
            return self._arrow[name]

    def sql(self, query: str) -> pa.Table:
        """The answer to one reading SQL statement (DuckDB's dialect) over the profile's tables.

        Only the tables that the query names are read. The query reaches no file, no network
        and no Python variable. Raises CheckFailed, with the reason in one line, for a query
        that is wrong or not allowed.
        """
        import duckdb

        with self._lock:
            self._check_open()
            connection = self._connect()
            self._check_query(query)
            try:
                statements = connection.extract_statements(query)
                if len(statements) != 1 or statements[0].type.name not in _READING:
                    raise CheckFailed("the query must be one statement that reads, such as SELECT")
                self._register(connection, query)
                return connection.sql(query).to_arrow_table()
            except duckdb.Error as error:
                raise CheckFailed(self._refusal(error)) from error

    def close(self) -> None:
        """Release the file and the database; the profile cannot be used afterwards."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            self._columns.clear()
            self._arrow.clear()
            self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Profile {self.path} ({self.format})>"

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError(f"{self.path}: the profile is closed")

    def _no_table(self, name: str) -> str:
        return f"{self.path}: no table {name} in this profile; it has {', '.join(self.tables)}"

    def _warning_columns(self) -> Columns:
        entries = self._warnings.entries()
        return Columns(
            {
                "kind": Names.encode([kind for kind, _, _ in entries]),
                "count": np.array([count for _, count, _ in entries], np.int64),
                "detail": Names.encode([detail for _, _, detail in entries]),
            }
        )

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
            raise CheckFailed(f"the tables are: {', '.join(self.tables)}; DESCRIBE explains one")

    def _connect(self) -> duckdb.DuckDBPyConnection:
        if self._connection is None:
            import duckdb

            self._connection = duckdb.connect(":memory:", config=_LOCKED_DOWN)
        return self._connection

    def _register(self, connection: duckdb.DuckDBPyConnection, query: str) -> None:
        """Make every table that ``query`` names known to ``connection``."""
        named = self._named_tables(connection, query)
        for name in sorted(named - {_WARNINGS} - self._registered):
            connection.register(name, self.table(name))
            self._registered.add(name)
        if _WARNINGS in named:
            # Last, and each time anew: reading the other tables may have added to it.
            connection.register(_WARNINGS, self.table(_WARNINGS))

    def _named_tables(self, connection: duckdb.DuckDBPyConnection, query: str) -> set[str]:
        import duckdb

        words = {word.lower() for word in re.findall(r"\w+", query)}
        candidates = words.intersection(self.tables)
        try:
            # Leaves out what is registered already, so the words decide about warnings.
            named = {name.lower() for name in connection.get_table_names(query)}
        except duckdb.Error:
            # Some statements cannot be asked before their tables exist (PIVOT, for one).
            return candidates
        return candidates & (named | {_WARNINGS})

    def _refusal(self, error: duckdb.Error) -> str:
        """DuckDB's message as one line, without its excerpt of the query."""
        text = str(error).split("\nLINE ")[0]
        if "Table with name" in text:
            first = text.splitlines()[0].removeprefix("Catalog Error: ")
            return f"{first} There is: {', '.join(self.tables)}"
        return " ".join(text.split())
