"""One open profile: its tables on demand, SQL over them, and what was lost on the way."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from peakline.errors import CheckFailed, StrictError, UsageError
from peakline.profile.columns import Columns, Names
from peakline.profile.query import LOCKED_DOWN, READING, QueryNeeds, arrow_with_nulls, needs_of
from peakline.profile.reader import Reader, Warnings
from peakline.profile.tables import TABLES, check_columns

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

__all__ = ["Derivation", "Profile", "ProfileWarning"]

_WARNINGS = "warnings"

_LISTING = re.compile(r"\s*(show|describe|desc)(\s+(all\s+)?tables)?[\s;]*", re.IGNORECASE)


class ProfileWarning(NamedTuple):
    """Something lost, skipped or guessed: a fixed word, how often, one line for a person."""

    kind: str
    # Hides tuple.count, which nobody needs on a record.
    count: int  # type: ignore[assignment]
    detail: str


@dataclass(frozen=True)
class Derivation:
    """A table made from others where the format does not fill it itself.

    It exists when the profile has all tables of ``needs``, except for the formats ``but_of``;
    ``make`` reads them from the profile.
    """

    needs: tuple[str, ...]
    make: Callable[[Profile], Columns]
    but_of: frozenset[str] = frozenset()


class Profile:
    """The profile of one host, read lazily through a `Reader`.

    Tables are read at most once and shared: do not write into their arrays. Methods may be
    called from several threads. With ``strict``, a read that loses anything raises
    `StrictError`.
    """

    def __init__(
        self,
        reader: Reader,
        *,
        strict: bool = False,
        derived: Mapping[str, Derivation] | None = None,
    ) -> None:
        self._reader = reader
        self._derived: dict[str, Derivation] = {}
        for _ in derived or ():
            # A table may be derived from one that is derived itself.
            there = reader.tables | self._derived.keys()
            for name, derivation in (derived or {}).items():
                fits = there.issuperset(derivation.needs) and reader.format not in derivation.but_of
                if fits and name not in there:
                    self._derived[name] = derivation
        self._strict = strict
        self._warnings = Warnings()
        self._columns: dict[str, tuple[Columns, AbstractSet[str] | None]] = {}
        """What has been read of each table, and which columns (None: all)."""
        self._arrow: dict[str, pa.Table] = {}
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._memory_limit: int | None = None
        self._registered: dict[str, Columns] = {}
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
        return sorted({*self._reader.tables, *self._derived, _WARNINGS})

    def is_derived(self, name: str) -> bool:
        """Whether the named table is made from others because the format does not fill it."""
        return name in self._derived

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

    def columns(self, name: str, wanted: AbstractSet[str] | None = None) -> Columns:
        """The named table as NumPy columns: at least the ``wanted`` ones, None means all.

        Raises UsageError for a table this profile does not have, InputError when the file
        cannot be read.
        """
        with self._lock:
            self._check_open()
            if name == _WARNINGS:
                return self._warning_columns()
            columns, have = self._columns.get(name, (None, frozenset()))
            if columns is None or not _covers(have, wanted):
                needed = None if wanted is None or have is None else have | wanted
                columns = self._read(name, needed)
            if self._strict:
                self.strict()
            return columns

    def _read(self, name: str, needed: AbstractSet[str] | None) -> Columns:
        if name in self._derived:
            needed = None
            found = self._derived[name].make(self)
        elif name in self._reader.tables:
            if needed is not None:
                # Readers leave out what they never fill; one column that is always there tells
                # how many rows there are.
                needed = needed | _always_there(name)
            found = self._reader.read(name, self._warnings, needed)
        else:
            raise UsageError(self._no_table(name))
        columns = check_columns(name, found, needed)
        # A reader that gave all of them need not be asked again.
        whole = len(columns) == len(TABLES[name].columns)
        self._columns[name] = (columns, None if whole else needed)
        return columns

    def table(self, name: str) -> pa.Table:
        """The named table as Arrow; raises as `columns` does."""
        with self._lock:
            if name == _WARNINGS:
                return self.columns(name).arrow()
            if name not in self._arrow:
                self._arrow[name] = self.columns(name).arrow()
            return self._arrow[name]

    def sql(self, query: str, *, memory_limit_bytes: int | None = None) -> pa.Table:
        """The answer to one reading SQL statement (DuckDB's dialect) over the profile's tables.

        Only the tables and columns that the query needs are read. The query reaches no file, no
        network and no Python variable, and may take ``memory_limit_bytes`` (default: what the
        database allows itself). Raises CheckFailed, with the reason in one line, for a query
        that is wrong or not allowed.
        """
        import duckdb

        with self._lock:
            self._check_open()
            connection = self._connect(memory_limit_bytes)
            self._check_query(query)
            try:
                statements = connection.extract_statements(query)
                if len(statements) != 1 or statements[0].type.name not in READING:
                    raise CheckFailed("the query must be one statement that reads, such as SELECT")
                self._register(connection, needs_of(query, statements[0].type.name, self.tables))
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

    def _connect(self, memory_limit: int | None) -> duckdb.DuckDBPyConnection:
        import duckdb

        if self._connection is not None and memory_limit != self._memory_limit:
            self._connection.close()
            self._connection = None
            self._registered.clear()
        if self._connection is None:
            config = dict(LOCKED_DOWN)
            if memory_limit is not None:
                config["memory_limit"] = f"{memory_limit}B"
            self._memory_limit = memory_limit
            self._connection = duckdb.connect(":memory:", config=config)
        return self._connection

    def _register(self, connection: duckdb.DuckDBPyConnection, needs: QueryNeeds) -> None:
        """Make every table of ``needs`` known to ``connection``, with the columns it needs."""
        for name in sorted(needs.keys() - {_WARNINGS}):
            columns = self.columns(name, needs[name])
            if self._registered.get(name) is not columns:
                connection.register(name, arrow_with_nulls(name, columns))
                self._registered[name] = columns
        if _WARNINGS in needs:
            # Last, and each time anew: reading the other tables may have added to it.
            connection.register(_WARNINGS, self.table(_WARNINGS))

    def _refusal(self, error: duckdb.Error) -> str:
        """DuckDB's message as one line, without its excerpt of the query."""
        text = str(error).split("\nLINE ")[0]
        if "Table with name" in text:
            first = text.splitlines()[0].removeprefix("Catalog Error: ")
            return f"{first} There is: {', '.join(self.tables)}"
        return " ".join(text.split())


def _covers(have: AbstractSet[str] | None, wanted: AbstractSet[str] | None) -> bool:
    return have is None or (wanted is not None and wanted <= have)


def _always_there(name: str) -> AbstractSet[str]:
    """One column of the table that may not be null."""
    return {next(column.name for column in TABLES[name].columns if not column.nullable)}
