"""Hosts read in processes of their own, which the deadline ends and a lost one does not spoil.

A worker is a new Python (nothing is forked, and the program that uses Peakline is not run again),
given its tasks through its standard input and answering through its standard output: frames of an
8-byte length and a pickle. It is in a session of its own, so Ctrl-C reaches the asking process
alone, and it ends when its standard input does, whatever it is doing: nobody outlives the asker.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import IO

from peakline.deadline import interrupting
from peakline.engine.answers import Answer
from peakline.engine.gate import Gate
from peakline.engine.work import HostTask, NoWorkersError, reply, request, understood
from peakline.errors import RemoteError
from peakline.wire import threads

_HEAD = 8
_ANY = 1 << 30
_ENDING_S = 5.0
_CODE = "import sys; sys.path[:] = {path!r}; from peakline.engine.processes import work; work()"


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

    def ask(self, asked: bytes) -> bytes:
        """What the process answers; RemoteError when it ended instead."""
        stdin, stdout = self.process.stdin, self.process.stdout
        if stdin is None or stdout is None:
            raise TypeError("the process has no pipes")
        self._is_busy = True
        with suppress(OSError):
            write_frame(stdin, asked)
            told = read_frame(stdout)
            if told is not None:
                self._is_busy = False
                return told
        raise RemoteError(f"the process that worked on it {self._how_it_ended()}")

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

    def ask(self, task: HostTask, here: Callable[[], Answer]) -> Answer:  # noqa: ARG002
        """As `Executor.ask`; where the deadline ends, so does the process that works."""
        asked = request(task)
        with self._gate.enter():
            worker = self._take()
            try:
                with interrupting(worker.kill):
                    told = worker.ask(asked)
            finally:
                self._give_back(worker)
        return understood(told)

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
    asked, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # Whatever else is printed is no answer, and nobody else may take a question away.
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    tasks: SimpleQueue[bytes] = SimpleQueue()

    def listen() -> None:
        while (task := read_frame(asked)) is not None:
            tasks.put(task)
        # The other side is gone, and with it the one who could use what is being worked on.
        sys.stderr.flush()
        os._exit(0)

    threading.Thread(target=listen, name="listen", daemon=True).start()
    while True:
        write_frame(answers, reply(tasks.get()))
