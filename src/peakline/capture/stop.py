"""The end of a capture before its time: one flag that every waiting thread and every call obeys."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from peakline.errors import CancelledError


class Cancellable(Protocol):
    """A call in flight."""

    def cancel(self) -> bool:
        """End it; it then raises in whoever waits for it."""


class Stop:
    """Set once, from any thread; ends the calls in flight and every later wait."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._calls: set[Cancellable] = set()

    def set(self) -> None:
        """End everything."""
        with self._lock:
            self._event.set()
            calls = list(self._calls)
        for call in calls:
            call.cancel()

    @property
    def is_set(self) -> bool:
        """Whether everything shall end."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise CancelledError when everything shall end."""
        if self._event.is_set():
            raise CancelledError("ended before it was done")

    def wait(self, seconds: float) -> None:
        """Wait; raise CancelledError as soon as everything shall end."""
        self._event.wait(seconds)
        self.check()

    @contextmanager
    def cancelling(self, call: Cancellable) -> Iterator[None]:
        """Cancel ``call`` when everything ends during the block, or has ended already."""
        with self._lock:
            self._calls.add(call)
            ended = self._event.is_set()
        if ended:
            call.cancel()
        try:
            yield
        finally:
            with self._lock:
                self._calls.discard(call)
