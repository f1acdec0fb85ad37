"""Where the hosts of a session are read (threads, processes, a Dask cluster), and many at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from contextvars import copy_context
from typing import Protocol, TypeVar

from peakline.deadline import Deadline, current_deadline, within
from peakline.engine.answers import Answer
from peakline.engine.work import HostTask, NoWorkersError
from peakline.errors import (
    BusyError,
    CancelledError,
    DeadlineError,
    InputError,
    PeaklineError,
    UsageError,
)
from peakline.toolbox.parameters import check_choice
from peakline.wire import threads

EXECUTORS = ("threads", "processes", "dask")
"""The names of the executors; the first is the default."""


class Executor(Protocol):
    """Reads hosts, up to ``workers`` of them at once; may be used from several threads."""

    @property
    def workers(self) -> int:
        """How many hosts are read at once."""

    def start(self) -> None:
        """Get ready, where that takes time or may fail; else done with the first question.

        Raises UsageError for what is not installed, RemoteError for a cluster that does not answer.
        """

    def ask(self, task: HostTask, here: Callable[[], Answer]) -> Answer:
        """The answer to ``task``, which ``here`` would give in this process.

        Ends at the deadline. Raises what ``here`` raises; RemoteError where the worker was lost.
        """

    def close(self) -> None:
        """End everything that was started; whoever asks afterwards starts it again."""


class Threads:
    """Hosts are read in threads of this process, which share its decoded profiles."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or threads()

    def start(self) -> None:
        """Nothing to do."""

    def ask(self, task: HostTask, here: Callable[[], Answer]) -> Answer:  # noqa: ARG002
        """As the protocol says."""
        return here()

    def close(self) -> None:
        """Nothing to do."""


def check_executor(name: str, workers: int | None = None, scheduler: str | None = None) -> None:
    """Raise UsageError for an unknown name, a number below 1 or a scheduler without Dask."""
    check_choice(name, EXECUTORS, "no executor")
    if workers is not None and workers < 1:
        raise UsageError(f"workers {workers}: at least 1")
    if scheduler is not None and name != "dask":
        raise UsageError(f"a scheduler is for the executor dask, not for {name}")


def make_executor(
    name: str = "threads", *, workers: int | None = None, scheduler: str | None = None
) -> Executor:
    """The executor of that name; ``workers`` (default: one for each core) hosts at once.

    ``scheduler`` is the address of a Dask cluster; without one, a cluster of ``workers`` processes
    is started on this machine. Raises UsageError as `check_executor`; nothing is started yet.
    """
    check_executor(name, workers, scheduler)
    if name == "processes":
        from peakline.engine.processes import Processes

        return Processes(workers)
    if name == "dask":
        from peakline.engine.dask_cluster import DaskCluster

        return DaskCluster(workers, scheduler)
    return Threads(workers)


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

    Up to ``workers`` (default: one for each core) at once; ``finished`` is called for each that is
    done, whatever came of it, in any thread. Each runs under the caller's deadline, whose end is
    raised and not returned, as is that nobody is left who could answer. What ends one so, and
    Ctrl-C, ends all.
    """

    def attempt(host: K) -> V | PeaklineError:
        failed: PeaklineError | None = None
        try:
            answer = ask(host)
        except (BusyError, CancelledError, DeadlineError, NoWorkersError):
            raise
        except PeaklineError as error:
            # As a value it must not hold what the frames it came through hold (a mapped file).
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
