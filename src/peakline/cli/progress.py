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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from peakline.progress import Progress, current_progress, showing
from peakline.safe_text import cut_middle
from peakline.text import size_text

_FIRST_S, _EVERY_S = 1.0, 0.1
_ERASE = "\r\x1b[K"
_NO_CURSOR = frozenset({"", "dumb", "unknown"})


class Line:
    """The line on ``stream`` for one piece of work. What others write goes through `write`: it
    takes the line away first, and nothing is drawn behind a text without a line break.
    """

    def __init__(self, progress: Progress, stream: TextIO) -> None:
        self._progress, self._stream = progress, stream
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._is_shown, self._at_begin = False, True
        self._thread = threading.Thread(target=self._draw, name="progress", daemon=True)
        self._thread.start()

    def _draw(self) -> None:
        if self._ended.wait(_FIRST_S):
            return
        while True:
            with self._lock:
                if self._at_begin and not self._ended.is_set():
                    text = progress_text(self._progress, time.monotonic() - self._began)
                    self._put(_ERASE + cut_middle(text, _columns(self._stream) - 1))
                    self._is_shown = True
            if self._ended.wait(_EVERY_S):
                return

    def write(self, stream: TextIO, text: str) -> int:
        """Write to a stream of the same terminal, at once; the line comes back beneath."""
        with self._lock:
            self._erase()
            written = stream.write(text)
            stream.flush()
            self._at_begin = text.endswith("\n") if text else self._at_begin
        return written

    def hide(self) -> None:
        """Take the line away for good, and do not wait for the thread that draws."""
        self._ended.set()
        with self._lock:
            self._erase()

    def end(self) -> None:
        """Take the line away for good."""
        self.hide()
        self._thread.join()

    def _erase(self) -> None:
        if self._is_shown:
            self._put(_ERASE)
            self._is_shown = False

    def _put(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._ended.set()  # the terminal is gone


class _Beside:
    """A stream of the terminal on which the line is drawn."""

    def __init__(self, stream: TextIO, line: Line) -> None:
        self._stream, self._line = stream, line

    def write(self, text: str) -> int:
        return self._line.write(self._stream, text)

    def __getattr__(self, name: str) -> object:
        if name == "buffer":
            # Whoever takes the bytes below it writes the answer, unseen from here.
            self._line.hide()
        return getattr(self._stream, name)


def progress_text(progress: Progress, elapsed_s: float) -> str:
    """What the line says: the stage, how much of it is done, and the time that it has left."""
    parts = [progress.stage or "working"]
    done, total = progress.done, progress.total
    if progress.unit == "bytes" and done:
        of = f" of {size_text(total)}" if total >= done else ""
        parts.append(f"{size_text(done)}{of}")
    elif total and progress.unit != "bytes":
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
    sys.stdout = _Beside(out, line) if out.isatty() else out
    sys.stderr = _Beside(err, line)
    try:
        with showing(progress):
            yield progress
    finally:
        sys.stdout, sys.stderr = out, err
        line.end()


@contextmanager
def of_hosts() -> Iterator[Callable[[str, int, int], object] | None]:
    """Say how many hosts are done, to whoever shows it; what each of them does is not said."""
    progress = current_progress()
    if progress is None:
        yield None
        return

    def report(_name: str, done: int, hosts: int) -> None:
        progress.done, progress.total = done, hosts

    progress.begin("reading the hosts", 0, "hosts")
    with showing(None):
        yield report
