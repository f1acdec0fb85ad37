"""The same question to many hosts at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from peakline.errors import BusyError, CancelledError, DeadlineError, PeaklineError
from peakline.wire import threads

__all__ = ["fan_out"]

K = TypeVar("K")
V = TypeVar("V")


def fan_out(ask: Callable[[K], V], hosts: Sequence[K]) -> list[V | PeaklineError]:
    """What ``ask`` returns for each of ``hosts``, in order, or the error with which it failed.

    Each runs under the caller's deadline, whose end is raised and not returned.
    """

    def attempt(host: K) -> V | PeaklineError:
        try:
            return ask(host)
        except (BusyError, CancelledError, DeadlineError):
            raise
        except PeaklineError as error:
            # Kept as a value it must not keep what the frames it came through hold (a mapped file).
            return error.with_traceback(None)

    if len(hosts) == 1:
        return [attempt(hosts[0])]
    pool = ThreadPoolExecutor(min(len(hosts), threads()), thread_name_prefix="host")
    try:
        futures = [pool.submit(copy_context().run, attempt, host) for host in hosts]
        return [future.result() for future in futures]
    finally:
        pool.shutdown(cancel_futures=True)
