"""The capture of one host: attempts until there is a profile, and keeping it."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from peakline.capture import client
from peakline.capture.address import Target
from peakline.capture.answer import (
    Answer,
    check_xspace,
    has_events,
    mapped,
    read_answer,
    retain,
)
from peakline.capture.locks import WorkerLocks
from peakline.capture.request import CaptureRequest
from peakline.capture.result import HostOutcome, State
from peakline.capture.saved import drop_saved_empty, keep_tool_files, listed_names, saved_size
from peakline.capture.stop import Stop
from peakline.deadline import check_deadline
from peakline.errors import CancelledError, DeadlineError, PeaklineError
from peakline.repository import NewSession, Repository
from peakline.wire import Buffer, Spans

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
        """Capture the host; every way it can fail is an outcome, but for our own faults."""
        began = time.monotonic()
        try:
            limit = self.request.timeout_s
            if _LOCKS.is_held(self.target.address):
                self.report("waiting", "for another capture of it to end")
            with _LOCKS.hold(self.target.address, limit, check=self.stop.check):
                outcome = self._attempt_all(time.monotonic() + limit)
        except CancelledError as error:
            outcome = self._outcome("failed", error=_why_ended(error, began))
        except PeaklineError as error:
            outcome = self._outcome("failed", error=str(error))
        except OSError as error:
            outcome = self._outcome("failed", error=f"cannot be written: {error.strerror or error}")
        self.report(outcome.state, outcome.error)
        return outcome

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
        found: list[HostOutcome] = []

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
            spans = self._look_at(mapped(stream), found)
            if found[0].state != "stored":
                raise _NothingToStoreError
            retain(stream, spans, self.stop.check)

        with suppress(_NothingToStoreError):
            self.session.write(self.target.host, write)
        return found[0]

    def _look_at(self, content: Buffer, found: list[HostOutcome]) -> Spans:
        """Where in an answer the profile is, and in ``found`` what comes of it."""
        answer = read_answer(content)
        if answer.size:
            check_xspace(answer)
            if not has_events(answer.buffer, answer.xspace):
                found.append(self._outcome("empty", error=_NOTHING))
                return answer.xspace
            outcome = self._outcome("stored", answer.size)
        elif answer.empty_trace:
            drop_saved_empty(self.repository, self.session, self.target.host)
            found.append(self._outcome("empty", error=_NOTHING))
            return answer.xspace
        else:
            outcome = self._saved_by_host(answer)
        notes = keep_tool_files(answer, self.target.host, self.session)
        found.append(replace(outcome, error="; ".join(filter(None, (outcome.error, *notes)))))
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
