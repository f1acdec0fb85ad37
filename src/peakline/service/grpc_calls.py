"""The services `tensorflow.ProfileAnalysis` and `tensorflow.ProfilerService`, call by call.

Requests come as bytes and answers leave as bytes: what cannot be parsed is the caller's error and
reported as such, and an answer is serialised once. Every call goes through a check of its token and
`Answering`: what is raised becomes a status, a line in the access log and a count.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from peakline.capture import WorkerError
from peakline.deadline import Deadline, within
from peakline.errors import BusyError, CheckFailed, PeaklineError, UsageError
from peakline.schema import (
    EnumProfileSessionsAndToolsRequest,
    EnumProfileSessionsAndToolsResponse,
    MonitorRequest,
    NewProfileSessionRequest,
    NewProfileSessionResponse,
    ProfileSessionDataRequest,
    ProfileSessionDataResponse,
    ProfileSessionInfo,
    TerminateRequest,
    TerminateResponse,
)
from peakline.service.access import Access
from peakline.service.access_log import AccessLog
from peakline.service.capturing import trouble
from peakline.service.core import Analysis, Listing
from peakline.service.metrics import Metrics
from peakline.service.settings import Settings

ANALYSIS = "tensorflow.ProfileAnalysis"
PROFILER = "tensorflow.ProfilerService"
_OF_JOBS = ("Profile", "StartContinuousProfiling", "StopContinuousProfiling", "GetSnapshot")
_HOST_KEY = "peakline-host"
_ENVELOPE_BYTES = 64
"""More than what stands around the output and the error message of an answer."""

_M = TypeVar("_M", bound=Message)


class UnimplementedError(CheckFailed):
    """The method belongs to the profiler inside a job, not to this server."""

    grpc_status = "UNIMPLEMENTED"


@dataclass
class Call:
    """What a call is about, for the access log."""

    context: grpc.ServicerContext
    session: str = ""
    tool: str = ""
    host: str = ""


@dataclass(frozen=True)
class Method:
    """A call's work, and how many seconds it may take at most."""

    answer: Callable[[bytes, Call], bytes]
    limit_s: float


@dataclass
class Servicers:
    """The calls of both services over one `Analysis`."""

    analysis: Analysis
    settings: Settings
    _listed: dict[str, tuple[Listing, bytes]] = field(default_factory=dict)

    def methods(self) -> dict[str, dict[str, Method]]:
        """By service and method."""
        usual = self.settings.request_timeout_s
        # Captures and monitoring have limits of their own, in the core, below this one.
        long = max(usual, self.settings.max_capture_s + usual)
        return {
            ANALYSIS: {
                "NewSession": Method(self.new_session, long),
                "EnumSessions": Method(self.enum_sessions, usual),
                "GetSessionToolData": Method(self.get_session_tool_data, usual),
            },
            PROFILER: {
                "Monitor": Method(self.monitor, long),
                "Terminate": Method(self.terminate, usual),
                **dict.fromkeys(_OF_JOBS, Method(_elsewhere, usual)),
            },
        }

    def new_session(self, content: bytes, call: Call) -> bytes:
        """Profile hosts and store what they recorded."""
        request = _parsed(NewProfileSessionRequest, content)
        call.session = request.session_id or request.request.session_id
        call.host = ",".join(request.hosts) or request.request.host_name
        result = self.analysis.captures.new_session(
            request.repository_root, request.session_id, request.hosts, request.request
        )
        call.session = result.session_id
        return NewProfileSessionResponse(
            error_message=self.analysis.public_text(trouble(result)), empty_trace=result.empty_trace
        ).SerializeToString()

    def enum_sessions(self, content: bytes, call: Call) -> bytes:
        """The sessions of a repository, newest first."""
        del call
        request = _parsed(EnumProfileSessionsAndToolsRequest, content)
        listing = self.analysis.listing(request.repository_root)
        # Of a thousand sessions the message takes longer than the look at what has changed.
        known = self._listed.get(request.repository_root)
        if known is None or known[0] != listing:
            sessions = [
                ProfileSessionInfo(session_id=session.session_id, available_tools=tools)
                for session, tools in listing.sessions
            ]
            message = EnumProfileSessionsAndToolsResponse(
                sessions=sessions, error_message=self.analysis.public_text("; ".join(listing.notes))
            )
            known = (listing, message.SerializeToString())
            self._listed = {request.repository_root: known}
        return known[1]

    def get_session_tool_data(self, content: bytes, call: Call) -> bytes:
        """One tool's answer about one session."""
        request = _parsed(ProfileSessionDataRequest, content)
        call.session, call.tool = request.session_id, request.tool_name
        call.host = request.host_name
        answer = self.analysis.tool_data(
            request.repository_root,
            request.session_id,
            request.host_name,
            request.tool_name,
            request.parameters,
        )
        size, most = len(answer.content), self.settings.max_message_bytes
        warnings = (f"{one.kind} ({one.count}): {one.detail}" for one in answer.warnings)
        message = self.analysis.public_text("; ".join((*answer.notes, *warnings)))
        if size + len(message) + _ENVELOPE_BYTES > most:
            raise UsageError(
                f"the answer has {size} bytes and a message may have {most}: ask for less"
            )
        return ProfileSessionDataResponse(
            error_message=message, output_format=answer.format, output=answer.content
        ).SerializeToString()

    def monitor(self, content: bytes, call: Call) -> bytes:
        """What running jobs say about themselves."""
        request = _parsed(MonitorRequest, content)
        hosts = _named_hosts(call)
        return self.analysis.captures.monitor(
            hosts, request.duration_ms, request.monitoring_level, timestamp=request.timestamp
        ).SerializeToString()

    def terminate(self, content: bytes, call: Call) -> bytes:
        """End a recording before its time."""
        request = _parsed(TerminateRequest, content)
        call.session = request.session_id
        self.analysis.captures.terminate(_named_hosts(call), request.session_id)
        return TerminateResponse().SerializeToString()


