"""Hosts read on a Dask cluster: that of an address, or one of processes on this machine."""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable
from contextlib import nullcontext, suppress
from importlib import import_module
from typing import Any

from peakline.deadline import Deadline, check_deadline, current_deadline
from peakline.engine.answers import Answer
from peakline.engine.work import LostWorkerError, NoWorkersError, Task, reply, request, understood
from peakline.errors import PeaklineError, RemoteError, UsageError
from peakline.extras import require
from peakline.wire import threads

_CONNECTING_S = 10
_LOOK_S = 0.5
_PAGES = ("distributed.scheduler.http.routes", "distributed.worker.http.routes")
_DEATHS = "distributed.scheduler.allowed-failures"
"""How many workers may end while they work on a host, until it is taken to be the reason."""
_SAMPLES = "distributed.worker.profile.enabled"
"""Workers that look a hundred times a second what they do have the less time for it."""
_MOST_AT_ONCE = 128
"""Hosts read at once at most: each waits in a thread of this process."""


class DaskCluster:
    """A client of ``scheduler``'s cluster; without one, of ``workers`` processes on this machine.

    The workers need the same Peakline, and see the files under the same paths or URLs. One that
    works when the deadline ends does so until it notices by itself, a fraction of a second later;
    where the asker goes away without a deadline it finishes what it has begun.
    """

    def __init__(self, workers: int | None = None, scheduler: str | None = None) -> None:
        self._wanted, self._scheduler = workers, scheduler
        self._lock = threading.Lock()
        self._open: list[Any] = []
        """The client, and the cluster that was started for it."""
        self._finalizer = weakref.finalize(self, _close_all, self._open)

    @property
    def workers(self) -> int:
        """How many hosts are read at once: so many as were wanted, or as the cluster has threads.

        Raises as `start`.
        """
        if self._wanted is not None:
            return self._wanted
        result = sum(map(int, self._client().nthreads().values()))
        return min(max(1, result), _MOST_AT_ONCE)

    def start(self) -> None:
        """Connect; raises UsageError without Dask, RemoteError when nobody answers."""
        self._client()

    def ask(self, task: Task, here: Callable[[], Answer]) -> Answer:  # noqa: ARG002
        """As `Executor.ask`."""
        question = request(task)
        client = self._client()
        try:
            # A worker's death is no fault of the task: the scheduler gives it to another one.
            future = client.submit(reply, question, pure=False, retries=0)
        except Exception as error:
            raise NoWorkersError(str(_lost(error))) from error
        try:
            result = self._waited(client, future)
        finally:
            if client.status == "running" and not future.done():
                with suppress(Exception):
                    future.cancel(force=True)
        return understood(result)

    def _waited(self, client: Any, future: Any) -> bytes:
        """The result of ``future``; raises as `check_deadline`, or RemoteError."""
        ended, deadline = threading.Event(), current_deadline()
        future.add_done_callback(lambda _: ended.set())
        missed = 0.0
        with deadline.on_cancel(ended.set) if deadline else nullcontext():
            while not ended.wait(_look(deadline)):
                check_deadline()
                # A client whose scheduler is gone tries for long to reach it, and says nothing.
                missed = 0.0 if client.status == "running" else missed + _LOOK_S
                if client.status == "closed" or missed > _CONNECTING_S:
                    raise NoWorkersError("the Dask scheduler does not answer any more")
        check_deadline()
        try:
            result: bytes = future.result(timeout=_CONNECTING_S)
        except Exception as error:
            check_deadline()
            raise _lost(error) from error
        return result

    def close(self) -> None:
        """Leave the cluster, and end it where it was started for this."""
        with self._lock:
            _close_all(self._open)

    def _client(self) -> Any:
        with self._lock:
            if self._open and self._open[0].status == "closed":
                _close_all(self._open)
            if not self._open:
                self._open += _connect(self._scheduler, self._wanted or threads())
            return self._open[0]


def _look(deadline: Deadline | None) -> float:
    """How long to wait until the next look."""
    left = None if deadline is None else deadline.remaining()
    return _LOOK_S if left is None else min(_LOOK_S, left)


def _connect(scheduler: str | None, workers: int) -> list[Any]:
    require("dask", "--executor dask")
    distributed: Any = import_module("distributed")
    if scheduler is not None:
        _check_address(scheduler)
    opened: list[Any] = []
    address: Any = scheduler
    try:
        if scheduler is None:
            # Whoever may send to a scheduler runs code as its user, and every user of the machine
            # can connect to its port: only who has the certificate made here is answered. The pages
            # about it ask for none, so there are none.
            security = distributed.Security.temporary()
            dask: Any = import_module("dask")
            with dask.config.set({**{key: [] for key in _PAGES}, _DEATHS: 1, _SAMPLES: False}):
                # One question at a time keeps each worker within its share of the memory.
                address = distributed.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    dashboard_address=None,
                    silence_logs=logging.CRITICAL,
                    protocol="tls",
                    security=security,
                )
            opened.append(address)
        opened.insert(0, distributed.Client(address, timeout=_CONNECTING_S, set_as_default=False))
    except Exception as error:
        _close_all(opened)
        where = "a local Dask cluster" if scheduler is None else f"the Dask scheduler {scheduler}"
        reason = " ".join(str(error).split()) or type(error).__name__
        raise NoWorkersError(f"{where} cannot be reached: {reason:.300}").quoting(
            scheduler or ""
        ) from error
    return opened


def _check_address(scheduler: str) -> None:
    comm: Any = import_module("distributed.comm")
    try:
        comm.get_address_host_port(scheduler)
    except ValueError as error:
        shown = f"{scheduler!r:.200}"
        raise UsageError(f"scheduler {shown}: write tcp://HOST:PORT ({error})").quoting(
            shown, scheduler
        ) from None


def _close_all(opened: list[Any]) -> None:
    while opened:
        with suppress(Exception):  # a cluster that is gone is closed
            opened.pop(0).close()


def _lost(error: Exception) -> PeaklineError:
    """What happened to a task that brought no answer."""
    reason = " ".join(str(error).split()) or type(error).__name__
    if type(error).__name__ == "KilledWorker":
        return LostWorkerError(
            "on the Dask cluster: the workers that worked on it were lost, one after the other "
            "(out of memory?)"
        )
    return RemoteError(f"on the Dask cluster: {reason:.300}")
