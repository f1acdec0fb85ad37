"""Lines on a terminal that change while something is under way."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TextIO

from peakline.document.capture import hosts_table
from peakline.render.terminal.layout import begin_of, cut, terminal_width, width_of
from peakline.render.terminal.screen import Shown, Text, grid_of, show
from peakline.safe_text import one_line

if TYPE_CHECKING:
    from peakline.capture import CaptureRequest, CaptureResult
    from peakline.capture import Progress as Report
    from peakline.repository import Repository

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


_NAMES = {"saved_by_host": "saved by the host"}
_ENDS = frozenset({"stored", "saved_by_host", "empty", "failed"})
_NOT_BEGUN = frozenset({"waiting", "connecting", "retrying"})
_BAR = 20
_LEAST_STATE = 12


@dataclass
class _Host:
    """What is known of a host; times in seconds. A bar fills by the clock while the host records:
    a profiler reports nothing meanwhile.
    """

    name: str
    since: float = field(default_factory=time.monotonic)
    state: str = ""
    recording_since: float | None = None
    is_recorded: bool = False
    took: float | None = None

    def report(self, state: str, detail: str) -> None:
        """Take a state that the capture is in."""
        named = _NAMES.get(state, state)
        self.state = one_line(f"{named}: {detail}" if detail else named)
        now = time.monotonic()
        self.recording_since = now if state == "recording" else None
        self.is_recorded = state != "recording" and state not in _NOT_BEGUN
        if state in _ENDS:
            self.took = now - self.since

    def share(self, length: float) -> float:
        """How much of a recording of ``length`` is done."""
        if self.recording_since is None:
            return float(self.is_recorded)
        return (time.monotonic() - self.recording_since) / max(length, 0.001)

    def line(self, length: float, width: int, name: int) -> str:
        """The host, its bar and its time; its state as far as there is room."""
        took = self.took if self.took is not None else time.monotonic() - self.since
        shown = cut(self.name, name)
        filled = bar(self.share(length), _BAR)
        head = f"{shown}{' ' * (name - width_of(shown))}  {filled}  {clock(took)}  "
        room = width - width_of(head)
        if width_of(self.state) <= room:
            return head + self.state
        return head + (f"{begin_of(self.state, room - 1)}…" if room > 1 else "")


@contextmanager
def show_progress(request: CaptureRequest) -> Iterator[Report]:
    """Draw the hosts' states on standard error until the block ends; gives what to report to."""
    length = (request.delay_ms + request.duration_ms) / 1000
    hosts = {target.host: _Host(one_line(target.host)) for target in request.targets}

    def draw(width: int) -> list[str]:
        room = max(width - _BAR - len("    0:00:00  ") - _LEAST_STATE, 8)
        name = min(max(width_of(host.name) for host in hosts.values()), room)
        return [host.line(length, width, name) for host in hosts.values()]

    with live_lines(draw) as redraw:

        def report(host: str, state: str, detail: str) -> None:
            hosts[host].report(state, detail)
            redraw()

        yield report


def print_capture(result: CaptureResult, repository: Repository) -> None:
    """Print where the session lies, and a line per host where there are several."""
    if not any(outcome.is_saved for outcome in result.outcomes):
        return
    session = repository.session(result.session_id)
    parts: list[Shown] = [Text(session.path)]
    if len(result.outcomes) > 1:
        parts.append(grid_of(hosts_table(result, session)))
    show(parts)
