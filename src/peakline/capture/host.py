"""The capture of one host: attempts until there is a profile, and keeping it.

There is one capture per profiler at a time: it has one recorder, and refuses a second session.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import BinaryIO

from peakline.capture import client
from peakline.capture.answer import Answer, check_xspace, has_events, mapped, read_answer, retain
from peakline.capture.request import CaptureRequest, Target
from peakline.capture.result import HostOutcome, State
from peakline.capture.stop import Stop
from peakline.deadline import check_deadline
from peakline.errors import CancelledError, DeadlineError, PeaklineError, RemoteError, faults_of
from peakline.formats.common.files import open_to_read
from peakline.formats.common.urls import connect
from peakline.repository import HostFile, NewSession, Repository, Session, is_url
from peakline.wire import Buffer, Spans, as_buffer

_NOT_KEPT = "tf_stats_helper_result"
_MOST_NAME = 100
_MOST_EMPTY = 1 << 20
_SHOWN = 5


def saved_size(repository: Repository, session: NewSession, host: str) -> int | None:
    """The size of the file that ``host`` itself saved in the session; None when there is none."""
    file = _saved(repository, session, host)
    try:
        if file is None or not is_url(file.path):
            return None if file is None else file.status().bytes
        system, place = connect(file.path, file.storage_options)
        return int(system.size(place))
    except (FileNotFoundError, PeaklineError):
        return None


def drop_saved_empty(repository: Repository, session: NewSession, host: str) -> None:
    """Remove the file that an old server saves even of an empty trace, where the disk is local.

    Only a small file without a single event goes: this capture made the session, which would
    else be listed as one that can be opened.
    """
    file = _saved(repository, session, host)
    if file is None or is_url(file.path):
        return
    # Another user's file, perhaps; the trace is no less empty.
    with suppress(OSError, PeaklineError):
        with os.fdopen((file.opener or open_to_read)(file.path), "rb") as stream:
            content = stream.read(_MOST_EMPTY + 1)
        if len(content) <= _MOST_EMPTY and not has_events(as_buffer(content)):
            session.remove(file.path.rpartition(os.sep)[2])


def _saved(repository: Repository, session: NewSession, host: str) -> HostFile | None:
    name = session.session_id
    try:
        if is_url(session.path):
            return repository.session(name).host(host)
        # By itself: a repository that lacks the session would list all others.
        return Session(name, name, session.path, confinement=session.confinement).host(host)
    except PeaklineError:
        return None


def listed_names(answer: Answer) -> list[str]:
    """The names of the first tools' files."""
    names = [_safe_name(file.name) for file in answer.tool_files]
    more = len(names) - _SHOWN
    return [*names[:_SHOWN], f"{more} more"] if more > 0 else names


def keep_tool_files(answer: Answer, host: str, session: NewSession) -> list[str]:
    """Write the tools' files beside the profile; returns what could not be stored, a line each."""
    notes = []
    for file in answer.tool_files:
        if file.name.endswith(_NOT_KEPT):
            continue
        name = _safe_name(file.name)
        content = answer.buffer[file.start : file.start + file.length]
        try:
            session.write_beside(host, name, partial(_write, content))
        except PeaklineError as error:
            notes.append(f"the file {name} of an old tool was not stored: {error}")
    return notes


def _write(content: Buffer, stream: BinaryIO) -> None:
    stream.write(content.data)


def _safe_name(name: str) -> str:
    """``name`` without anything that a path could be made of."""
    plain = "".join(c if c.isprintable() and c not in "/\\:" else "_" for c in name)
    return plain.lstrip(".")[:_MOST_NAME] or "_"


_POLL_S = 0.2


class WorkerLocks:
    """Locks by address, for the captures of this process."""

    def __init__(self) -> None:
        self._held: set[str] = set()
        self._freed = threading.Condition()

    @contextmanager
    def hold(
        self, address: str, timeout_s: float, *, check: Callable[[], object] | None = None
    ) -> Iterator[None]:
        """Hold ``address`` during the block, after waiting for who holds it.

        ``check`` is called now and then while waiting and may raise. Raises RemoteError when
        ``timeout_s`` have passed.
        """
        key = address.lower()
        with self._freed:
            end = time.monotonic() + timeout_s
            while key in self._held:
                if check is not None:
                    check()
                if time.monotonic() >= end:
                    raise RemoteError(f"{address}: another capture of it is still running")
                self._freed.wait(_POLL_S)
            self._held.add(key)
        try:
            yield
        finally:
            with self._freed:
                self._held.discard(key)
                self._freed.notify_all()

    def is_held(self, address: str) -> bool:
        """Whether a capture of ``address`` is running."""
        with self._freed:
            return address.lower() in self._held


_FIRST_PAUSE_S = 0.25
_MOST_PAUSE_S = 8.0
_LOOKS = 3
_LOOK_PAUSE_S = 0.3
_OWN_DISK = "the host stored its profile on its own disk"
_NOTHING = "nothing was recorded"
_LOCKS = WorkerLocks()


