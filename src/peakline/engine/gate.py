"""How many requests work at once, how many more may wait, and whose turn it is.

Callers share a gate: a place that becomes free goes to the caller who has the fewest, then to the
one whose last turn was the longest ago, and when the line is full it is the caller with the most
requests in it who loses one. So a caller with a thousand requests delays one with a single request
by no more than one of them.
"""

from __future__ import annotations

import itertools
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from peakline.deadline import check_deadline, wait_for
from peakline.errors import BusyError

Caller = tuple[str, ...]
"""Who sends requests, the widest group first: a token, and the address that it comes from.

Groups share as callers do: those of one token together have what those of another have.
"""

_caller: ContextVar[Caller] = ContextVar("caller", default=())
_inside: ContextVar[frozenset[Gate]] = ContextVar("inside", default=frozenset())


@contextmanager
def called_by(caller: Caller) -> Iterator[None]:
    """Do the block's work for ``caller``, whose share of every gate it takes."""
    token = _caller.set(caller)
    try:
        yield
    finally:
        _caller.reset(token)


class Gate:
    """Lets ``concurrent`` in at a time; ``queued`` may wait. Thread-safe."""

    def __init__(self, concurrent: int, queued: int) -> None:
        if concurrent < 1 or queued < 0:
            raise ValueError(f"a gate for {concurrent} at once and {queued} waiting")
        self._concurrent, self._queued = concurrent, queued
        self._lock = threading.Lock()
        self._running = self._waiting = 0
        self._lines: dict[Caller, deque[Ticket]] = {}
        self._shares: dict[Caller, _Share] = {}
        """By caller and by every group of callers, while they have requests here."""
        self._turns = itertools.count()

    @property
    def running(self) -> int:
        """How many are inside."""
        return self._running

    @property
    def waiting(self) -> int:
        """How many wait to be let in."""
        return self._waiting

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Be inside for the block, as the caller of `called_by`. Waits no longer than the deadline.

        Within `held` there is a place already. Raises BusyError when too many wait already,
        DeadlineError or CancelledError.
        """
        check_deadline()
        if self in _inside.get():
            yield
            return
        called = threading.Event()
        ticket = self.join(called.set, _caller.get())
        try:
            if not ticket.is_inside:
                wait_for(called)
                ticket.check()
            yield
        finally:
            self.leave(ticket)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Do the block's work, `enter` included, in the place of a ticket that is inside."""
        token = _inside.set(_inside.get() | {self})
        try:
            yield
        finally:
            _inside.reset(token)

    def join(self, wake: Callable[[], object], caller: Caller = ()) -> Ticket:
        """Come in, or stand in line; ``wake`` is called, in any thread, when that has an end.

        Every ticket is given back with `leave`. Raises BusyError when too many wait already.
        """
        ticket, refused = Ticket(wake, caller), None
        with self._lock:
            if self._running < self._concurrent:
                self._let_in(ticket)
                return ticket
            self._line_up(ticket)
            if self._waiting > self._queued:
                refused = self._lines[self._heaviest(caller)][-1]
                self._unline(refused)
                refused.refusal = (
                    f"{self._running} requests are being answered and {self._waiting} wait; "
                    "try again later"
                )
        if refused is not None and refused is not ticket:
            refused.wake()
        ticket.check()
        return ticket

    def leave(self, ticket: Ticket) -> None:
        """Give the place up, inside or in the line; whoever comes next is woken."""
        called = None
        with self._lock:
            if ticket.is_inside:
                ticket.is_inside = False
                self._running -= 1
                for share in self._of(ticket.caller):
                    share.running -= 1
                self._forget(ticket.caller)
                if self._lines:
                    called = self._lines[min(self._lines, key=self._rank)][0]
                    self._unline(called)
                    self._let_in(called)
            elif ticket in self._lines.get(ticket.caller, ()):
                self._unline(ticket)
        if called is not None:
            called.wake()

    def _let_in(self, ticket: Ticket) -> None:
        ticket.is_inside = True
        self._running += 1
        for share in self._of(ticket.caller):
            share.running += 1
            share.turn = next(self._turns)

    def _line_up(self, ticket: Ticket) -> None:
        self._lines.setdefault(ticket.caller, deque()).append(ticket)
        self._waiting += 1
        for share in self._of(ticket.caller):
            share.waiting += 1

    def _unline(self, ticket: Ticket) -> None:
        line = self._lines[ticket.caller]
        line.remove(ticket)
        if not line:
            del self._lines[ticket.caller]
        self._waiting -= 1
        for share in self._of(ticket.caller):
            share.waiting -= 1
        self._forget(ticket.caller)

    def _of(self, caller: Caller) -> list[_Share]:
        """The shares of the caller and of the groups it is in, the widest first."""
        shares = []
        for length in range(1, len(caller) + 1):
            share = self._shares.get(caller[:length])
            if share is None:
                # Whoever is new comes last in this round.
                share = self._shares[caller[:length]] = _Share(next(self._turns))
            shares.append(share)
        return shares

    def _forget(self, caller: Caller) -> None:
        for length in range(1, len(caller) + 1):
            share = self._shares.get(caller[:length])
            if share is not None and not share.running and not share.waiting:
                del self._shares[caller[:length]]

    def _rank(self, caller: Caller) -> tuple[tuple[int, int], ...]:
        """Whose turn it is: the least of these."""
        return tuple((share.running, share.turn) for share in self._of(caller))

    def _heaviest(self, newest: Caller) -> Caller:
        """Who waits with the most requests; of several ``newest``, the one who came last."""

        def weight(caller: Caller) -> tuple[list[int], bool]:
            return [share.waiting for share in self._of(caller)], caller == newest

        return max(self._lines, key=weight)


class Ticket:
    """One who came to a gate; ``refusal`` says why there is no place, once that is so."""

    def __init__(self, wake: Callable[[], object], caller: Caller) -> None:
        self.wake = wake
        self.caller = caller
        self.is_inside = False
        self.refusal = ""

    def check(self) -> None:
        """Raise BusyError when it was refused."""
        if self.refusal:
            raise BusyError(self.refusal)


class _Share:
    """What a caller, or a group of callers, has of a gate; ``turn`` numbers its last turn."""

    __slots__ = ("running", "turn", "waiting")

    def __init__(self, turn: int) -> None:
        self.running = self.waiting = 0
        self.turn = turn
