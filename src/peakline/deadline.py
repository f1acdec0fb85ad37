"""Until when an answer is wanted: set by a face, looked at inside long work.

Long loops call `check_deadline`; it costs a microsecond and nothing happens where no deadline
was set. The deadline belongs to the context (`contextvars`): threads that do a part of the work
run in a copy of the caller's context, or leave the checking to the thread that waits for them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from peakline.errors import CancelledError, DeadlineError

T = TypeVar("T")

_current: ContextVar[Deadline | None] = ContextVar("deadline", default=None)

_LOOK_S = 0.05
"""How often one looks who cannot be woken: somebody who waits for a lock, or for a database."""


class Deadline:
    """A point in time, ``seconds`` from now (None: never), and the means to end earlier."""

    def __init__(self, seconds: float | None = None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds
        self._cancelled = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], object]] = []

    def remaining(self) -> float | None:
        """Seconds left, 0 when it is over, None when there is no limit."""
        if self._cancelled.is_set():
            return 0.0
        return None if self._end is None else max(0.0, self._end - time.monotonic())

    def cancel(self) -> None:
        """Nobody waits any more: every later `check` raises CancelledError."""
        with self._lock:
            self._cancelled.set()
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    def check(self) -> None:
        """Raise CancelledError or DeadlineError when it is over."""
        if self._cancelled.is_set():
            raise CancelledError("the caller went away")
        if self._end is not None and time.monotonic() >= self._end:
            raise DeadlineError("the time for this answer is over; allow more, or ask for less")

    def is_over(self) -> bool:
        """Whether `check` would raise."""
        return self.remaining() == 0.0

    @contextmanager
    def on_cancel(self, callback: Callable[[], object]) -> Iterator[None]:
        """Call ``callback`` when it is cancelled before the block ends, at once if it is already.

        Only for `cancel`: who waits knows from `remaining` when the time is over.
        """
        with self._lock:
            cancelled = self._cancelled.is_set()
            if not cancelled:
                self._callbacks.append(callback)
        if cancelled:
            callback()
        try:
            yield
        finally:
            with self._lock:
                if callback in self._callbacks:
                    self._callbacks.remove(callback)

    @contextmanager
    def interrupting(self, interrupt: Callable[[], object]) -> Iterator[None]:
        """Call ``interrupt`` from another thread when it is over before the block ends.

        For work that cannot call `check` itself, such as a query of a database. It is called
        again and again until the block ends: a database forgets an interrupt that comes just
        before a query begins. After the block it is not called any more.
        """
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(_LOOK_S):
                if self.is_over():
                    interrupt()

        watcher = threading.Thread(target=watch, name="deadline", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()


def current_deadline() -> Deadline | None:
    """The deadline of the work that is going on, None where nobody set one."""
    return _current.get()


def check_deadline() -> None:
    """Raise DeadlineError or CancelledError when nobody wants the answer any more."""
    deadline = _current.get()
    if deadline is not None:
        deadline.check()


def checked(items: Iterable[T], every: int = 256) -> Iterator[T]:
    """``items`` for a long loop: `check_deadline` before the first and after each ``every``."""
    left = 0
    for item in items:
        if left == 0:
            check_deadline()
            left = every
        left -= 1
        yield item


@contextmanager
def within(deadline: Deadline) -> Iterator[Deadline]:
    """Do the block's work under ``deadline``."""
    token = _current.set(deadline)
    try:
        yield deadline
    finally:
        _current.reset(token)


def wait_for(event: threading.Event) -> None:
    """Wait until ``event`` is set, no longer than the deadline; raises as `check_deadline`.

    Nobody else may wait for the same event: a cancelled deadline sets it to wake its thread.
    """
    deadline = _current.get()
    if deadline is None:
        event.wait()
        return
    with deadline.on_cancel(event.set):
        event.wait(deadline.remaining())
    deadline.check()


@contextmanager
def holding(lock: threading.Lock | threading.RLock | threading.Semaphore) -> Iterator[None]:
    """``with lock``, waiting no longer than the deadline; raises as `check_deadline`."""
    deadline = _current.get()
    if deadline is None:
        with lock:
            yield
        return
    deadline.check()
    while not lock.acquire(timeout=min(deadline.remaining() or _LOOK_S, _LOOK_S)):
        deadline.check()
    try:
        yield
    finally:
        lock.release()


@contextmanager
def interrupting(interrupt: Callable[[], object]) -> Iterator[None]:
    """`Deadline.interrupting` for the deadline there is; raises as `check_deadline` at the end.

    The error counts more than what the interrupted work itself raised.
    """
    deadline = _current.get()
    if deadline is None:
        yield
        return
    deadline.check()
    try:
        with deadline.interrupting(interrupt):
            yield
    except Exception:
        deadline.check()
        raise
