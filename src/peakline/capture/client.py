"""Calls to the profiler inside a running job (`tensorflow.ProfilerService`).

The transport is plaintext HTTP/2, all these servers speak. An answer is left as the bytes it came
as. gRPC's own retries and proxies are off: what is tried again is decided by the capture, and a
profiler stands in one's own network.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from peakline import schema
from peakline.capture.address import channel_target, parse_address
from peakline.capture.request import capture_deadline_s
from peakline.capture.stop import Stop
from peakline.deadline import current_deadline, interrupting
from peakline.errors import CancelledError, RemoteError

if TYPE_CHECKING:
    import grpc
    from google.protobuf.message import Message

_SERVICE = "tensorflow.ProfilerService"
_MOST_BYTES = 2**31 - 1
# A server of default settings drops clients that ping more often than every five minutes.
_KEEPALIVE_MS = 330_000
_KEEPALIVE_TIMEOUT_MS = 20_000
_OPTIONS = (
    ("grpc.max_receive_message_length", _MOST_BYTES),
    ("grpc.max_send_message_length", _MOST_BYTES),
    ("grpc.keepalive_time_ms", _KEEPALIVE_MS),
    ("grpc.keepalive_timeout_ms", _KEEPALIVE_TIMEOUT_MS),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),
    # Each attempt connects anew, without the pauses that gRPC keeps after a failed connection.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.service_config_disable_resolution", 1),
)
_BUSY = "Another profiling session active."
_STREAM_REMOVED = "Stream removed"
_SHOWN = 300
_CLOSE_AFTER_S = 2.0
_CALL_S = 30.0


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
    address: str, request: bytes, *, timeout_s: float, stop: Stop, report: Callable[[str], object]
) -> bytes:
    """Record on one profiler: the bytes of the ProfileResponse to those of a ProfileRequest.

    ``report`` is called, from this or another thread, with ``recording`` when the connection
    stands and ``receiving`` when the answer begins: of an answer always with both, in this order,
    and never after the end. Raises WorkerError, or CancelledError when ``stop`` was set.
    """
    import grpc

    stages = _Stages(report)

    def connected(state: grpc.ChannelConnectivity) -> None:
        if state is grpc.ChannelConnectivity.READY:
            stages.reach("recording")

    channel = grpc.insecure_channel(channel_target(address), options=_OPTIONS)
    channel.subscribe(connected)
    # On the wire a call with one answer is a stream of one. As a stream it shows when it begins.
    call = channel.unary_stream(f"/{_SERVICE}/Profile")(request, timeout=timeout_s)
    try:
        with stop.cancelling(call):
            call.initial_metadata()
            if call.is_active():
                stages.reach("receiving")
            (answer,) = call
        stages.reach("receiving")
    except grpc.RpcError as error:
        stop.check()
        raise _explained(error, timeout_s) from None
    except ValueError:
        raise WorkerError("it did not send one answer", "INTERNAL") from None
    else:
        return cast("bytes", answer)
    finally:
        stages.end()
        call.cancel()
        channel.unsubscribe(connected)
        # gRPC's thread that watches the connection for us ends a fifth of a second after the last
        # subscription, and raises when the channel is closed under it.
        closing = threading.Timer(_CLOSE_AFTER_S, channel.close)
        closing.daemon = True
        closing.start()


class _Stages:
    """Reports each stage of a call once, whichever thread sees first that it is reached.

    gRPC says in a thread of its own that a connection stands, at times after the answer came.
    """

    def __init__(self, report: Callable[[str], object]) -> None:
        self._report = report
        self._lock = threading.Lock()
        self._ahead = ["recording", "receiving"]

    def reach(self, stage: str) -> None:
        """Report ``stage``, and first those before it."""
        with self._lock:
            while stage in self._ahead:
                self._report(self._ahead.pop(0))

    def end(self) -> None:
        """Report nothing more."""
        with self._lock:
            self._ahead.clear()


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
    import grpc

    timeout_s = capture_deadline_s(duration_ms, 0) if duration_ms else _CALL_S
    deadline = current_deadline()
    remaining = None if deadline is None else deadline.remaining()
    if remaining is not None:
        timeout_s = min(timeout_s, remaining)
    stop, place = Stop(), channel_target(parse_address(address))
    with grpc.insecure_channel(place, options=_OPTIONS) as channel, interrupting(stop.set):
        call = channel.unary_unary(f"/{_SERVICE}/{method}").future(
            request.SerializeToString(), timeout=timeout_s
        )
        with stop.cancelling(call):
            try:
                return cast("bytes", call.result())
            except grpc.FutureCancelledError:
                raise CancelledError("ended before it was done") from None
            except grpc.RpcError as error:
                raise _explained(error, timeout_s) from None
            finally:
                call.cancel()  # nothing, of one that is done


def _explained(error: Any, timeout_s: float) -> WorkerError:
    """What a failed call says, and what to do where that is known."""
    code: str = error.code().name
    details = _one_line(error.details() or "")
    if code == "UNAVAILABLE":
        return WorkerError(f"cannot be reached: {details}", code, transient=True)
    if code == "DEADLINE_EXCEEDED":
        return WorkerError(f"no answer within {timeout_s:.0f} s", code)
    if code == "UNIMPLEMENTED":
        return WorkerError(f"the server there does not offer this: {details or code}", code)
    if code == "RESOURCE_EXHAUSTED" and "larger than max" in details:
        return WorkerError("its answer is larger than 2 GiB; record for a shorter time", code)
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
