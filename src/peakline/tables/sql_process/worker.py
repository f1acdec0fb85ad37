"""The process that queries run in: it plans one, gets its tables, and writes its answer.

A question comes with an open file for the answer. The worker plans the query over empty tables and
says what it needs; the other side sends that as Arrow files, which are mapped and stay so for the
next query; then the query runs. One database serves all queries, each by a connection of its own,
in a transaction that cannot write: nothing of a query is left for the next.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import gc
import importlib.abc
import math
import os
import resource
import select
import signal
import socket
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from peakline.errors import PeaklineError
from peakline.process_memory import address_space_bytes, give_back_memory
from peakline.safe_text import cut_middle
from peakline.tables.query import (
    LONGEST_REASON,
    connect,
    is_broken,
    lacks_memory,
    needs_of,
    reading,
    refusal,
    views_in,
    with_nulls,
)
from peakline.tables.ranked import ranked_table, ranked_tables
from peakline.tables.sql_guard import Guard
from peakline.tables.sql_listing import plain_query
from peakline.tables.sql_process.answer import ARROW, Form, collect, write
from peakline.tables.sql_process.frames import (
    EndOfFramesError,
    Frame,
    mapped,
    nameless_file,
    receive,
    send,
)
from peakline.tables.tables import TABLES

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa


# Linux has all of these limits. Elsewhere those that the system has are set: macOS has none of the
# address space, so that what the database counts itself is the only limit of memory there.
_NO_NEW_PRIVILEGES = 38
_MOST_FILES = 512
"""Each piece of a table that is mapped is one."""
_SLACK = 256 << 20
"""What a plan, a batch of rows and the allocator take that the database does not count."""


def confine(lifeline: int) -> None:
    """For the rest of this process: it ends when the pipe ``lifeline`` does, whatever it is doing,
    is the first to go when the machine lacks memory, and can gain no rights.
    """
    signal.signal(signal.SIGIO, signal.SIG_DFL)  # which ends the process
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGIO,))
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | fcntl.FASYNC)
    if select.select((lifeline,), (), (), 0)[0]:
        os._exit(0)  # nothing is ever written into it: it has ended already
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    few = _MOST_FILES if most == resource.RLIM_INFINITY else min(_MOST_FILES, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (few, few))
    if sys.platform == "linux":
        with suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
        ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)


def limit_memory(base: int | None, more: int) -> None:
    """Let the address space be ``base`` and ``more`` bytes, and some slack, at most."""
    if base is not None:
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (_at_most(base + more + _SLACK, most), most))


def limit_time(seconds: float | None) -> None:
    """Let the process take ``seconds`` of every core from now on; None is without a limit."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    if seconds is None:
        resource.setrlimit(resource.RLIMIT_CPU, (most, most))
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    allowed = math.ceil(used.ru_utime + used.ru_stime + seconds * (os.cpu_count() or 1)) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (_at_most(allowed, most), most))


def _at_most(value: int, most: int) -> int:
    return value if most == resource.RLIM_INFINITY else min(value, most)


def growth(base: int | None) -> int:
    """How many bytes the address space is larger than ``base``."""
    now = address_space_bytes()
    return 0 if base is None or now is None else now - base


def most_growth(limit: int) -> int:
    """What may stay of queries with this limit: allocators hold addresses for later, and what one
    of them holds another cannot have.
    """
    return (limit + _SLACK) // 2


_DEEPEST = 10_000
"""Levels of a plan as JSON: the database allows expressions 1000 levels deep."""
_LARGE = 64 << 20


