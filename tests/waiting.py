"""Waiting for what another thread or process does: by events, under one bound for all."""

from __future__ import annotations

import time
from collections.abc import Callable

from peakline.deadline import Deadline

__all__ = ["HANG_S", "EndedDeadline", "until"]

HANG_S = 180.0
"""Far beyond anything a test waits for, also on a slow machine that does much else: who waits this
long has found a hang.
"""
_LOOK_S = 0.01


def until(
    is_so: Callable[[], object], what: str = "what the test waits for", pause_s: float = _LOOK_S
) -> None:
    """Come back when ``is_so()`` is; for what tells nobody when it happens."""
    end = time.monotonic() + HANG_S
    while not is_so():
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(pause_s)


class EndedDeadline(Deadline):
    """A deadline whose time is over when a test says so, however slow the machine is."""

    def __init__(self) -> None:
        super().__init__(HANG_S)

    def end(self) -> None:
        self._end = time.monotonic()
