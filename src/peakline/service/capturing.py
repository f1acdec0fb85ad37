"""Captures that callers request: what they mean, which run, which sessions are being made."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import replace
from typing import TypeVar

from peakline import schema
from peakline.capture import (
    CaptureRequest,
    CaptureResult,
    Progress,
    Target,
    WorkerError,
    capture,
    capture_deadline_s,
    default_session_ids,
    monitor,
    terminate,
)
from peakline.deadline import Deadline, check_deadline, current_deadline, within
from peakline.engine import Gate
from peakline.errors import ExistsError, ForbiddenError, PeaklineError, RemoteError, UsageError
from peakline.repository import Repository, check_name
from peakline.service.access import Access
from peakline.service.addresses import host_of
from peakline.service.capture_hosts import SCHEME
from peakline.service.metrics import Metrics
from peakline.service.settings import Settings

_CONCURRENT = 8
_CONTROLS = 8
_MOST_HOSTS = 1024
HELD_THREADS = 2 * _CONCURRENT + 2 * _CONTROLS
"""How many callers work or wait here at most."""

_T = TypeVar("_T")


class Captures:
    """Starts captures and talks to the profilers of running jobs. Safe in several threads.

    Captures and monitoring wait for other machines, mostly without work here: they have a
    small limit of their own (``gate``) and never take the place of a query.
    """

    def __init__(
        self, settings: Settings, access: Access, metrics: Metrics, sessions: SessionsInTheMaking
    ) -> None:
        self._settings = settings
        self._access = access
        self._metrics = metrics
        self._sessions = sessions
        self.gate = Gate(_CONCURRENT, _CONCURRENT)
        self.control = Gate(_CONTROLS, _CONTROLS)
        """For what ends captures, which must not wait for them."""
        self.grpc_port = 0
        """The port that is bound; 0: the one of the settings."""

    def new_session(
        self,
        repository_root: str,
        session_id: str,
        hosts: Sequence[str],
        request: schema.ProfileRequest | None,
        *,
        progress: Progress | None = None,
    ) -> CaptureResult:
        """Profile ``hosts`` and keep what they recorded as a session.

        Empty ``repository_root``, ``session_id`` and ``hosts`` are taken from ``request``, the id
        at last from the clock. The capture has a time limit of its own (upstream's: a minute or
        twice the recording, within ``max_capture_s``); where the caller's deadline is nearer, that
        counts. Raises ExistsError, ForbiddenError, UsageError; RemoteError when no host gave
        anything. `trouble` says what went wrong in what succeeded in part.
        """
        if self._settings.read_only:
            raise ForbiddenError("this server is read-only: it stores no captures")
        request = schema.ProfileRequest() if request is None else request
        options = schema.ProfileOptions()
        options.CopyFrom(request.opts)
        session_id = session_id or request.session_id or options.session_id
        if session_id:
            check_name("session id", session_id)
        repository = self._access.new_repository(repository_root or request.repository_root)
        duration_ms = options.duration_ms or request.duration_ms
        delay_ms = max(0, (options.start_timestamp_ns - time.time_ns()) // 1_000_000)
        self._check_length(duration_ms, delay_ms)
        targets, notes = self._targets(list(hosts) or [request.host_name], options)
        limit_s = min(self._settings.max_capture_s, capture_deadline_s(duration_ms, delay_ms))
        with (
            self._sessions.making(repository, session_id, targets) as name,
            self.gate.enter(),
            at_most(limit_s),
        ):
            try:
                result = capture(
                    CaptureRequest(
                        targets=targets,
                        session_id=name,
                        duration_ms=duration_ms,
                        options=options,
                        delay_ms=delay_ms,
                    ),
                    repository,
                    progress=progress,
                )
            except RemoteError:
                for _ in targets:
                    self._metrics.captured("failed")
                raise
        for outcome in result.outcomes:
            self._metrics.captured(outcome.state, outcome.size)
        if not result.empty_trace and not any(outcome.is_saved for outcome in result.outcomes):
            raise RemoteError(trouble(result))
        return replace(result, notes=notes)

    def monitor(
        self, hosts: Sequence[str], duration_ms: int, level: int, *, timestamp: bool
    ) -> schema.MonitorResponse:
        """What the profilers of ``hosts`` (none: every worker) say about themselves.

        One host's answer is passed on as it is; of several the texts are joined, each line
        behind ``host: ``. Raises the host's error where there is one host, RemoteError where
        none of several answered.
        """
        self._check_length(duration_ms, 0)
        targets = self._named_targets(hosts)
        with self.gate.enter(), at_most(self._settings.max_capture_s):
            answers = _of_all(
                targets,
                lambda target: monitor(target.address, duration_ms, level, timestamp=timestamp),
            )
        if len(answers) == 1:
            return _or_raise(targets[0], answers[0])
        if all(isinstance(answer, PeaklineError) for answer in answers):
            raise _failure(targets, answers)
        lines = []
        for target, answer in zip(targets, answers, strict=True):
            text = str(answer) if isinstance(answer, PeaklineError) else answer.data
            lines += [f"{target.host}: {line}" for line in text.splitlines()]
        return schema.MonitorResponse(data="\n".join(lines) + "\n")

    def terminate(self, hosts: Sequence[str], session_id: str) -> None:
        """End the recording of ``session_id`` before its time; what was recorded is stored.

        ``hosts`` empty means those of the capture of that session that runs here, else every
        worker. Raises RemoteError that names the hosts which could not be reached.
        """
        check_name("session id", session_id)
        targets = () if hosts else self._sessions.targets(session_id)
        targets = targets or self._named_targets(hosts)
        with self.control.enter():
            answers = _of_all(targets, lambda target: terminate(target.address, session_id))
        if len(answers) == 1:
            _or_raise(targets[0], answers[0])
        elif any(isinstance(answer, PeaklineError) for answer in answers):
            raise _failure(targets, answers)

    def _targets(
        self, hosts: list[str], options: schema.ProfileOptions
    ) -> tuple[tuple[Target, ...], tuple[str, ...]]:
        """Where the profilers of ``hosts`` listen, and notes about hosts that are left out.

        A host that is named twice, with two ports, is one host: ports are ignored. Clients
        send the names of all hosts in one text (``override_hostname``), and that means nothing to
        a single worker, so it is taken out of the options.
        """
        if not any(hosts):
            raise UsageError("no hosts: say which to profile")
        if len(hosts) > _MOST_HOSTS:
            raise UsageError(f"{len(hosts)} hosts; at most {_MOST_HOSTS} can be profiled at once")
        hosts, notes = self._without_this_server(hosts)
        targets = self._distinct(hosts)
        if options.override_hostname:
            names = options.override_hostname.split(",")
            if len(names) != len(targets):
                raise UsageError(
                    f"override_hostname has {len(names)} names for {len(targets)} hosts"
                )
            targets = tuple(
                replace(target, host=check_name("host", name.strip()))
                for target, name in zip(targets, names, strict=True)
            )
            options.ClearField("override_hostname")
        return targets, notes

    def _without_this_server(self, hosts: list[str]) -> tuple[list[str], tuple[str, ...]]:
        """``hosts`` without the address of this server, and a note where there was one.

        TensorFlow's client puts the address that it calls, with the port of this service, among
        the hosts. It is left out where no profiler of that host may be used and others are named.
        """
        chosen: list[str] = []
        left_out: list[str] = []
        for host in hosts:
            (left_out if self._is_this_server(host) else chosen).append(host)
        if not chosen:
            return hosts, ()
        return chosen, tuple(f"{host} is this server and was not profiled" for host in left_out)

    def _is_this_server(self, host: str) -> bool:
        try:
            self._access.capture_target(host)
        except ForbiddenError:
            _, port = host_of(host.removeprefix(SCHEME))
            return port is not None and port == (self.grpc_port or self._settings.grpc_port)
        return False

    def _named_targets(self, hosts: Sequence[str]) -> tuple[Target, ...]:
        """The hosts that a question without a session is for."""
        names = list(hosts) or list(self._settings.workers)
        if not names:
            raise UsageError(
                "no host named: send the metadata peakline-host, or start the server with --worker"
            )
        if len(names) > _MOST_HOSTS:
            raise UsageError(f"{len(names)} hosts; at most {_MOST_HOSTS} can be reached at once")
        return self._distinct(names)

    def _distinct(self, hosts: Sequence[str]) -> tuple[Target, ...]:
        """One target for each profiler, under the first name that was given to it."""
        targets: dict[str, Target] = {}
        for host in hosts:
            target = self._access.capture_target(host)
            targets.setdefault(target.address.lower(), target)
        return tuple(targets.values())

    def _check_length(self, duration_ms: int, delay_ms: int) -> None:
        if duration_ms <= 0:
            raise UsageError("duration_ms is missing: say how long to record")
        if duration_ms + delay_ms > self._settings.max_capture_s * 1000:
            raise UsageError(
                f"recording until {(duration_ms + delay_ms) / 1000:.10g} s from now is longer "
                f"than this server allows ({self._settings.max_capture_s:.10g} s)"
            )


def trouble(result: CaptureResult) -> str:
    """What went wrong or was left out in a capture that succeeded; empty when nothing was."""
    if result.empty_trace:
        return "no host recorded anything"
    failed = [
        f"{outcome.host}: {outcome.error or 'recorded nothing'}"
        for outcome in result.outcomes
        if outcome.state in ("failed", "empty")
    ]
    answer = (
        [f"{len(failed)} of {len(result.outcomes)} hosts: {'; '.join(failed)}"] if failed else []
    )
    return "; ".join((*answer, *result.notes))


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """The block's work under a deadline of ``seconds``, or the present one where that is nearer."""
    with limited(seconds) as inner, within(inner):
        yield


