"""How many requests work at once, and how many more may wait."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from peakline.deadline import check_deadline, wait_for
from peakline.errors import BusyError


class Gate:
    """Lets ``concurrent`` in at a time, in the order in which they came; ``queued`` may wait."""

    def __init__(self, concurrent: int, queued: int) -> None:
        if concurrent < 1 or queued < 0:
            raise ValueError(f"a gate for {concurrent} at once and {queued} waiting")
        self._concurrent, self._queued = concurrent, queued
        self._lock = threading.Lock()
        self._running = 0
        self._line: deque[_Ticket] = deque()

    @property
    def running(self) -> int:
        """How many are inside."""
        return self._running

    @property
    def waiting(self) -> int:
        """How many wait to be let in."""
        return len(self._line)

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Be inside for the block. Waits no longer than the deadline.

        Raises BusyError when too many wait already, DeadlineError or CancelledError.
        """
        check_deadline()
        self._come_in()
        try:
            yield
        finally:
            self._leave()

    def _come_in(self) -> None:
        with self._lock:
            if self._running < self._concurrent:
                self._running += 1
                return
            if len(self._line) >= self._queued:
                raise BusyError(
                    f"{self._running} requests are being answered and {len(self._line)} wait; "
                    "try again later"
                )
            ticket = _Ticket()
            self._line.append(ticket)
        try:
            wait_for(ticket.called)
        except BaseException:
            with self._lock:
                if not ticket.is_inside:
                    self._line.remove(ticket)
                    raise
            self._leave()
            raise

    def _leave(self) -> None:
        with self._lock:
            if self._line:
                # The place goes to the next one, so nobody who comes now overtakes.
                ticket = self._line.popleft()
                ticket.is_inside = True
                ticket.called.set()
            else:
                self._running -= 1


class _Ticket:
    """One who waits; ``called`` is also set to wake one whose deadline was cancelled."""

    def __init__(self) -> None:
        self.called = threading.Event()
        self.is_inside = False
