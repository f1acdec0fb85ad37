"""How far long work is: said by the work, shown by a face that wants to.

Work says which stage it has begun and how many bytes of it are done. That sets two numbers of the
`Progress` of the context (`contextvars`), where there is one, and nothing waits for whoever shows
them: a face reads the numbers when it draws. Without a `Progress` nothing happens.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_current: ContextVar[Progress | None] = ContextVar("progress", default=None)


class Progress:
    """What the work says: the ``stage`` that is going on, since ``began`` (`time.monotonic`), and
    how many of its ``total`` units are ``done``; ``total`` is 0 where that is not known. The
    ``unit`` is ``bytes`` or a plural noun.

    Threads may share one: a number may be a moment late, and is never waited for.
    """

    def __init__(self) -> None:
        self.stage = ""
        self.done = 0
        self.total = 0
        self.unit = "bytes"
        self.began = time.monotonic()

    def begin(self, stage: str, total: int = 0, unit: str = "bytes") -> None:
        """Another stage begins, of so many units (0: nobody knows)."""
        self.done, self.total, self.unit = 0, total, unit
        self.stage, self.began = stage, time.monotonic()

    def advance(self, count: int) -> None:
        """So many units more are done."""
        self.done += count

    def left_s(self) -> float | None:
        """Seconds until the stage ends if it goes on as before; None where that is not known."""
        if not self.total > 0 or not self.total / 50 <= self.done <= self.total:
            return None
        return (time.monotonic() - self.began) * (self.total - self.done) / self.done


@contextmanager
def showing(progress: Progress | None) -> Iterator[Progress | None]:
    """The block's work says to ``progress`` how far it is; with None to nobody."""
    token = _current.set(progress)
    try:
        yield progress
    finally:
        _current.reset(token)


def current_progress() -> Progress | None:
    """The one of this context, None where nobody shows it."""
    return _current.get()


@contextmanager
def stage(name: str, total: int = 0, unit: str = "bytes") -> Iterator[None]:
    """The block is a stage of the work; the one around it goes on when it ends, and gives its name
    to one without.
    """
    progress = _current.get()
    if progress is None:
        yield
        return
    before = (progress.stage, progress.done, progress.total, progress.unit, progress.began)
    progress.begin(name or progress.stage, total, unit)
    try:
        yield
    finally:
        progress.stage, progress.done, progress.total, progress.unit, progress.began = before


def advance(count: int) -> None:
    """So many units more of the stage are done."""
    progress = _current.get()
    if progress is not None:
        progress.done += count
