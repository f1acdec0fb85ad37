"""Threads that do the work of event loops, each piece under its deadline and in its turn.

An event loop decodes no profile. Who waits for a turn holds no thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, nullcontext, suppress
from contextvars import copy_context
from typing import TypeVar

from peakline.deadline import Deadline, check_deadline, within
from peakline.engine import Gate
from peakline.engine.gate import Caller, Ticket, called_by

_T = TypeVar("_T")


class Workers:
    """At most ``threads`` threads, which stay once they are there."""

    def __init__(self, threads: int, name: str) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)

    async def run(
        self, work: Callable[[], _T], *, deadline: Deadline, caller: Caller, gate: Gate | None
    ) -> _T:
        """What ``work`` returns, done for ``caller`` once ``gate`` lets it in, under ``deadline``.

        The deadline is cancelled when nobody awaits this any more; the place is given up when the
        work has really ended. Raises as ``work`` does, BusyError, DeadlineError, CancelledError.
        """
        try:
            ticket = None if gate is None else await _let_in(gate, caller, deadline)

            def under_deadline() -> _T:
                place = nullcontext() if gate is None else gate.held()
                with called_by(caller), within(deadline), place:
                    check_deadline()
                    return work()

            def leave(_: object = None) -> None:
                if gate is not None and ticket is not None:
                    gate.leave(ticket)

            try:
                done = self._pool.submit(copy_context().run, under_deadline)
            except BaseException:
                leave()
                raise
            done.add_done_callback(leave)
            return await asyncio.wrap_future(done)
        finally:
            deadline.cancel()

    def close(self) -> None:
        """Begin nothing more; what runs goes on until it looks at its deadline."""
        self._pool.shutdown(wait=False, cancel_futures=True)


@asynccontextmanager
async def inside(gate: Gate, caller: Caller, deadline: Deadline) -> AsyncIterator[None]:
    """Be inside ``gate`` for the block, and in the contexts that are copied there."""
    ticket = await _let_in(gate, caller, deadline)
    try:
        with gate.held():
            yield
    finally:
        gate.leave(ticket)


async def _let_in(gate: Gate, caller: Caller, deadline: Deadline) -> Ticket:
    """A ticket that ``gate`` let in; `Gate.leave` gives it back."""
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with suppress(RuntimeError):  # the loop has ended, and with it who waited
            loop.call_soon_threadsafe(changed.set)

    deadline.check()
    ticket = gate.join(wake, caller)
    try:
        with deadline.on_cancel(wake):
            while not ticket.is_inside:
                ticket.check()
                deadline.check()
                with suppress(TimeoutError):
                    async with asyncio.timeout(deadline.remaining()):
                        await changed.wait()
                changed.clear()
    except BaseException:
        gate.leave(ticket)
        raise
    return ticket
