"""Processes for queries: started when they are needed, used again, ended when they stray."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from peakline.deadline import check_deadline, current_deadline, holding
from peakline.errors import CancelledError, CheckFailed, DeadlineError, PeaklineError, RemoteError
from peakline.tables.database import WARNINGS, needed
from peakline.tables.definition import TableDef
from peakline.tables.query import QueryNeeds, SqlParameters
from peakline.tables.sql_process.answer import Form
from peakline.tables.sql_process.frames import Frame, content, nameless_file
from peakline.tables.sql_process.process import GoneError, NonsenseError, SqlProcess
from peakline.tables.sql_process.shared import Piece, RankedPiece, SharedTables
from peakline.tables.table_source import TableSource
from peakline.tables.tables import TABLES
from peakline.wire import threads

if TYPE_CHECKING:
    import pyarrow as pa


ENDINGS = ("deadline", "cancelled", "memory", "lost", "idle")
"""Why a process was ended: the time of its query was over, its caller went away, a query took so
much memory that the process was not fit for another, something else ended it, or it had nothing to
do for long.
"""
_IDLE_S = 60.0
_LEAST = 4
_SHARED_BYTES = 1 << 30


@dataclass(frozen=True)
class Question:
    """A query, for a ``remote`` caller or a local one, that may take ``memory_limit`` bytes, and
    the values of its ``parameters``.
    """

    query: str
    memory_limit: int
    form: Form = field(default_factory=Form)
    remote: bool = False
    parameters: SqlParameters = None
    spill: str = ""
    """The folder for what does not fit into ``memory_limit``; empty for none."""


@dataclass(frozen=True)
class WrittenRows:
    """The answer to a query in its format, and how many ``rows`` the query has."""

    content: bytes
    rows: int
    notes: tuple[str, ...] = ()
    """What of a job could not be read, or is not there: a line each."""


class SqlPool:
    """Up to ``most`` processes (default: one for each core, at least 4). Thread-safe.

    Those that had nothing to do for a minute are ended, but for ``spare`` of them; as many are
    ready for the next query once there was one. Columns of profiles that they share take up to
    ``shared_bytes``.
    """

    def __init__(
        self, most: int | None = None, *, spare: int = 0, shared_bytes: int = _SHARED_BYTES
    ) -> None:
        self.shared = SharedTables(shared_bytes)
        self.ended: Counter[str] = Counter()
        """How many processes were ended, by reason: one of `ENDINGS`."""
        self._places = threading.Semaphore(most or max(_LEAST, threads()))
        self._spare = spare
        self._changed = threading.Condition()
        self._idle: list[tuple[SqlProcess, float]] = []
        self._busy: set[SqlProcess] = set()
        self._is_watched = self._is_closed = False
        self._owner = os.getpid()
        # At the end of the program, too, and when nobody has this object any more.
        self._finalizer = weakref.finalize(self, _close_all, self._idle)

    @property
    def pids(self) -> list[int]:
        """The numbers of the processes, those that work first."""
        with self._changed:
            return [process.pid for process in (*self._busy, *(idle for idle, _ in self._idle))]

    def start(self) -> None:
        """Have a process ready; it loads what it needs while others go on."""
        if not self._idle:
            self._give_back(SqlProcess())

    def table(self, profile: TableSource, question: Question) -> pa.Table:
        """The answer to ``question``, whose form has Arrow's format; raises as `rows`."""
        import pyarrow as pa

        with _new_file() as answer:
            self._answer(profile, question, answer)
            table: pa.Table = pa.ipc.open_stream(content(answer)).read_all()
            return table

    def rows(self, profile: TableSource, question: Question) -> WrittenRows:
        """The answer to ``question``, written in its form.

        Raises CheckFailed for a query that is wrong, not allowed or takes too much; what reading
        ``profile`` raises; DeadlineError or CancelledError; RemoteError where the process was lost.
        """
        with _new_file() as answer:
            rows = self._answer(profile, question, answer)
            return WrittenRows(content(answer), rows)

    def close(self) -> None:
        """End all processes, those that work when they are done; the next question starts one."""
        with self._changed:
            self._is_closed = True
            idle = self._idle[:]
            self._idle.clear()
            self._changed.notify_all()
        _close_all(idle)

    def _answer(self, profile: TableSource, question: Question, answer: int) -> int:
        profile.check_open()
        known = {name: TABLES[name] for name in profile.tables}

        def tables(wanted: QueryNeeds) -> Iterator[tuple[str, int, list[Piece]]]:
            for name, columns in needed(profile, wanted):
                pieces = (
                    [Piece(name, columns)]
                    if name == WARNINGS
                    else self.shared.pieces(profile, name, columns, wanted[name])
                )
                yield name, columns.rows, pieces

        return self._put(question, known, tables, answer, ranked=False)

    def ranked(
        self,
        known: Mapping[str, TableDef],
        question: Question,
        read: Callable[[QueryNeeds], Iterable[tuple[str, RankedPiece]]],
    ) -> pa.Table:
        """The answer to ``question``, whose form has Arrow's format; see `ranked_rows`."""
        import pyarrow as pa

        rows = self.ranked_rows(known, question, read)
        table: pa.Table = pa.ipc.open_stream(rows.content).read_all()
        return table

    def ranked_rows(
        self,
        known: Mapping[str, TableDef],
        question: Question,
        read: Callable[[QueryNeeds], Iterable[tuple[str, RankedPiece]]],
    ) -> WrittenRows:
        """The answer to ``question`` over tables of all ranks of a job, those of
        `peakline.tables.ranked.ranked_tables`; ``read`` gives those that it needs. Raises as
        `rows`, and what ``read`` raises.
        """

        def tables(wanted: QueryNeeds) -> Iterator[tuple[str, int, list[Piece]]]:
            for name, piece in read(wanted):
                yield name, 0, [piece]

        with _new_file() as answer:
            rows = self._put(question, known, tables, answer, ranked=True)
            return WrittenRows(content(answer), rows)

    def _put(
        self,
        question: Question,
        known: Mapping[str, TableDef],
        read: Callable[[QueryNeeds], Iterable[tuple[str, int, list[Piece]]]],
        answer: int,
        *,
        ranked: bool,
    ) -> int:
        """Put ``question`` to a process, over the ``known`` tables; how many rows its answer has,
        which is in the file ``answer`` then.
        """
        check_deadline()
        frame: Frame = {
            "query": question.query,
            "parameters": question.parameters,
            "limit": question.memory_limit,
            "remote": question.remote,
            "spill": question.spill,
            "tables": [*known],
            "ranked": ranked,
            **asdict(question.form),
        }

        def tables(needs: Frame) -> Iterable[tuple[str, int, list[Piece]]]:
            return read(_checked(needs, known))

        with holding(self._places):
            for is_last in (False, True):
                with self._taken() as process:
                    deadline = current_deadline()
                    frame["seconds"] = None if deadline is None else deadline.remaining()
                    try:
                        said = process.ask(frame, answer, tables, self.shared.numbers())
                    except GoneError:
                        # Somebody ended it while it had nothing to do.
                        if is_last:
                            break
                    else:
                        return int(said["rows"])
        raise RemoteError("the process of the query ended before it began; try again")

    @contextmanager
    def _taken(self) -> Iterator[SqlProcess]:
        """A process for the block; one that is not fit for more is ended then, and counted."""
        process = self._take()
        reason = "memory"
        try:
            yield process
        except BaseException as error:
            reason = next((why for kind, why in _REASONS if isinstance(error, kind)), "lost")
            raise
        finally:
            if not process.is_fit:
                self._count(reason)
            self._give_back(process)

    def _take(self) -> SqlProcess:
        while True:
            with self._changed:
                self._is_closed = False
                if self._owner != os.getpid():
                    # A fork of the program: the processes are the other's.
                    self._idle.clear()
                    self._owner = os.getpid()
                process = self._idle.pop()[0] if self._idle else None
            if process is None:
                process = SqlProcess()
            elif not process.is_alive():
                self._count("lost")
                process.close()
                continue
            with self._changed:
                self._busy.add(process)
            return process

    def _give_back(self, process: SqlProcess) -> None:
        with self._changed:
            self._busy.discard(process)
            is_open = self._finalizer.alive and not self._is_closed
            if process.is_fit and is_open:
                self._idle.append((process, time.monotonic()))
                if not self._is_watched and len(self._idle) > self._spare:
                    self._is_watched = True
                    _start_watch(weakref.ref(self), self._changed)
                return
            lacks = is_open and len(self._idle) < self._spare
        process.close()
        if lacks:
            with suppress(PeaklineError):  # the next question says why
                self.start()

    def _end_idle(self) -> float | None:
        """End those that have had nothing to do for long; seconds until the next, or None."""
        while True:
            with self._changed:
                if len(self._idle) <= self._spare:
                    self._is_watched = False
                    return None
                # Those that were used last are at the end.
                process, since = self._idle[0]
                left = since + _IDLE_S - time.monotonic()
                if left > 0:
                    return left
                del self._idle[0]
            self._count("idle")
            process.close()

    def _count(self, reason: str) -> None:
        with self._changed:
            self.ended[reason] += 1


