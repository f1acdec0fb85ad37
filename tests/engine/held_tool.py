"""An analysis that takes as long as a test wants, or as somebody waits for it."""

import threading

import pytest

from peakline.deadline import check_deadline
from peakline.engine import engine

_LOOK_S = 0.005


class HeldTool:
    """Holds the answers of ``tool`` about single hosts, in this process; the first ``free`` of
    them are made.

    Whoever works on another looks at the deadline over and over, as long work does, until
    `let_go`; the profile is on lease meanwhile. ``held`` has the host of each that was held.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, tool: str, *, free: int = 0) -> None:
        self.held: list[str] = []
        self._free = threading.Semaphore(free)
        self._go_on = threading.Event()
        ask_host = engine.ask_host

        def ask(task, profile):
            if task.tool != tool:
                return ask_host(task, profile)
            if not self._free.acquire(blocking=False):
                self._hold(task.file.host)
                return ask_host(task, profile)
            try:
                return ask_host(task, profile)
            except BaseException:
                self._free.release()
                raise

        monkeypatch.setattr(engine, "ask_host", ask)

    def let_go(self) -> None:
        """From now on nothing is held."""
        self._go_on.set()

    def _hold(self, host: str) -> None:
        self.held.append(host)
        while not self._go_on.wait(_LOOK_S):
            check_deadline()