@dataclass
class _Worker:
    connection: socket.socket
    base: int | None = None
    """Bytes of addresses before any query."""
    limit: int = 0
    spill: str = ""
    database: duckdb.DuckDBPyConnection | None = None
    guards: dict[bool, Guard] = field(default_factory=dict)
    """Those for local callers, and for remote ones: True."""
    pieces: dict[int, tuple[pa.Table, int]] = field(default_factory=dict)
    """By their numbers: columns that are mapped, and the size of the file."""
    passing: list[int] = field(default_factory=list)
    """The numbers of pieces that are of one query: the file may be large, and takes the disk."""

    @property
    def mapped(self) -> int:
        return sum(size for _, size in self.pieces.values())

    def serve(self) -> None:
        """Answer questions until the other side is gone or the process is not fit for more."""
        is_fit = True
        while is_fit:
            question, (answer,) = receive(self.connection)
            for number in question["forget"]:
                self.pieces.pop(number, None)
            said = self._said(question, answer)
            for number in self.passing:
                self.pieces.pop(number, None)
            self.passing.clear()
            os.close(answer)
            if said is None:
                continue
            is_fit = said.pop("is_fit", True) and self._recovers()
            send(self.connection, {**said, "is_fit": is_fit})
            if is_fit:
                # The folder of the last query is gone.
                self._open(self.limit)

    def _recovers(self) -> bool:
        """Give back the memory that a large query took; whether there is enough for the next."""
        if growth(self.base) > self.mapped + _LARGE:
            # The database gives back what its allocator holds when it is closed.
            self._close()
            gc.collect()
            give_back_memory()
        return growth(self.base) <= self.mapped + most_growth(self.limit)

    def _said(self, question: Frame, answer: int) -> Frame | None:
        """What is said of a question in the end; None where the other side has given it up."""
        import duckdb
        import pyarrow as pa

        try:
            limit_time(question["seconds"])
            self._open(question["limit"], question["spill"])
            return self._answered(question, answer)
        except EndOfFramesError:
            raise
        except PeaklineError as error:
            return _refused(str(error))
        except (MemoryError, pa.ArrowMemoryError):
            return self._out_of_memory()
        except (duckdb.Error, OSError, pa.ArrowException) as error:
            # So says Arrow what the database said to it.
            broken = is_broken(error)
            if lacks_memory(str(error)) or getattr(error, "errno", 0) == errno.ENOMEM:
                # The database is as it was; nobody knows of what else lacked memory.
                return self._out_of_memory(is_fit=isinstance(error, duckdb.Error) and not broken)
            return _refused(refusal(error, question["tables"]), is_fit=not broken)
        except Exception:  # noqa: BLE001 (the other side says that it is our own fault)
            return {"fault": traceback.format_exc(), "is_fit": False}

    def _out_of_memory(self, *, is_fit: bool = False) -> Frame:
        self._close()
        text = f"the query takes more memory than its limit of {self.limit} bytes; request less"
        return _refused(text, is_fit=is_fit)

    def _open(self, limit: int, spill: str = "") -> None:
        """Have a database with this limit of memory, and this folder for what is above it."""
        if self.database is not None and (limit, spill) == (self.limit, self.spill):
            return
        self._close()
        self.database, self.limit, self.spill = connect(limit, spill), limit, spill
        if self.base is None:
            self.guards = {who: Guard(self.database, remote=who) for who in (False, True)}
            # With one query done: the database has its threads then.
            self.database.sql("select 1").to_arrow_table()
            self.base = address_space_bytes()

    def _close(self) -> None:
        if self.database is not None:
            self.database.close()
            self.database = None

    def _answered(self, question: Frame, answer: int) -> Frame | None:
        if self.database is None:
            raise TypeError("there is no database")
        names = question["tables"]
        ranked = question["ranked"]
        tables = ranked_tables(names) if ranked else {name: TABLES[name] for name in names}
        query = plain_query(question["query"], tables)
        self._allow(0)
        guard, parameters = self.guards[question["remote"]], question["parameters"]
        needs = needs_of(self.database, query, tables, guard, parameters)
        wanted = {
            name: None if columns is None else sorted(columns) for name, columns in needs.items()
        }
        send(self.connection, {"needs": wanted})
        with self.database.cursor() as connection:
            if not self._receive_tables(connection):
                return None
            self._allow(0)
            for view in views_in(query, needs):
                connection.execute(view.statement)
            form = Form(*(question[name] for name in Form.__dataclass_fields__))
            most = self.limit if form.max_bytes is None else min(self.limit, form.max_bytes)
            collected = os.dup(answer) if form.format == ARROW else nameless_file("peakline-rows")
            try:
                with reading(connection):
                    result = connection.sql(query, params=parameters)
                    rows = collect(result, collected, form.max_rows, self.limit)
                connection.close()
                if form.format != ARROW:
                    # What the database took is given back before its rows are written.
                    self._recovers()
                    self._allow(os.fstat(collected).st_size)
                    write(collected, answer, form, most)
            finally:
                os.close(collected)
            return {"rows": rows}

    def _allow(self, size: int) -> None:
        """Let a file of that size be mapped beside what there is."""
        limit_memory(self.base, self.mapped + size + self.limit)

    def _receive_tables(self, connection: duckdb.DuckDBPyConnection) -> bool:
        """Register the tables that are sent; whether the query is to be run then."""
        failed: Exception | None = None
        while True:
            frame, files = receive(self.connection)
            if "run" in frame:
                if failed is not None:
                    raise failed
                return bool(frame["run"])
            try:
                if failed is None:
                    self._register(connection, frame, files)
            except Exception as error:  # noqa: BLE001 (the other tables come nevertheless)
                failed = error
            finally:
                for descriptor in files:
                    os.close(descriptor)

    def _register(
        self, connection: duckdb.DuckDBPyConnection, frame: Frame, files: list[int]
    ) -> None:
        """Make a table of what was sent of it, and of what is mapped already."""
        import pyarrow as pa

        for number, descriptor in zip(frame["new"], files, strict=True):
            size = os.fstat(descriptor).st_size
            self._allow(size)
            if frame["parts"] is not None:
                table = ranked_table(frame["table"], descriptor, frame["parts"])
                self.pieces[number] = table, size
                self.passing.append(number)
                connection.register(frame["table"], table)
                return
            self.pieces[number] = pa.ipc.open_file(mapped(descriptor)).read_all(), size
        columns: dict[str, pa.ChunkedArray] = {}
        for number in frame["pieces"]:
            table = self.pieces[number][0]
            columns.update(zip(table.column_names, table.columns, strict=True))
        name = frame["table"]
        connection.register(name, with_nulls(TABLES[name], pa.table(columns), frame["rows"]))


def _refused(text: str, *, is_fit: bool = True) -> Frame:
    return {"refused": cut_middle(text, LONGEST_REASON), "is_fit": is_fit}


class _WithoutPandas(importlib.abc.MetaPathFinder):
    """PyArrow loads it where it is there: a third of a start, for frames that nobody makes here."""

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError(fullname)


def main(descriptor: int) -> None:
    """Work for the socket of this descriptor; the process ends when standard input does."""
    confine(0)
    sys.setrecursionlimit(_DEEPEST)
    sys.meta_path.insert(0, _WithoutPandas())
    # What a query may need is loaded before its memory is counted.
    import pyarrow.dataset
    import pyarrow.parquet  # noqa: F401

    try:
        _Worker(socket.socket(fileno=descriptor)).serve()
    except OSError:
        pass  # the other side is gone
    finally:
        os._exit(0)
