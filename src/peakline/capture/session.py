"""`capture`: one session on many hosts at once."""

from __future__ import annotations

import contextvars
import os
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial

from peakline.capture.host import HostCapture
from peakline.capture.request import (
    CaptureRequest,
    Target,
    check_request,
    profile_request,
    start_timestamp_ns,
)
from peakline.capture.result import CaptureResult, HostOutcome, Progress
from peakline.capture.stop import Stop
from peakline.deadline import check_deadline, interrupting
from peakline.errors import DeadlineError, RemoteError
from peakline.extras import require
from peakline.process_memory import give_back_memory
from peakline.repository import Repository

_LOOK_S = 0.25


def capture(
    request: CaptureRequest,
    repository: Repository | str | os.PathLike[str],
    *,
    progress: Progress | None = None,
) -> CaptureResult:
    """Record a session on every target in parallel and store it in ``repository``: the path or URL
    of a log directory, or what stands for one.

    A host that fails does not cost the others: see `HostOutcome`. The current deadline, its
    cancellation and KeyboardInterrupt end the calls to the hosts, which frees their profilers;
    what was stored whole by then stays, and a session without any profile leaves no directory.

    Raises ExistsError for a session id that is taken, RemoteError when every host failed (with
    each one's reason), DeadlineError when that is because the caller's time is over, CancelledError
    when the caller's deadline was cancelled, UsageError for a request that cannot work.
    """
    require("serve", "peakline.capture")
    check_request(request)
    check_deadline()
    if not isinstance(repository, Repository):
        repository = Repository(repository)
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
                stop=run.stop,
                report=partial(run.report, target),
            )
            for target in request.targets
        ]  # fmt: skip
        with interrupting(run.stop.set):
            try:
                outcomes = run.wait_for(hosts)
            finally:
                give_back_memory()
    if run.stop.is_set:
        try:
            check_deadline()
        except DeadlineError:
            if not any(outcome.is_saved for outcome in outcomes):
                raise
    if all(outcome.state == "failed" for outcome in outcomes):
        reasons = "; ".join(f"{outcome.address}: {outcome.error}" for outcome in outcomes)
        raise RemoteError(reasons)
    empty = all(outcome.state == "empty" for outcome in outcomes)
    return CaptureResult(request.session_id, tuple(outcomes), empty)


class _Run:
    """Threads, one a host, and the calling thread, which waits for them and reports on them.

    Progress is reported from the calling thread, so that it may draw, and so that Ctrl-C, which
    Python gives to the main thread, is never stuck behind a call. No wait there is longer than a
    moment: a signal that comes just before one does not interrupt it, and is seen after it.
    """

    def __init__(self, progress: Progress | None) -> None:
        self.stop = Stop()
        self._progress = progress
        self._events: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        """What the calling thread shall do, in this order."""

    def report(self, target: Target, state: str, detail: str) -> None:
        """Show the state of a host, from any thread."""
        if self._progress is not None:
            self._events.put(partial(self._progress, target.host, state, detail))

    def wait_for(self, hosts: Sequence[HostCapture]) -> list[HostOutcome]:
        """Run all of them. Whatever ends the wait early ends them too."""
        outcomes: list[Future[HostOutcome]] = [Future() for _ in hosts]
        threads: list[threading.Thread] = []
        try:
            for host, outcome in zip(hosts, outcomes, strict=True):
                threads.append(self._thread(host, outcome))
                threads[-1].start()
            ended = 0
            while ended < len(hosts):
                try:
                    event = self._events.get(timeout=_LOOK_S)
                except queue.Empty:
                    continue
                ended += isinstance(event(), HostOutcome)
        except BaseException:
            self.stop.set()
            raise
        finally:
            # None is left writing when the session is closed.
            for thread in threads:
                while thread.is_alive():
                    thread.join(_LOOK_S)
        return [outcome.result() for outcome in outcomes]

    def _thread(self, host: HostCapture, outcome: Future[HostOutcome]) -> threading.Thread:
        def run() -> None:
            try:
                outcome.set_result(host.run())
            except BaseException as error:  # noqa: BLE001  (raised again in the calling thread)
                outcome.set_exception(error)
            self._events.put(outcome.result)

        # The part of the work that checks the caller's deadline shall see it.
        context = contextvars.copy_context()
        name = f"capture {host.target.address}"
        return threading.Thread(target=context.run, args=(run,), name=name, daemon=True)
