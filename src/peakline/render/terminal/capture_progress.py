"""A line for every host of a capture, on a terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from peakline.render.terminal.layout import begin_of, cut, width_of
from peakline.render.terminal.live import bar, clock, live_lines
from peakline.text import one_line

if TYPE_CHECKING:
    from peakline.capture import CaptureRequest
    from peakline.capture import Progress as Report

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