@contextmanager
def limited(seconds: float, share: float = 1.0) -> Iterator[Deadline]:
    """A deadline in ``seconds``, or in that ``share`` of the caller's time where this is less."""
    caller = current_deadline() or Deadline()
    left = caller.remaining()
    inner = Deadline(seconds if left is None else min(seconds, left * share))
    with caller.on_cancel(inner.cancel):
        yield inner


def _of_all(targets: Sequence[Target], ask: Callable[[Target], _T]) -> list[_T | PeaklineError]:
    """What each of ``targets`` answered, or its error; all at once."""

    def answered(target: Target) -> _T | PeaklineError:
        try:
            return ask(target)
        except PeaklineError as error:
            return error

    if len(targets) == 1:
        return [answered(targets[0])]
    check_deadline()
    with ThreadPoolExecutor(min(len(targets), 64), thread_name_prefix="ask") as pool:
        futures = [pool.submit(copy_context().run, answered, target) for target in targets]
        answers = [future.result() for future in futures]
    check_deadline()
    return answers


def _or_raise(target: Target, answer: _T | PeaklineError) -> _T:
    if isinstance(answer, WorkerError):
        raise WorkerError(f"{target.host}: {answer}", answer.code) from answer
    if isinstance(answer, PeaklineError):
        raise answer
    return answer


