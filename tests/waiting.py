"""Waiting for what another thread or process does: by events, under one bound for all."""

import time
from collections.abc import Callable, Iterator

import pytest

from peakline.deadline import Deadline

HANG_S = 180.0
"""Far beyond anything a test waits for, also on a slow machine that does much else: who waits this
long has found a hang.
"""
_LOOK_S = 0.01


def until(
    is_so: Callable[[], object], what: str = "what the test waits for", pause_s: float = _LOOK_S
) -> None:
    """Come back when ``is_so()`` is; for what sends no event when it happens."""
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


def growing(first_s: float = 0.1) -> Iterator[float]:
    """Times, each twice the one before: for a deadline that must not be over before the work under
    it got somewhere. A machine that is too slow for one gets there within a later one.
    """
    seconds = first_s
    while seconds < HANG_S:
        yield seconds
        seconds *= 2
    pytest.fail(f"not even within {seconds / 2:.0f} s")
