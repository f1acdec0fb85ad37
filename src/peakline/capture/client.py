"""Calls to the profiler inside a running job (`tensorflow.ProfilerService`).

An answer is left as the bytes it came as, and goes where it is wanted while it comes. What is tried
again is decided by the capture.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from peakline import schema
from peakline.capture.call import Call, CallError, Sink
from peakline.capture.request import capture_deadline_s, parse_address
from peakline.capture.stop import Stop
from peakline.deadline import current_deadline, interrupting
from peakline.errors import CancelledError, RemoteError

if TYPE_CHECKING:
    from google.protobuf.message import Message

_SERVICE = "tensorflow.ProfilerService"
_BUSY = "Another profiling session active."
_STREAM_REMOVED = "Stream removed"
_SHOWN = 300
_CALL_S = 30.0
_MOST_TEXT = 16 << 20
"""Bytes of an answer that is no profile."""


class WorkerError(RemoteError):
    """A profiler did not answer as wanted.

    ``code`` is the name of the gRPC status it answered with, or that stands for why there was no
    answer; ``is_transient``: the same call may succeed later; ``is_busy``: because it records for
    somebody else just now.
    """

    def __init__(
        self, message: str, code: str, *, transient: bool = False, busy: bool = False
    ) -> None:
        super().__init__(message)
        self.code = code
        self.is_transient = transient
        self.is_busy = busy


def profile(
    address: str,
    request: bytes,
    sink: Sink,
    *,
    timeout_s: float,
    stop: Stop,
    report: Callable[[str], object],
) -> None:
    """Record on one profiler: the bytes of the ProfileResponse go to ``sink``, in pieces.

    ``report`` is called with ``recording`` when the connection stands and ``receiving`` when the
    answer begins. Raises WorkerError, CancelledError when ``stop`` was set, and whatever ``sink``
    raises.
    """
    call = Call(address, f"/{_SERVICE}/Profile")
    with stop.cancelling(call):
        try:
            call.run(request, sink, timeout_s=timeout_s, report=report)
        except CallError as error:
            stop.check()
            raise _explained(error, timeout_s) from None


def monitor(
    address: str, duration_ms: int, level: int = 1, *, timestamp: bool = False
) -> schema.MonitorResponse:
    """Watch a job for ``duration_ms`` and return what its profiler says of its utilisation.

    ``level`` is 1 or 2; ``timestamp`` puts the time into the text. Only TPU servers offer it:
    others raise WorkerError with code UNIMPLEMENTED.
    """
    from google.protobuf.message import DecodeError

    request = schema.MonitorRequest(
        duration_ms=duration_ms, monitoring_level=level, timestamp=timestamp
    )
    content = _call(address, "Monitor", request, duration_ms)
    try:
        return schema.MonitorResponse.FromString(content)
    except DecodeError:
        raise WorkerError("its answer cannot be read", "INTERNAL") from None


def terminate(address: str, session_id: str) -> None:
    """End the session ``session_id`` on a profiler, whoever began it; it answers with what it has.

    A profiler that gets this before the session begins ends it the moment it does, empty. Raises
    WorkerError.
    """
    _call(address, "Terminate", schema.TerminateRequest(session_id=session_id), 0)


def _call(address: str, method: str, request: Message, duration_ms: int) -> bytes:
    """A call that the current deadline ends."""
    timeout_s = capture_deadline_s(duration_ms, 0) if duration_ms else _CALL_S
    deadline = current_deadline()
    remaining = None if deadline is None else deadline.remaining()
    if remaining is not None:
        timeout_s = min(timeout_s, remaining)
    stop, content = Stop(), bytearray()

    def take(piece: memoryview) -> None:
        if len(content) + len(piece) > _MOST_TEXT:
            raise WorkerError("its answer is too large", "RESOURCE_EXHAUSTED")
        content.extend(piece)

    call = Call(parse_address(address), f"/{_SERVICE}/{method}")
    with interrupting(stop.set), stop.cancelling(call):
        try:
            call.run(
                request.SerializeToString(), take, timeout_s=timeout_s, report=lambda _stage: None
            )
        except CallError as error:
            if stop.is_set:
                raise CancelledError("ended before it was done") from None
            raise _explained(error, timeout_s) from None
    return bytes(content)


def _explained(error: CallError, timeout_s: float) -> WorkerError:
    """What a failed call says, and what to do where that is known."""
    code, details = error.code, _one_line(str(error))
    if code == "UNAVAILABLE":
        return WorkerError(f"cannot be reached: {details}", code, transient=True)
    if code == "DEADLINE_EXCEEDED":
        return WorkerError(f"no answer within {timeout_s:.0f} s", code)
    if code == "UNIMPLEMENTED":
        return WorkerError(f"the server there does not offer this: {details or code}", code)
    if code == "RESOURCE_EXHAUSTED" and "larger than 2 GiB" in details:
        return WorkerError(f"{details}; record for a shorter time", code)
    if code == "ALREADY_EXISTS" or (code == "INTERNAL" and _BUSY in details):
        busy = "another profiling session is active there"
        return WorkerError(busy, code, transient=True, busy=True)
    removed = code == "UNKNOWN" and _STREAM_REMOVED in details
    return WorkerError(f"{code}: {details}", code, transient=removed)


def _one_line(text: str) -> str:
    """What a server wrote, as one short line that a log or a terminal can take."""
    words = " ".join(text.split())
    shown = "".join(character if character.isprintable() else "?" for character in words)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
