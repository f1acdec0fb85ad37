"""Signals of the process, turned into words that one loop takes one after another."""

from __future__ import annotations

import os
import queue
import signal
from types import FrameType, TracebackType
from typing import Any, Self

__all__ = ["END", "RELOAD", "Signals"]

END = "end"
RELOAD = "reload"

_AT_ONCE = 130


class Signals:
    """SIGINT and SIGTERM say `END`, SIGHUP says `RELOAD`; a second end ends the process at once.

    A context manager, for the main thread only: the former handlers come back.
    """

    def __init__(self) -> None:
        # SimpleQueue.put may be interrupted by itself, which no lock or event may.
        self._words: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._ending = False
        self._former: dict[int, Any] = {}

    def wait(self) -> str:
        """The next word."""
        return self._words.get()

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._former[number] = signal.signal(number, self._end)
        if hasattr(signal, "SIGHUP"):
            self._former[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._reload)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def _end(self, _number: int, _frame: FrameType | None) -> None:
        if self._ending:
            os._exit(_AT_ONCE)
        self._ending = True
        self._words.put(END)

    def _reload(self, _number: int, _frame: FrameType | None) -> None:
        self._words.put(RELOAD)
