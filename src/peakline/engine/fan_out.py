"""The same question to many hosts at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from contextvars import copy_context
from typing import TypeVar

from peakline.deadline import Deadline, current_deadline, within
from peakline.engine.work import NoWorkersError
from peakline.errors import (
    BusyError,
    CancelledError,
    DeadlineError,
    InputError,
    PeaklineError,
)
from peakline.wire import threads

K = TypeVar("K")
V = TypeVar("V")


class _Together(Deadline):
    """The deadline of many parts of one answer: the caller's, or the failure of one of them."""

    def __init__(self, above: Deadline | None) -> None:
        super().__init__()
        self._above = above

    def remaining(self) -> float | None:
        own = super().remaining()
        return own if own is not None or self._above is None else self._above.remaining()

    def check(self) -> None:
        if self._above is not None:
            self._above.check()
        super().check()


def fan_out(
    ask: Callable[[K], V],
    hosts: Sequence[K],
    workers: int | None = None,
    finished: Callable[[K], object] | None = None,
) -> list[V | PeaklineError]:
    """What ``ask`` returns for each of ``hosts``, in order, or the error with which it failed.

    Up to ``workers`` (default: one for each core) at once; ``finished`` is told of each that is
    done, whatever came of it, in any thread. Each runs under the caller's deadline, whose end is
    raised and not returned, as is that nobody is left who could be asked. What ends one so, and
    Ctrl-C, ends all.
    """

    def attempt(host: K) -> V | PeaklineError:
        failed: PeaklineError | None = None
        try:
            answer = ask(host)
        except (BusyError, CancelledError, DeadlineError, NoWorkersError):
            raise
        except PeaklineError as error:
            # Kept as a value it must not keep what the frames it came through hold (a mapped file).
            failed = error.with_traceback(None)
        except MemoryError:
            failed = InputError("there is not enough memory to read it")
        if finished is not None:
            finished(host)
        return answer if failed is None else failed

    if len(hosts) == 1:
        return [attempt(hosts[0])]
    above = current_deadline()
    together = _Together(above)
    pool = ThreadPoolExecutor(min(len(hosts), workers or threads()), thread_name_prefix="host")
    try:
        with above.on_cancel(together.cancel) if above else nullcontext(), within(together):
            futures = [pool.submit(copy_context().run, attempt, host) for host in hosts]
            return [future.result() for future in futures]
    except BaseException:
        together.cancel()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