_REASONS = ((DeadlineError, "deadline"), (CancelledError, "cancelled"), (CheckFailed, "memory"))


def _checked(needs: Frame, known: Mapping[str, TableDef]) -> QueryNeeds:
    """What a process says that it needs, where that is possible; else NonsenseError."""
    for name, columns in needs.items():
        there = {column.name for column in known[name].columns} if name in known else set()
        if name not in known or not there.issuperset(columns or ()):
            raise NonsenseError("the process of the query needs what there is not; try again")
    return {name: None if columns is None else set(columns) for name, columns in needs.items()}


@contextmanager
def _new_file() -> Iterator[int]:
    descriptor = nameless_file("peakline-answer")
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _start_watch(pool: weakref.ref[SqlPool], changed: threading.Condition) -> None:
    """End what has nothing to do, in a thread that does not hold the pool."""

    def watch() -> None:
        while (left := _end_idle_of(pool)) is not None:
            with changed:
                changed.wait(left)

    threading.Thread(target=watch, name="sql-idle", daemon=True).start()


def _end_idle_of(pool: weakref.ref[SqlPool]) -> float | None:
    result = pool()
    return None if result is None else result._end_idle()  # noqa: SLF001 (a part of it)


def _close_all(idle: list[tuple[SqlProcess, float]]) -> None:
    while idle:
        idle.pop()[0].close()


@cache
def shared_pool() -> SqlPool:
    """The processes of queries that this program puts to its own profiles."""
    return SqlPool()
