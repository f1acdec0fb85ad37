"""A server in the foreground, from its start until a signal ends it, and these signals."""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from types import FrameType
from typing import TYPE_CHECKING, Any, Self

from peakline.render.terminal.output import say

if TYPE_CHECKING:
    from peakline.service.run import Server
    from peakline.service.settings import Settings


END = "end"
RELOAD = "reload"

_ENDS = frozenset({signal.SIGINT, signal.SIGTERM})
_RELOADS = frozenset({signal.SIGHUP} if hasattr(signal, "SIGHUP") else ())
_AT_ONCE = 130
_CHUNK = 4096


class Signals:
    """SIGINT and SIGTERM say `END`, SIGHUP says `RELOAD`; a second end ends the process at once.

    A context manager, for the main thread only: the former handlers come back. ``at_once`` is
    called, in another thread, before a second end ends the process: nothing else is cleaned up.

    Python runs the handlers of signals in the main thread, when that runs Python code the next
    time. One that is about to wait has looked for signals a moment before, which other threads can
    make as long as they hold the interpreter: a signal that comes then interrupts no wait, nor does
    one that the system gave to another thread, and its handler would run at the next signal, or
    never. So the handlers here do nothing. The number of each signal, which Python writes to a
    pipe the moment the signal arrives, wakes a thread that only reads them.
    """

    def __init__(self, at_once: Callable[[], object] | None = None) -> None:
        self._at_once = at_once
        self._words: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._former: dict[int, Any] = {}
        self._former_wakeup = -1

    def wait(self) -> str:
        """The next word."""
        return self._words.get()

    def __enter__(self) -> Self:
        # A pipe takes tens of thousands of numbers, where a socket is full after a few hundred.
        self._numbers, self._wakeup = os.pipe()
        if os.name == "posix":
            os.set_blocking(self._wakeup, False)  # a signal stops nobody, not when all is full
        self._former_wakeup = signal.set_wakeup_fd(self._wakeup, warn_on_full_buffer=False)
        self._reader = threading.Thread(target=self._read, name="signals", daemon=True)
        self._reader.start()
        for number in (*_ENDS, *_RELOADS):
            self._former[number] = signal.signal(number, _ignore)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._former_wakeup)
        os.close(self._wakeup)
        self._reader.join()
        os.close(self._numbers)

    def _read(self) -> None:
        """Say a word for every signal, until the pipe is closed."""
        ending = False
        while numbers := os.read(self._numbers, _CHUNK):
            for number in numbers:
                if number in _RELOADS:
                    self._words.put(RELOAD)
                elif number in _ENDS:
                    if ending:
                        self._exit_at_once()
                    ending = True
                    self._words.put(END)

    def _exit_at_once(self) -> None:
        try:
            if self._at_once is not None:
                self._at_once()
        finally:
            os._exit(_AT_ONCE)


class EndedBySignal:
    """SIGINT, SIGTERM and SIGHUP end the block as an exception does, so that it is cleaned up.

    A context manager, for the main thread only: the former handlers come back. SIGINT raises
    KeyboardInterrupt, the others SystemExit with 128 and their number. What cleans up first sets
    ``armed`` to False: then signals do nothing. Several may come one right after the other, and
    Python looks for none before an attribute is set.
    """

    def __init__(self) -> None:
        self.armed = True
        self._former: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (*_ENDS, *_RELOADS):
            self._former[number] = signal.signal(number, self._end)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def _end(self, number: int, _: FrameType | None) -> None:
        if not self.armed:
            return
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(128 + number)


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Only a signal that has a handler of Python's is written to the pipe."""


_FAILED_S = 5.0
"""How long threads may take to end before an error is reported: an orderly exit needs their end."""


def serve_until_stopped(
    settings: Settings,
    announce: Callable[[Server], Iterable[str]],
    *,
    lives_on: bool = True,
    at_once: Callable[[], object] | None = None,
) -> bool:
    """Serve until a signal says to end; ``announce`` says in lines that the server runs.

    SIGHUP, which is what a closed terminal sends, makes a server that ``lives_on`` read its files
    again, and ends any other. ``at_once`` cleans up when a second signal ends the process at once.
    Returns whether every thread has ended: see `leave`.
    """
    from peakline.service.places import raise_descriptor_limit
    from peakline.service.run import Server

    raise_descriptor_limit()
    with Signals(at_once) as signals:
        server = Server(settings)
        server.log.listen()
        for line in server.cautions():
            say(f"warning: {line}")
        server.start()
        try:
            for line in announce(server):
                say(line)
        except BaseException:
            server.stop(_FAILED_S)
            raise
        while signals.wait() == RELOAD and lives_on:
            server.reload()
        say(f"ending; running requests have {settings.grace_s:g} s")
        return server.stop()


def leave(*, ended: bool) -> None:
    """End the process at once where a thread has not ended.

    It is still inside the compiler, which an orderly exit would pull away under it.
    """
    if not ended:
        sys.stderr.flush()
        os._exit(0)