def _failure(targets: Sequence[Target], answers: Sequence[object]) -> RemoteError:
    """What all of several hosts failed with: their status where they answered the same one, so
    that nobody asks again for what no profiler can do.
    """
    text = "; ".join(
        f"{target.host}: {answer}"
        for target, answer in zip(targets, answers, strict=True)
        if isinstance(answer, PeaklineError)
    )
    codes = {answer.code for answer in answers if isinstance(answer, WorkerError)}
    return WorkerError(text, codes.pop()) if len(codes) == 1 else RemoteError(text)


class SessionsInTheMaking:
    """Sessions by repository and id, with the hosts that are being profiled for them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._targets: dict[tuple[str, str], tuple[Target, ...]] = {}

    @contextmanager
    def making(
        self, repository: Repository, session_id: str, targets: tuple[Target, ...] = ()
    ) -> Iterator[str]:
        """Have the session for the block; without an id one that is free, named after the time.

        Raises ExistsError when somebody else has it.
        """
        root = repository.root
        for name in [session_id] if session_id else default_session_ids():
            if self._take((root, name), targets):
                if session_id or repository.is_free(name):
                    break
                self._leave((root, name))
        else:
            raise ExistsError(
                f"session {session_id!r} is being made now"
                if session_id
                else "no session id is free near the present time; name one"
            )
        try:
            yield name
        finally:
            self._leave((root, name))

    def _leave(self, key: tuple[str, str]) -> None:
        with self._lock:
            del self._targets[key]

    def _take(self, key: tuple[str, str], targets: tuple[Target, ...]) -> bool:
        with self._lock:
            is_free = key not in self._targets
            if is_free:
                self._targets[key] = targets
            return is_free

    def targets(self, session_id: str) -> tuple[Target, ...]:
        """The hosts that are being profiled under ``session_id``, in any repository."""
        with self._lock:
            return tuple(
                target
                for (_, making), targets in self._targets.items()
                if making == session_id
                for target in targets
            )
