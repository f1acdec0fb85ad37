"""How far long work is, on one line of a terminal, which is gone when the work is done.

A thread of its own reads what the work says (`peakline.progress`) and draws: the work never waits
for a terminal. Nothing is drawn in the first second, nor where standard error is no terminal, or
one that cannot move its cursor.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from peakline.progress import Progress, showing
from peakline.text import cut_middle, size_text

_FIRST_S, _EVERY_S = 1.0, 0.1
_ERASE = "\r\x1b[K"
_NO_CURSOR = frozenset({"", "dumb", "unknown"})


class Line:
    """The line on ``stream`` for one piece of work; `write` of others takes it away first."""

    def __init__(self, progress: Progress, stream: TextIO) -> None:
        self._progress, self._stream = progress, stream
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._is_shown = False
        self._thread = threading.Thread(target=self._draw, name="progress", daemon=True)
        self._thread.start()

    def _draw(self) -> None:
        if self._ended.wait(_FIRST_S):
            return
        while True:
            with self._lock:
                if not self._ended.is_set():
                    text = progress_text(self._progress, time.monotonic() - self._began)
                    self._put(_ERASE + cut_middle(text, _columns(self._stream) - 1))
                    self._is_shown = True
            if self._ended.wait(_EVERY_S):
                return

    def erase(self) -> None:
        """Take the line away; it comes back with the next drawing."""
        with self._lock:
            if self._is_shown:
                self._put(_ERASE)
                self._is_shown = False

    def end(self) -> None:
        """Take the line away for good."""
        self._ended.set()
        self.erase()
        self._thread.join()

    def _put(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._ended.set()  # the terminal is gone


class _Clearing:
    """A stream that takes the line away before anything else is written."""

    def __init__(self, stream: TextIO, line: Line) -> None:
        self._stream, self._line = stream, line

    def write(self, text: str) -> int:
        self._line.erase()
        return self._stream.write(text)

    def __getattr__(self, name: str) -> object:
        # Whoever takes the bytes below (`buffer`) writes at once, and on top of the line.
        if name == "buffer":
            self._line.erase()
        return getattr(self._stream, name)


def progress_text(progress: Progress, elapsed_s: float) -> str:
    """What the line says: the stage, how much of it is done, and the time that it has left."""
    parts = [progress.stage or "working"]
    done, total = progress.done, progress.total
    if progress.unit == "bytes" and done:
        of = f" of {size_text(total)}" if total >= done else ""
        parts.append(f"{size_text(done)}{of}")
    elif total:
        parts.append(f"{done:,} of {total:,} {progress.unit}")
    parts.append(_seconds(elapsed_s))
    left = progress.left_s()
    if left is not None and left >= 1:
        parts.append(f"about {_seconds(left)} left in this stage")
    return ", ".join(parts)


def _seconds(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except (OSError, ValueError):
        return 80


def is_drawn(stream: TextIO) -> bool:
    """Whether a line can be drawn on ``stream`` and taken away again."""
    try:
        return stream.isatty() and os.environ.get("TERM", "") not in _NO_CURSOR
    except ValueError:
        return False


@contextmanager
def drawn_progress() -> Iterator[Progress | None]:
    """The block's work is drawn on standard error, where that can be; what is written meanwhile
    to either stream stands where it would without.
    """
    if not is_drawn(sys.stderr):
        yield None
        return
    line = Line(progress := Progress(), sys.stderr)
    out, err = sys.stdout, sys.stderr
    sys.stdout = _Clearing(out, line) if out.isatty() else out  # type: ignore[assignment]
    sys.stderr = _Clearing(err, line)  # type: ignore[assignment]
    try:
        with showing(progress):
            yield progress
    finally:
        sys.stdout, sys.stderr = out, err
        line.end()
