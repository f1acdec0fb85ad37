"""One capture per profiler at a time: it has one recorder, and refuses a second session."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from peakline.errors import RemoteError

_POLL_S = 0.2


class WorkerLocks:
    """Locks by address, for the captures of this process."""

    def __init__(self) -> None:
        self._held: set[str] = set()
        self._freed = threading.Condition()

    @contextmanager
    def hold(
        self, address: str, timeout_s: float, *, check: Callable[[], object] | None = None
    ) -> Iterator[None]:
        """Hold ``address`` during the block, after waiting for who holds it.

        ``check`` is called now and then while waiting and may raise. Raises RemoteError when
        ``timeout_s`` have passed.
        """
        key = address.lower()
        with self._freed:
            end = time.monotonic() + timeout_s
            while key in self._held:
                if check is not None:
                    check()
                if time.monotonic() >= end:
                    raise RemoteError(f"{address}: another capture of it is still running")
                self._freed.wait(_POLL_S)
            self._held.add(key)
        try:
            yield
        finally:
            with self._freed:
                self._held.discard(key)
                self._freed.notify_all()

    def is_held(self, address: str) -> bool:
        """Whether a capture of ``address`` is running."""
        with self._freed:
            return address.lower() in self._held
