"""Lines on a terminal that change while something is under way."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from peakline.render.terminal.layout import begin_of, terminal_width

_PER_SECOND = 8
_UP, _CLEAR = "\x1b[{}A", "\r\x1b[J"
_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"

Draw = Callable[[int], Sequence[str]]
"""Makes the lines for a width."""


@contextmanager
def live_lines(draw: Draw, stream: TextIO | None = None) -> Iterator[Callable[[], None]]:
    """Show the lines that ``draw`` makes on a terminal (default: standard error), again and again
    until the block ends; gives what draws them at once. The last ones stay there.

    They are cut at the terminal's width: a line that it wraps could not be drawn over.
    """
    screen = _Screen(draw, sys.stderr if stream is None else stream)
    ended = threading.Event()

    def again() -> None:
        while not ended.wait(1 / _PER_SECOND):
            screen.draw()

    drawer = threading.Thread(target=again, daemon=True)
    screen.begin()
    drawer.start()
    try:
        yield screen.draw
    finally:
        ended.set()
        drawer.join()
        screen.end()


class _Screen:
    """Where the lines are that were drawn last."""

    def __init__(self, draw: Draw, stream: TextIO) -> None:
        self._make, self._stream = draw, stream
        self._drawn = 0
        self._lock = threading.Lock()

    def begin(self) -> None:
        self._stream.write(_HIDE)
        self.draw()

    def draw(self) -> None:
        with self._lock:
            # The last column stays free: some terminals go on to the next line behind it.
            width = (terminal_width(self._stream) or 80) - 1
            lines = [begin_of(line, width).rstrip() for line in self._make(width)]
            self._stream.write(self._back() + "".join(f"{line}\n" for line in lines))
            self._stream.flush()
            self._drawn = len(lines)

    def _back(self) -> str:
        return (_UP.format(self._drawn) if self._drawn else "") + _CLEAR

    def end(self) -> None:
        self.draw()
        self._stream.write(_SHOW)
        self._stream.flush()


def bar(share: float, width: int) -> str:
    """A bar of ``width`` columns that is filled to ``share``."""
    filled = round(min(max(share, 0.0), 1.0) * width)
    return "━" * filled + "╌" * (width - filled)


def clock(seconds: float) -> str:
    """A time as ``0:01:23``."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
