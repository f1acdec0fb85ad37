"""One process for queries, as the process that started it sees it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from peakline.deadline import interrupting
from peakline.errors import CheckFailed, DeadlineError, PeaklineError, RemoteError, UsageError
from peakline.tables.sql_process.frames import MOST_FILES, Frame, receive, send
from peakline.tables.sql_process.shared import Piece

_CODE = "import sys; sys.path[:] = {path!r}; from {module} import main; main({descriptor})"
_MODULE = "peakline.tables.sql_process.worker"
_ENVIRONMENT = (
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LD_LIBRARY_PATH",
    "PATH",
    "PYTHONHOME",
    "TZ",
    "TZDIR",
)
"""What a worker gets to know of the environment; the rest may hold secrets."""
_SPARING = {
    "MALLOC_ARENA_MAX": "2",
    "ARROW_DEFAULT_MEMORY_POOL": "system",
    "OPENBLAS_NUM_THREADS": "1",
}
"""What reserves little: addresses are what a worker is limited in."""
_ENDING_S = 5.0
_MOST_MAPPED = 200
"""Pieces of tables that a worker still maps after a query."""
_FAULTS = frozenset({"SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGSYS", "SIGTRAP"})

_NO_MEMORY_FOR_THREADS = 127
"""The exit code when the C library has no memory for the variables of a thread."""

TableSource = Callable[[Frame], Iterable[tuple[str, int, Sequence[Piece]]]]
"""From the needs of a query to its tables: name, rows, columns."""


def _fault(how: str) -> CheckFailed:
    return CheckFailed(
        f"the database failed at the query ({how}): it takes too much memory, or is nested too "
        "deeply; request less"
    )


class GoneError(Exception):
    """The process had ended before it was given the question."""


class NonsenseError(RemoteError):
    """The process says what cannot be."""


class SqlProcess:
    """A new Python that answers one question after the other. Used by one thread at a time.

    It ends when this process does, however that happens. Raises UsageError where the system cannot
    pass open files, RemoteError where no process can be started.
    """

    def __init__(self) -> None:
        if not hasattr(socket, "send_fds"):
            raise UsageError("queries with a limit of memory are not possible on this system")
        self._owner = os.getpid()
        self._is_killed = self._is_busy = False
        self._is_fit = True
        self._mapped: dict[int, None] = {}
        """The numbers of the pieces that it maps, the least recently used first."""
        self._connection, theirs = socket.socketpair()
        code = _CODE.format(
            path=[str(Path(place).absolute()) for place in sys.path],
            module=_MODULE,
            descriptor=theirs.fileno(),
        )
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        try:
            with theirs:
                self._process = subprocess.Popen(  # noqa: S603 (this Python, our own words)
                    [sys.executable, "-c", code],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    env=environment | _SPARING,
                    cwd="/",
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
        except OSError as error:
            self._connection.close()
            raise RemoteError(
                f"no process for the query can be started: {error.strerror}"
            ) from error

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def is_fit(self) -> bool:
        """Whether it may be given another question."""
        return self._is_fit and not (self._is_killed or self._is_busy)

    def is_alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def ask(
        self, question: Frame, answer: int, tables: TableSource, shared: frozenset[int]
    ) -> Frame:
        """What the process says of ``question`` when its answer is in the file ``answer``.

        ``shared`` are the numbers of the pieces that are not given up. At the deadline the process
        is ended, whatever it does. Raises GoneError; what ``tables`` raises; CheckFailed for a
        refused query; DeadlineError or CancelledError; RemoteError where the process was lost.
        """
        over = len(self._mapped) - _MOST_MAPPED
        forgotten = [
            number
            for place, number in enumerate(self._mapped)
            if place < over or number not in shared
        ]
        for number in forgotten:
            del self._mapped[number]
        self._is_busy, is_sent = True, False
        try:
            with interrupting(self.kill):
                send(self._connection, question | {"forget": forgotten}, [answer])
                is_sent = True
                said = receive(self._connection)[0]
        except OSError as error:
            raise self._loss() if is_sent else GoneError from error
        if "needs" in said:
            said = self._run(said["needs"], tables)
        self._is_busy, self._is_fit = False, bool(said.get("is_fit"))
        if "fault" in said:
            raise RuntimeError(f"in the process of a query: {said['fault']}")
        if "refused" in said:
            raise CheckFailed(said["refused"])
        return said

    def _run(self, needs: Frame, tables: TableSource) -> Frame:
        """What the process says of its query in the end, when it has the tables it needs."""
        try:
            result = list(tables(needs))
        except NonsenseError:
            raise
        except PeaklineError:
            with suppress(OSError):
                send(self._connection, {"run": False})
                self._is_busy = False
            raise
        try:
            with interrupting(self.kill):
                with suppress(OSError):  # the reply, or that there is none, says why
                    for name, rows, pieces in result:
                        self._send_table(name, rows, pieces)
                    send(self._connection, {"run": True})
                return receive(self._connection)[0]
        except OSError as error:
            raise self._loss() from error

    def _send_table(self, name: str, rows: int, pieces: Sequence[Piece]) -> None:
        new = [piece for piece in pieces if piece.number not in self._mapped]
        frame = {
            "table": name,
            "rows": rows,
            "pieces": [piece.number for piece in pieces],
            "new": [piece.number for piece in new],
            "parts": new[0].parts if new else None,
        }
        if len(new) > MOST_FILES:
            raise TypeError(f"{name} in {len(new)} pieces")
        send(self._connection, frame, [piece.descriptor for piece in new])
        for piece in pieces:
            self._mapped.pop(piece.number, None)
            self._mapped[piece.number] = None

    def _loss(self) -> PeaklineError:
        """Why there is no reply."""
        try:
            code = self._process.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            return RemoteError("the process of the query does not answer any more; try again")
        if code == _NO_MEMORY_FOR_THREADS:
            return _fault(f"exit code {code}")
        if code >= 0:
            return RemoteError(f"the process of the query ended with exit code {code}; try again")
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        if name == "SIGXCPU":
            return DeadlineError("the query takes too much of the processor's time; request less")
        if name in _FAULTS:
            return _fault(name)
        return RemoteError(f"the process of the query was ended by {name}; try again")

    def kill(self) -> None:
        """End it now, in the middle of whatever it does. From any thread, as often as one likes."""
        self._is_killed = True
        if os.getpid() == self._owner:
            self._process.kill()

    def close(self) -> None:
        """End it and take away what is left of it."""
        self.kill()
        if os.getpid() == self._owner:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(_ENDING_S)
        self._connection.close()
        if self._process.stdin is not None:
            self._process.stdin.close()
