"""Where the hosts of a session are read (threads, processes, a Dask cluster), and many at once.

A process of their own is ended by the deadline, and a lost one spoils no other.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from contextvars import copy_context
from queue import SimpleQueue
from typing import IO, Protocol, TypeVar

from peakline.deadline import Deadline, current_deadline, interrupting, within
from peakline.engine.answers import Answer
from peakline.engine.dask_cluster import DaskCluster
from peakline.engine.gate import Gate
from peakline.engine.work import LostWorkerError, NoWorkersError, Task, reply, request, understood
from peakline.errors import BusyError, CancelledError, DeadlineError, PeaklineError, UsageError
from peakline.safe_text import guarded_streams
from peakline.toolbox.parameters import check_choice
from peakline.wire import threads

_HEAD = 8
_ANY = 1 << 30
_ENDING_S = 5.0
_CODE = "import sys; sys.path[:] = {path!r}; from peakline.engine.executors import work; work()"


def write_frame(stream: IO[bytes], content: bytes) -> None:
    """Send ``content``."""
    stream.write(len(content).to_bytes(_HEAD, "little"))
    stream.write(content)
    stream.flush()


def read_frame(stream: IO[bytes]) -> bytes | None:
    """What `write_frame` sent, None when the stream ended before it was whole."""
    head = stream.read(_HEAD)
    if len(head) < _HEAD:
        return None
    size = int.from_bytes(head, "little")
    content = stream.read(size)
    return content if len(content) == size else None


class _Worker:
    """One process; used by one thread at a time."""

    def __init__(self) -> None:
        code = _CODE.format(path=[str(place) for place in sys.path])
        try:
            self.process = subprocess.Popen(  # noqa: S603 (this Python, our own words)
                [sys.executable, "-c", code],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as error:
            raise NoWorkersError(f"no process can be started: {error}") from error
        self._was_killed = self._is_busy = False

    @property
    def is_fit(self) -> bool:
        """Whether it may be used again: nobody killed it, and it has answered."""
        return not (self._was_killed or self._is_busy)

    def ask(self, request: bytes) -> bytes:
        """What the process answers; LostWorkerError when it ended instead."""
        stdin, stdout = self.process.stdin, self.process.stdout
        if stdin is None or stdout is None:
            raise TypeError("the process has no pipes")
        self._is_busy = True
        with suppress(OSError):
            write_frame(stdin, request)
            result = read_frame(stdout)
            if result is not None:
                self._is_busy = False
                return result
        raise LostWorkerError(f"the process that worked on it {self._how_it_ended()}")

    def _how_it_ended(self) -> str:
        try:
            code = self.process.wait(_ENDING_S)
        except subprocess.TimeoutExpired:
            return "does not answer any more"
        if code >= 0:
            return f"ended with exit code {code}"
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        memory = " (out of memory?)" if name == "SIGKILL" else ""
        return f"was ended by {name}{memory}"

    def kill(self) -> None:
        """End it now, in the middle of whatever it does. From any thread, as often as one likes."""
        self._was_killed = True
        self.process.kill()

    def close(self) -> None:
        """End it and take away what is left of it."""
        self.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()


class Processes:
    """Up to ``workers`` processes, started when they are needed and held for the next question."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or threads()
        self._gate = Gate(self.workers, _ANY)
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        # At the end of the program, too, and when nobody has this object any more.
        self._finalizer = weakref.finalize(self, _close_all, self._idle)

    def start(self) -> None:
        """Nothing to do: a process starts in less time than a file is read."""

    def ask(self, task: Task, here: Callable[[], Answer]) -> Answer:  # noqa: ARG002
        """As `Executor.ask`; where the deadline ends, so does the process that works."""
        with self._gate.enter():
            try:
                return self._attempt(task)
            except LostWorkerError:
                # Whoever ended the process may have had other reasons than this host.
                pass
            try:
                return self._attempt(task)
            except LostWorkerError as error:
                raise LostWorkerError(f"{error}, as the one before it") from None

    def _attempt(self, task: Task) -> Answer:
        question = request(task)
        worker = self._take()
        try:
            with interrupting(worker.kill):
                result = worker.ask(question)
        finally:
            self._give_back(worker)
        return understood(result)

    def close(self) -> None:
        """End all processes that have nothing to do."""
        with self._lock:
            idle = self._idle[:]
            self._idle.clear()
        _close_all(idle)

    def _take(self) -> _Worker:
        while True:
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            if worker is None:
                return _Worker()
            if worker.process.poll() is None:
                return worker
            # It was ended while it had nothing to do.
            worker.close()

    def _give_back(self, worker: _Worker) -> None:
        if worker.is_fit and self._finalizer.alive:
            with self._lock:
                self._idle.append(worker)
        else:
            worker.close()


def _close_all(workers: list[_Worker]) -> None:
    while workers:
        workers.pop().close()


