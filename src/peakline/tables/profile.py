"""One open profile: its tables on demand, SQL over them, and what was lost on the way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

from peakline.deadline import holding
from peakline.errors import StrictError, UsageError
from peakline.process_memory import give_back_memory
from peakline.progress import stage
from peakline.shown import Brief, line_of, named
from peakline.tables.columns import Columns
from peakline.tables.database import WARNINGS, Database
from peakline.tables.query import SqlParameters, checked_parameters
from peakline.tables.reader import Reader, Warnings
from peakline.tables.reader_facts import ReaderFacts
from peakline.tables.retained import retained_bytes
from peakline.tables.sql_views import views_over
from peakline.tables.tables import (
    TABLES,
    arrow_of,
    check_columns,
    columns_of_rows,
    empty_columns,
    whole_table,
)
from peakline.text import counted

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class ColumnDerivation:
    """Columns made from others of their table.

    ``made_of`` gives for each of them the columns of the table that it needs, so that one read
    brings all; ``make`` returns those of the given names, one value per row of the table and in its
    order. It may read the table of the profile, not the columns it makes.
    """

    made_of: Mapping[str, frozenset[str]]
    make: Callable[[Profile, AbstractSet[str]], Columns]

    def stored(self, wanted: AbstractSet[str]) -> frozenset[str]:
        """The columns that the format has to give for ``wanted``."""
        made = wanted & self.made_of.keys()
        return frozenset(wanted - made).union(*(self.made_of[name] for name in made))


def joined(columns: Columns, more: Columns) -> Columns:
    """All columns of both; the rows are the same."""
    return Columns({**columns.data, **more.data}, {**columns.valid, **more.valid})


def without(columns: Columns, names: AbstractSet[str]) -> Columns:
    """``columns`` but for ``names``."""
    data = {name: column for name, column in columns.items() if name not in names}
    return Columns(data, {name: mask for name, mask in columns.valid.items() if name in data})


Made = TypeVar("Made")

_question: ContextVar[tuple[Profile, Warnings] | None] = ContextVar("question", default=None)


class ProfileWarning(NamedTuple):
    """Something lost, skipped or guessed: a fixed word, how often, one line for a person."""

    kind: str
    # Hides tuple.count, which nobody needs on a record.
    count: int  # type: ignore[assignment]
    detail: str

    def __repr__(self) -> str:
        return line_of("ProfileWarning", lambda: f"{self.kind} ({self.count:,}), {self.detail}")


@dataclass(frozen=True)
class Derivation:
    """A table made from others where the format does not fill it itself.

    It exists when the profile has all tables of ``needs`` and one of ``one_of``, if that is not
    empty; ``make`` reads them from the profile. ``is_row_by_row``: it has a row for each of the one
    that it needs.
    """

    needs: tuple[str, ...]
    make: Callable[[Profile], Columns]
    one_of: tuple[str, ...] = ()
    is_row_by_row: bool = False


class _Result:
    """What a function made of a profile, or will: one thread makes it, others wait."""

    __retained__ = "value"

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.is_made = False
        self.value: Any = None


class Profile(Brief, ReaderFacts):
    """The profile of one host, read lazily through a `Reader`.

    Tables are read at most once and shared: do not write into their arrays. Methods may be
    called from several threads. With ``strict``, a read that loses anything raises
    `StrictError`. Reading ends at the deadline (`peakline.deadline`) with DeadlineError or
    CancelledError; the profile stays as it was, and the same question may be put again.
    An ``is_alone`` profile is answered for from its own file, whatever lies beside it.
    """

    __retained__ = "_columns _arrow _results _reader"

    def __init__(
        self,
        reader: Reader,
        *,
        strict: bool = False,
        derived: Mapping[str, Derivation | ColumnDerivation] | None = None,
        is_alone: bool = False,
    ) -> None:
        self._reader = reader
        self.is_alone = is_alone
        self._derived: dict[str, Derivation] = {}
        self._made: dict[str, ColumnDerivation] = {}
        for _ in derived or ():
            # A table may be derived from one that is derived itself.
            there = reader.tables | self._derived.keys()
            for name, derivation in (derived or {}).items():
                if isinstance(derivation, ColumnDerivation):
                    self._made[name] = derivation
                    continue
                fits = there.issuperset(derivation.needs)
                fits = fits and (not derivation.one_of or not there.isdisjoint(derivation.one_of))
                if fits and name not in there | reader.never_derived:
                    self._derived[name] = derivation
        self._strict = strict
        self._warnings = Warnings()
        self._columns: dict[str, tuple[Columns, AbstractSet[str] | None]] = {}
        """What has been read of each table, and which columns (None: all)."""
        self._arrow: dict[str, pa.Table] = {}
        self._results: dict[Hashable, _Result] = {}
        self._making = {name: threading.RLock() for name in (*self._derived, *self._made)}
        """Held while a table, or columns of it, are made of others, and taken before ``_lock``."""
        self._database = Database(self)
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
        """Picoseconds from the profile's start to the end of its last event, and as many as the
        profiler ran, where the file says when it was started and stopped.
        """
        with holding(self._lock):
            if self._duration_ps is None:
                self.check_open()
                self._duration_ps = self._reader.duration_ps()
            return self._duration_ps

    @property
    def zero_ps(self) -> int:
        """The time on the file's own clock, in picoseconds, at which the profile's clock is 0."""
        with holding(self._lock):
            self.check_open()
            return int(self._reader.zero_ps)

    @property
    def tables(self) -> list[str]:
        """Names of the tables this profile has, sorted."""
        return sorted({*self._reader.tables, *self._derived, WARNINGS})

    @property
    def views(self) -> list[str]:
        """Names of the views that `sql` takes beside the tables, sorted."""
        return [view.name for view in views_over(self.tables)]

    def is_derived(self, name: str) -> bool:
        """Whether the named table is made from others because the format does not fill it."""
        return name in self._derived

    def with_runtime_steps(self) -> Profile:
        """The profile with the steps into which the runtime's own profiler groups events, as XProf
        shows them; this one where those are the same. Close only this one.

        Raises InputError when the profile cannot be read.
        """
        return self.made_once("runtime_steps", self._with_runtime_steps)

    def _with_runtime_steps(self) -> Profile:
        reader = self._reader.runtime(self)
        if reader is None:
            return self
        other = Profile(reader, is_alone=self.is_alone)
        other._derived, other._made, other._lock = self._derived, self._made, self._lock
        other._making = {name: threading.RLock() for name in self._making}
        return other

    @property
    def warnings(self) -> list[ProfileWarning]:
        """What the reads so far lost, skipped or guessed."""
        return [ProfileWarning(*entry) for entry in self._warnings.entries()]

    @property
    def concerning(self) -> list[ProfileWarning]:
        """The `warnings`, and those of the `question` that is being answered, if one is."""
        question = _question.get()
        own = question[1].entries() if question and question[0] is self else ()
        return [*self.warnings, *(ProfileWarning(*entry) for entry in own)]

    @contextmanager
    def question(self) -> Iterator[Callable[[], list[ProfileWarning]]]:
        """One of several questions to a shared profile, answered within the block.

        What it gives lists the warnings that concern this question: those of all reads so far
        and what `warn` counted in the block, which nobody else sees.
        """
        own = Warnings()
        token = _question.set((self, own))
        try:
            yield lambda: [*self.warnings, *(ProfileWarning(*entry) for entry in own.entries())]
        finally:
            _question.reset(token)

    def warn(self, kind: str, detail: str, count: int = 1, *, once: bool = False) -> None:
        """Count ``count`` more of a warning; raises StrictError when opened with ``strict``.

        With ``once`` the same kind and detail count only the first time, in the profile and in each
        `question` to it: so may an answer report what it found however often it is made.
        """
        question = _question.get()
        warnings = question[1] if question and question[0] is self else self._warnings
        (warnings.add_once if once else warnings.add)(kind, detail, count)
        if self._strict:
            self.strict()

    def strict(self) -> None:
        """Raise StrictError naming the warnings, if there are any."""
        if self._warnings.entries():
            result = "; ".join(f"{w.kind} ({w.count}): {w.detail}" for w in self.warnings)
            raise StrictError(f"{self.path}: {result}")

    def columns(self, name: str, wanted: AbstractSet[str] | None = None) -> Columns:
        """The named table as NumPy columns: at least the ``wanted`` ones.

        None means all but those that are made only when they are named (`ColumnDerivation`).
        Raises UsageError for a table this profile does not have, InputError when the file cannot
        be read.

            >>> profile.columns("steps").array("step_id")[:3]
            array([0, 1, 2]...)
        """
        columns = self._derive(name) if name in self._derived else self._stored(name, wanted)
        if name in self._made and wanted is not None:
            columns = self._with_made(name, self._made[name], wanted, columns)
        if self._strict:
            self.strict()
        return columns

    def columns_or_empty(self, name: str) -> Columns:
        """As `columns`; without rows for a table that this profile does not have."""
        return self.columns(name) if name in self.tables else empty_columns(name)

    def _stored(self, name: str, wanted: AbstractSet[str] | None) -> Columns:
        """A table that the file fills."""
        with holding(self._lock):
            self.check_open()
            if name == WARNINGS:
                return columns_of_rows(name, self._warnings.entries())
            made = self._made.get(name)
            stored = wanted if made is None or wanted is None else made.stored(wanted)
            columns, have = self._columns.get(name, (None, frozenset()))
            if columns is None or not _covers(have, stored):
                needed = None if stored is None or have is None else have | stored
                columns = self._read(name, needed)
            return columns

    def _derive(self, name: str) -> Columns:
        """A table that is made of others; nobody else waits for it but who wants the same."""
        with holding(self._making[name]):
            if name not in self._columns:
                self.check_open()
                result = self._derived[name].make(self)
                self._columns[name] = check_columns(name, result, whole_table(name)), None
            return self._columns[name][0]

    def has_rows(self, name: str) -> bool:
        """Whether the named table is there and has a row; reads as little as possible for it.

        Raises InputError when the file cannot be read.
        """
        with holding(self._lock):
            self.check_open()
            if name == WARNINGS:
                return bool(len(self._warnings))
            if name in self._columns:
                return self._columns[name][0].rows > 0
            if name in self._reader.tables:
                result = self._reader.has_rows(name)
                if result is not None:
                    return result
        if name in self._derived:
            # What is made of tables that are all empty is empty.
            made_of = (*self._derived[name].needs, *self._derived[name].one_of)
            if not any(self.has_rows(table) for table in made_of if table in self.tables):
                return False
            if self._derived[name].is_row_by_row:
                return True
        elif name not in self._reader.tables:
            return False
        return self.columns(name, frozenset()).rows > 0

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the profile keeps: its tables, and what its reader holds.

        A large file that is mapped from the disk does not count.
        """
        return retained_bytes(self)

    @property
    def held(self) -> int:
        """A number that grows with every column, table and answer that is held: cheap to read,
        where `nbytes` looks at all of them.
        """
        return sum(map(len, [*self._columns.values()])) + len(self._arrow) + len(self._results)

    def _read(self, name: str, needed: AbstractSet[str] | None) -> Columns:
        if name not in self._reader.tables:
            listed = ", ".join(self.tables)
            raise UsageError(f"{self.path}: no table {name} in this profile; it has {listed}")
        if needed is not None:
            # Readers leave out what they never fill; one column that is always there says how
            # many rows there are.
            sure = [column.name for column in TABLES[name].columns if not column.nullable]
            needed = needed if needed & set(sure) else needed | {sure[0]}
        try:
            with stage(f"reading {name}", getattr(self._reader, "stored_bytes", 0)):
                result = self._reader.read(name, self._warnings, needed)
        finally:
            # Of a file that was written meanwhile, whatever else was found is void.
            self._reader.check()
        stored = whole_table(name)
        if name in self._made:
            made = self._made[name].made_of.keys()
            stored, result = stored - made, without(result, made)
        columns = check_columns(name, result, stored if needed is None else needed)
        # A reader that gave all of them need not be called again.
        have = None if len(columns) == len(stored) else needed
        if name in self._made and name in self._columns:
            columns = joined(columns, without(self._columns[name][0], stored))
        self._columns[name] = (columns, have)
        return columns

    def _with_made(
        self, name: str, made: ColumnDerivation, wanted: AbstractSet[str], stored: Columns
    ) -> Columns:
        """``stored`` with those of the ``wanted`` columns that are made of others."""
        if not wanted & made.made_of.keys():
            return stored
        with holding(self._making[name]):
            missing = (wanted & made.made_of.keys()) - stored.keys()
            if missing:
                more = check_columns(name, made.make(self, missing), missing)
                with holding(self._lock):
                    columns, have = self._columns.get(name, (stored, frozenset(stored.keys())))
                    stored = joined(columns, more)
                    self._columns[name] = (stored, have)
        return stored

    def table(self, name: str) -> pa.Table:
        """The named table as Arrow; raises as `columns` does.

        >>> profile.table("steps").num_rows
        20
        """
        if name == WARNINGS:
            return self.columns(name).arrow()
        result = self._arrow.get(name)
        if result is None:
            columns = self.columns(name, whole_table(name) if name in self._made else None)
            with holding(self._lock):
                result = self._arrow.setdefault(name, arrow_of(name, columns))
        return result

    def made_once(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What ``make`` returned when it was first called for ``key``: see
        `peakline.tables.once`.
        """
        result = self._results.setdefault(key, _Result())
        if not result.is_made:
            with holding(result.lock):
                if not result.is_made:
                    self.check_open()
                    result.value = make()
                    result.is_made = True
        self.check_open()
        value: Made = result.value
        return value

    def release(self, name: str) -> None:
        """Give up what has been read of a table; it is read again when somebody needs it."""
        with holding(self._lock):
            self._columns.pop(name, None)
            self._arrow.pop(name, None)
            self.check_open()
            self._reader.forget(name)
            give_back_memory()

    def sql(
        self, query: str, parameters: SqlParameters = None, *, memory_limit_bytes: int | None = None
    ) -> pa.Table:
        """The answer to one reading SQL statement (DuckDB's dialect) over the profile's tables, and
        the views over them (`views`).

        ``parameters`` are the values for ``?`` in order, or for ``$name`` by name: text, numbers,
        None. They are never taken for SQL, whoever wrote them.
        Only the tables and columns that the query needs are read. The query reaches no file, no
        network, no Python variable and no word about the machine, and neither it nor its answer
        may take more than ``memory_limit_bytes`` (default: what the database allows itself, and
        an answer of any size). With a limit it runs in a process of its own, which is reused.
        Raises UsageError for a parameter of another type; CheckFailed, with the reason in one
        line, for a query that is wrong or not allowed; with a limit also RemoteError where the
        process is lost. Queries without a limit run one after the other.

            >>> profile.sql("SELECT name FROM steps WHERE step_id = ?", [7]).to_pylist()
            [{'name': 'train 7'}]
        """
        values = checked_parameters(parameters)
        if memory_limit_bytes is None:
            return self._database.answer(query, values)
        from peakline.tables.sql_process.pool import Question, shared_pool

        return shared_pool().table(self, Question(query, memory_limit_bytes, parameters=values))

    def close(self) -> None:
        """Release the file and the database; the profile cannot be used afterwards."""
        with self._database.lock, self._lock:
            if self._closed:
                return
            self._closed = True
            self._database.disconnect()
            self._columns.clear()
            self._arrow.clear()
            self._results.clear()
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

    def _headline(self) -> str:
        """Nothing is read for it."""
        if self._closed:
            return f"{named(self.path)}: closed"
        host = f", host {self.host}" if self.host else ""
        return f"{named(self.path)}: {self.format}{host}, {counted(len(self.tables), 'table')}"

    def check_open(self) -> None:
        """Raise UsageError when the profile is closed."""
        if self._closed:
            raise UsageError(f"{self.path}: the profile is closed")


def _covers(have: AbstractSet[str] | None, wanted: AbstractSet[str] | None) -> bool:
    return have is None or (wanted is not None and wanted <= have)