class _NothingToStoreError(Exception):
    """An answer without a profile for us."""


@dataclass
class HostCapture:
    """One host of a session, captured by `run` in a thread of its own."""

    request: CaptureRequest
    target: Target
    message: bytes
    """The ProfileRequest."""
    repository: Repository
    session: NewSession
    stop: Stop
    report: Callable[[str, str], object]
    attempts: int = field(default=0, init=False)

    def run(self) -> HostOutcome:
        """Capture the host; every way it can fail is an outcome."""
        began = time.monotonic()
        try:
            limit = self.request.timeout_s
            if _LOCKS.is_held(self.target.address):
                self.report("waiting", "for another capture of it to end")
            with (
                faults_of(self.target.address),
                _LOCKS.hold(self.target.address, limit, check=self.stop.check),
            ):
                outcome = self._stored(time.monotonic() + limit)
        except CancelledError as error:
            outcome = self._outcome("failed", error=_why_ended(error, began))
        except PeaklineError as error:
            outcome = self._outcome("failed", error=str(error))
        self.report(outcome.state, outcome.error)
        return outcome

    def _stored(self, end: float) -> HostOutcome:
        try:
            return self._attempt_all(end)
        except OSError as error:
            return self._outcome("failed", error=f"cannot be written: {error.strerror or error}")

    def _attempt_all(self, end: float) -> HostOutcome:
        pause = _FIRST_PAUSE_S
        duration = self.request.duration_ms / 1000
        while True:
            self.attempts += 1
            self.report("connecting", f"attempt {self.attempts}" if self.attempts > 1 else "")
            this_pause = pause
            try:
                outcome = self._attempt(end - time.monotonic())
                if outcome.state != "empty":
                    return outcome
            except client.WorkerError as error:
                outcome = self._outcome("failed", error=str(error))
                if not error.is_transient:
                    return outcome
                if error.is_busy:
                    # It is free when the other session ends, which may be as long as ours.
                    this_pause = max(pause, duration)
            remaining = end - time.monotonic()
            if self.attempts >= self.request.attempts or remaining < this_pause + duration:
                return outcome
            self.report("retrying", outcome.error)
            self.stop.wait(this_pause)
            pause = min(2 * pause, _MOST_PAUSE_S)

    def _attempt(self, timeout_s: float) -> HostOutcome:
        """The answer goes into the file that the profile will be, and never into memory."""
        result: list[HostOutcome] = []

        def write(stream: BinaryIO) -> None:
            client.profile(
                self.target.address,
                self.message,
                stream.write,
                timeout_s=max(0.0, timeout_s),
                stop=self.stop,
                report=lambda state: self.report(state, ""),
            )
            self.stop.check()
            stream.flush()
            spans = self._look_at(mapped(stream), result)
            if result[0].state != "stored":
                raise _NothingToStoreError
            retain(stream, spans, self.stop.check)

        with suppress(_NothingToStoreError):
            self.session.write(self.target.host, write)
        return result[0]

    def _look_at(self, content: Buffer, result: list[HostOutcome]) -> Spans:
        """Where in an answer the profile is, and in ``result`` what comes of it."""
        answer = read_answer(content)
        if answer.size:
            check_xspace(answer)
            if not has_events(answer.buffer, answer.xspace):
                result.append(self._outcome("empty", error=_NOTHING))
                return answer.xspace
            outcome = self._outcome("stored", answer.size)
        elif answer.empty_trace:
            drop_saved_empty(self.repository, self.session, self.target.host)
            result.append(self._outcome("empty", error=_NOTHING))
            return answer.xspace
        else:
            outcome = self._saved_by_host(answer)
        notes = keep_tool_files(answer, self.target.host, self.session)
        result.append(replace(outcome, error="; ".join(filter(None, (outcome.error, *notes)))))
        return answer.xspace

    def _saved_by_host(self, answer: Answer) -> HostOutcome:
        """A server that is too old to send its profile has saved it, perhaps where we see it."""
        for look in range(_LOOKS):
            if look:
                # A network disk shows what another machine wrote after a moment.
                self.stop.wait(_LOOK_PAUSE_S)
            size = saved_size(self.repository, self.session, self.target.host)
            if size:
                return self._outcome("saved_by_host", size)
        if size == 0:
            return self._outcome("failed", error="the host stored an empty file")
        had = f" and sent only {', '.join(listed_names(answer))}" if answer.tool_files else ""
        return self._outcome("failed", error=f"{_OWN_DISK}{had}")

    def _outcome(self, state: State, size: int = 0, error: str = "") -> HostOutcome:
        target = self.target
        return HostOutcome(target.host, target.address, state, size, error, self.attempts)


def _why_ended(error: CancelledError, began: float) -> str:
    """In whose name a capture was ended: the caller's time was over, or the caller went away."""
    try:
        check_deadline()
    except DeadlineError:
        return f"no answer within {time.monotonic() - began:.0f} s"
    except CancelledError:
        pass
    return str(error)
