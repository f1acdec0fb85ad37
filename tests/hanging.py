"""Ending what would go on for hours: a loop or an expression that takes the square of its text."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

from tests.waiting import HANG_S


@contextmanager
def no_hang(seconds: float = HANG_S) -> Iterator[None]:
    """Fail when the block has not ended after ``seconds``, wherever it is by then.

    For what takes moments on any machine, and hours on every one if it grows with the square: give
    it a text for which nothing lies between the two. Python's loops and regular expressions look
    at signals; a call of a library does not, and would only fail when it comes back.
    """

    def fail(*_: object) -> None:
        raise AssertionError(f"it goes on after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, fail)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
