"""`capture`: one session on many hosts at once."""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from peakline.capture.address import Target
from peakline.capture.host import HostCapture
from peakline.capture.locks import WorkerLocks
from peakline.capture.request import (
    CaptureRequest,
    check_request,
    profile_request,
    start_timestamp_ns,
)
from peakline.capture.result import CaptureResult, HostOutcome, Progress
from peakline.capture.stop import Stop
from peakline.deadline import current_deadline
from peakline.errors import DeadlineError, RemoteError
from peakline.process_memory import give_back_memory
from peakline.repository import Repository

__all__ = ["capture"]

_LOCKS = WorkerLocks()
_LOOK_S = 0.25


def capture(
    request: CaptureRequest, repository: Repository, *, progress: Progress | None = None
) -> CaptureResult:
    """Record a session on every target in parallel and store it in ``repository``.

    A host that fails does not cost the others: see `HostOutcome`. The current deadline, its
    cancellation and KeyboardInterrupt end the calls to the hosts, which frees their profilers;
    what was stored whole by then stays, and a session without any profile leaves no directory.

    Raises ExistsError for a session id that is taken, RemoteError when every host failed (with
    each one's reason), DeadlineError when that is because the caller's time is over, CancelledError
    when the caller's deadline was cancelled, UsageError for a request that cannot work.
    """
    check_request(request)
    deadline = current_deadline()
    if deadline is not None:
        deadline.check()
    with repository.create_session(request.session_id) as session:
        root = repository.root
        start_ns = start_timestamp_ns(request.delay_ms)
        run = _Run(progress)
        hosts = [
            HostCapture(
                request=request,
                target=target,
                message=profile_request(
                    request, target, logdir=repository.logdir, root=root,
                    start_ns=start_ns,
                ).SerializeToString(),
                repository=repository,
                session=session,
                locks=_LOCKS,
                stop=run.stop,
                report=partial(run.report, target),
            )
            for target in request.targets
        ]  # fmt: skip
        with ExitStack() as stack:
            if deadline is not None:
                stack.enter_context(deadline.interrupting(run.stop.set))
            try:
                outcomes = run.wait_for(hosts)
            finally:
                give_back_memory()
    if deadline is not None and run.stop.is_set:
        try:
            deadline.check()
        except DeadlineError:
            if not any(outcome.is_kept for outcome in outcomes):
                raise
    if all(outcome.state == "failed" for outcome in outcomes):
        reasons = "; ".join(f"{outcome.address}: {outcome.error}" for outcome in outcomes)
        raise RemoteError(reasons)
    empty = all(outcome.state == "empty" for outcome in outcomes)
    return CaptureResult(request.session_id, tuple(outcomes), empty)


class _Run:
    """Threads, one a host, and the calling thread, which waits for them and tells of them.

    Progress is told from the calling thread, so that it may draw, and so that Ctrl-C, which
    Python gives to the main thread, is never stuck behind a call. No wait there is longer than a
    moment: a signal that comes just before one does not interrupt it, and is seen after it.
    """

    def __init__(self, progress: Progress | None) -> None:
        self.stop = Stop()
        self._progress = progress
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()

    def report(self, target: Target, state: str, detail: str) -> None:
        """Tell of a host, from any thread."""
        self._events.put(_Event(target.host, state, detail))

    def wait_for(self, hosts: Sequence[HostCapture]) -> list[HostOutcome]:
        """Run all of them. Whatever ends the wait early ends them too."""
        outcomes: dict[int, HostOutcome] = {}
        threads: list[threading.Thread] = []
        try:
            for number, host in enumerate(hosts):
                threads.append(self._thread(number, host))
                threads[-1].start()
            while len(outcomes) < len(hosts):
                try:
                    event = self._events.get(timeout=_LOOK_S)
                except queue.Empty:
                    continue
                event.check()
                if event.outcome is not None:
                    outcomes[event.number] = event.outcome
                elif self._progress is not None:
                    self._progress(event.host, event.state, event.detail)
        except BaseException:
            self.stop.set()
            raise
        finally:
            # None is left writing when the session is closed.
            for thread in threads:
                while thread.is_alive():
                    thread.join(_LOOK_S)
        return [outcomes[number] for number in range(len(hosts))]

    def _thread(self, number: int, host: HostCapture) -> threading.Thread:
        def run() -> None:
            try:
                self._events.put(_Event(number=number, outcome=host.run()))
            except BaseException as error:  # noqa: BLE001  (raised again in the calling thread)
                self._events.put(_Event(error=error))

        # The part of the work that checks the caller's deadline shall see it.
        context = contextvars.copy_context()
        name = f"capture {host.target.address}"
        return threading.Thread(target=context.run, args=(run,), name=name, daemon=True)


@dataclass(frozen=True)
class _Event:
    """A host's state, its outcome, or what went wrong in our own code."""

    host: str = ""
    state: str = ""
    detail: str = ""
    number: int = -1
    outcome: HostOutcome | None = None
    error: BaseException | None = None

    def check(self) -> None:
        """Raise the error."""
        if self.error is not None:
            raise self.error