def run(method: Method, content: bytes, call: Call) -> bytes:
    """The method's answer, made no longer than it may take, than the caller gives it time, and
    than the caller is there.
    """
    deadline = Deadline(min(method.limit_s, call.context.time_remaining()))
    if not call.context.add_callback(deadline.cancel):
        deadline.cancel()
    with within(deadline):
        return method.answer(content, call)


def _parsed(kind: type[_M], content: bytes) -> _M:
    try:
        return kind.FromString(content)
    except DecodeError:
        raise UsageError(f"the request is no {kind.DESCRIPTOR.full_name}") from None


def _named_hosts(call: Call) -> list[str]:
    """The hosts that the call's metadata names."""
    names: list[str] = []
    for key, value in call.context.invocation_metadata():
        if key == _HOST_KEY:
            names += [name.strip() for name in value.split(",") if name.strip()]
    call.host = ",".join(names)
    return names


def _elsewhere(content: bytes, call: Call) -> bytes:
    del content, call
    raise UnimplementedError(
        "this server does not record itself: call the profiler of the job, or NewSession here"
    )


_FACE = "grpc"
_OPEN = "/grpc.health.v1.Health/"
_REQUEST_ID = "x-request-id"
_UNAUTHENTICATED = "a token is needed: send the metadata authorization: Bearer TOKEN"


class TokenInterceptor(grpc.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Refuses calls without the token, unary and streaming, known or not; health is open."""

    def __init__(self, access: Access, log: AccessLog, metrics: Metrics) -> None:
        self._access = access
        self._log = log
        self._metrics = metrics

    def intercept_service(self, continuation: Callable[[Any], Any], details: Any) -> Any:
        """The call's own handler, or one that refuses it."""
        start = time.perf_counter()
        if details.method.startswith(_OPEN):
            return continuation(details)
        shown = [value for key, value in details.invocation_metadata if key == "authorization"]
        # Two headers would leave it open which of them counts.
        if len(shown) <= 1 and self._access.token_matches(_text(*shown)):
            return continuation(details)
        handler = continuation(details)
        streams = handler is not None and handler.request_streaming
        returns = handler is not None and handler.response_streaming
        make = {
            (False, False): grpc.unary_unary_rpc_method_handler,
            (False, True): grpc.unary_stream_rpc_method_handler,
            (True, False): grpc.stream_unary_rpc_method_handler,
            (True, True): grpc.stream_stream_rpc_method_handler,
        }[streams, returns]

        def refuse(_: object, context: Any) -> None:
            name, code = details.method[1:], "UNAUTHENTICATED"
            seconds = time.perf_counter() - start
            self._metrics.refused("token")
            self._metrics.observe(_FACE, name, code, seconds)
            request_id = _request_id(details.invocation_metadata, self._access)
            self._log.write(_FACE, name, context.peer(), code, seconds, request_id=request_id)
            context.abort(grpc.StatusCode.UNAUTHENTICATED, _UNAUTHENTICATED)

        return make(refuse)


class Answering:
    """Makes handlers of methods: errors become statuses, and every call is logged and counted."""

    def __init__(
        self, analysis: Analysis, access: Access, log: AccessLog, metrics: Metrics
    ) -> None:
        self._analysis = analysis
        self._access = access
        self._log = log
        self._metrics = metrics

    def handler(self, name: str, method: Method) -> Any:
        """The handler of the method with the full name ``name`` (``package.Service/Method``)."""
        self._metrics.know(_FACE, [name])

        def answer(content: bytes, context: Any) -> bytes:
            with self._metrics.in_flight(_FACE):
                return self._answer(name, method, content, context)

        return grpc.unary_unary_rpc_method_handler(answer)

    def _answer(self, name: str, method: Method, content: bytes, context: Any) -> bytes:
        start = time.perf_counter()
        call = Call(context)
        request_id = _request_id(context.invocation_metadata(), self._access)
        code, details, answer = "OK", "", b""
        try:
            answer = run(method, content, call)
        except PeaklineError as error:
            code, details = _status(name, error), self._analysis.public_text(error)
            if isinstance(error, BusyError):
                self._metrics.refused("busy")
        except Exception as error:  # noqa: BLE001 (whatever it is, the caller gets an id)
            code, details = "INTERNAL", f"internal error ({request_id})"
            self._log.failure(request_id, error)
        seconds = time.perf_counter() - start
        self._metrics.observe(_FACE, name, code, seconds)
        self._log.write(
            _FACE, name, context.peer(), code, seconds, len(answer),
            session=call.session, tool=call.tool, host=call.host, request_id=request_id,
        )  # fmt: skip
        if code != "OK":
            context.abort(grpc.StatusCode[code], details)
        return answer


def _status(name: str, error: PeaklineError) -> str:
    """The name of the status; where a call is passed on, that which the profiler answered."""
    if isinstance(error, WorkerError) and name.startswith(f"{PROFILER}/"):
        return error.code
    return error.grpc_status


def _request_id(metadata: Iterable[tuple[str, str | bytes]], access: Access) -> str:
    given = (_text(value) or "" for key, value in metadata if key == _REQUEST_ID)
    return access.request_id(given)


def _text(value: str | bytes | None = None) -> str | None:
    return value.decode("latin-1") if isinstance(value, bytes) else value
