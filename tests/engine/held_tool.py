"""An analysis that takes as long as a test wants, or as somebody waits for it."""

from __future__ import annotations

import threading

import pytest

from peakline.deadline import check_deadline
from peakline.engine import engine

__all__ = ["HeldTool"]

_LOOK_S = 0.005


class HeldTool:
    """Holds the answers of ``tool`` about single hosts, in this process.

    Whoever works on one looks at the deadline over and over, as long work does, until `let_go`;
    the profile is on lease meanwhile. ``begun`` has the hosts of all that began; only after the
    first ``free`` of them the others are held.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tool: str, *, free: int = 0) -> None:
        self.begun: list[str] = []
        self._free = free
        self._go_on = threading.Event()
        ask_host = engine.ask_host

        def ask(task, profile):
            if task.tool == tool:
                self._hold(task.file.host)
            return ask_host(task, profile)

        monkeypatch.setattr(engine, "ask_host", ask)

    def let_go(self) -> None:
        """From now on nothing is held."""
        self._go_on.set()

    def _hold(self, host: str) -> None:
        self.begun.append(host)
        if len(self.begun) <= self._free:
            return
        while not self._go_on.wait(_LOOK_S):
            check_deadline()
