"""Where the hosts of a session are asked: threads of this process, processes, a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from peakline.engine.answers import Answer
from peakline.engine.work import HostTask
from peakline.errors import UsageError
from peakline.wire import threads

EXECUTORS = ("threads", "processes", "dask")
"""The names of the executors; the first is the default."""


class Executor(Protocol):
    """Asks hosts, up to ``workers`` of them at once; may be asked from several threads."""

    @property
    def workers(self) -> int:
        """How many hosts are asked at once."""

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
    """Hosts are asked in threads of this process, which share its decoded profiles."""

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
    if name not in EXECUTORS:
        shown = f"{name!r:.80}"
        raise UsageError(f"no executor {shown}; there is: {', '.join(EXECUTORS)}").quoting(shown)
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