def work() -> None:
    """The other side: answer what comes through standard input, until that ends."""
    request, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # Whatever else is printed is no answer, and nobody else may take a question away.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    tasks: SimpleQueue[bytes] = SimpleQueue()

    def listen() -> None:
        while (task := read_frame(request)) is not None:
            tasks.put(task)
        # The other side is gone, and with it the one who could use what is being worked on.
        sys.stderr.flush()
        os._exit(0)

    threading.Thread(target=listen, name="listen", daemon=True).start()
    with guarded_streams():
        while True:
            write_frame(answers, reply(tasks.get()))


EXECUTORS = ("threads", "processes", "dask")
"""The names of the executors; the first is the default."""


class Executor(Protocol):
    """Reads hosts, up to ``workers`` of them at once; may be used from several threads."""

    @property
    def workers(self) -> int:
        """How many hosts are read at once."""

    def start(self) -> None:
        """Get ready, where that takes time or may fail; else done with the first question.

        Raises UsageError for what is not installed, RemoteError for a cluster that does not answer.
        """

    def ask(self, task: Task, here: Callable[[], Answer]) -> Answer:
        """The answer to ``task``, which ``here`` would give in this process.

        Ends at the deadline. A host whose worker is lost is read once more by another; raises
        LostWorkerError where that is lost, too, else what ``here`` raises.
        """

    def close(self) -> None:
        """End everything that was started; whoever asks afterwards starts it again."""


class Threads:
    """Hosts are read in threads of this process, which share its decoded profiles."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or threads()

    def start(self) -> None:
        """Nothing to do."""

    def ask(self, task: Task, here: Callable[[], Answer]) -> Answer:  # noqa: ARG002
        """As the protocol says."""
        return here()

    def close(self) -> None:
        """Nothing to do."""


def check_executor(name: str, workers: int | None = None, scheduler: str | None = None) -> None:
    """Raise UsageError for an unknown name, a number below 1 or a scheduler without Dask."""
    check_choice(name, EXECUTORS, "no executor")
    if workers is not None and workers < 1:
        raise UsageError(f"workers {workers}: at least 1")
    if scheduler is not None and name != "dask":
        raise UsageError(f"a scheduler is for the executor dask, not for {name}")


def make_executor(
    name: str = "threads", *, workers: int | None = None, scheduler: str | None = None
) -> Executor:
    """The executor of that name; ``workers`` (default: one for each core) hosts at once.

    ``scheduler`` is the address of a Dask cluster; without one, a cluster of ``workers`` processes
    is started on this machine. Raises UsageError as `check_executor`; nothing is started yet.
    """
    check_executor(name, workers, scheduler)
    if name == "processes":
        return Processes(workers)
    if name == "dask":
        return DaskCluster(workers, scheduler)
    return Threads(workers)


K = TypeVar("K")
V = TypeVar("V")


class _Together(Deadline):
    """The deadline of many parts of one answer: the caller's, or the failure of one of them."""

    def __init__(self, above: Deadline | None) -> None:
        super().__init__()
        self._above = above

    def remaining(self) -> float | None:
        own = super().remaining()
        return own if own is not None or self._above is None else self._above.remaining()

    def check(self) -> None:
        if self._above is not None:
            self._above.check()
        super().check()


def fan_out(
    ask: Callable[[K], V],
    hosts: Sequence[K],
    workers: int | None = None,
    finished: Callable[[K], object] | None = None,
) -> list[V | PeaklineError]:
    """What ``ask`` returns for each of ``hosts``, in order, or our error with which it failed.

    Up to ``workers`` (default: one for each core) at once; ``finished`` is called for each that is
    done, whatever came of it, in any thread. Each runs under the caller's deadline, whose end is
    raised and not returned, as is that nobody is left who could answer. What ends one so, and
    Ctrl-C, ends all.
    """

    def attempt(host: K) -> V | PeaklineError:
        failed: PeaklineError | None = None
        try:
            answer = ask(host)
        except (BusyError, CancelledError, DeadlineError, NoWorkersError):
            raise
        except PeaklineError as error:
            # As a value it must not hold what the frames it came through hold (a mapped file).
            failed = error.with_traceback(None)
            failed.__cause__ = failed.__context__ = None
        if finished is not None:
            finished(host)
        return answer if failed is None else failed

    if len(hosts) == 1:
        return [attempt(hosts[0])]
    above = current_deadline()
    together = _Together(above)
    pool = ThreadPoolExecutor(min(len(hosts), workers or threads()), thread_name_prefix="host")
    try:
        with above.on_cancel(together.cancel) if above else nullcontext(), within(together):
            futures = [pool.submit(copy_context().run, attempt, host) for host in hosts]
            return [future.result() for future in futures]
    except BaseException:
        together.cancel()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
