"""The services `tensorflow.ProfileAnalysis` and `tensorflow.ProfilerService`, call by call.

Requests come as bytes and answers leave as bytes: what cannot be parsed is the caller's error and
reported as such, and an answer is serialised once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from google.protobuf.message import DecodeError, Message

from peakline.engine import Gate
from peakline.errors import CheckFailed, UsageError
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
from peakline.service.capturing import trouble
from peakline.service.core import Analysis, Listing
from peakline.service.settings import Settings
from peakline.service.workers import Workers

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


Metadata = tuple[tuple[str, str | bytes], ...]


@dataclass
class Call:
    """The metadata of a call, and what it is about, for the access log."""

    metadata: Metadata
    session: str = ""
    tool: str = ""
    host: str = ""


@dataclass(frozen=True)
class Method:
    """A call's work, how many seconds it may take at most, where it waits for its turn, and whose
    threads do it.
    """

    answer: Callable[[bytes, Call], bytes]
    limit_s: float
    workers: Workers
    gate: Gate | None = None


@dataclass
class Servicers:
    """The calls of both services over one `Analysis`."""

    analysis: Analysis
    settings: Settings
    _listed: dict[str, tuple[Listing, bytes]] = field(default_factory=dict)

    def methods(self, answers: Workers, captures: Workers) -> dict[str, dict[str, Method]]:
        """By service and method. ``captures`` do what waits for other machines."""
        usual = self.settings.request_timeout_s
        # Captures and monitoring have limits of their own, in the core, below this one.
        long = max(usual, self.settings.max_capture_s + usual)
        analysis = self.analysis
        return {
            ANALYSIS: {
                "NewSession": Method(self.new_session, long, captures),
                "EnumSessions": Method(self.enum_sessions, usual, answers, analysis.lists),
                "GetSessionToolData": Method(
                    self.get_session_tool_data, usual, answers, analysis.gate
                ),
            },
            PROFILER: {
                "Monitor": Method(self.monitor, long, captures),
                "Terminate": Method(self.terminate, usual, captures),
                **dict.fromkeys(_OF_JOBS, Method(_elsewhere, usual, captures)),
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
                ProfileSessionInfo(session_id=session.session_id, available_tools=tools or ())
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


def _parsed(kind: type[_M], content: bytes) -> _M:
    try:
        return kind.FromString(content)
    except DecodeError:
        raise UsageError(f"the request is no {kind.DESCRIPTOR.full_name}") from None


def _named_hosts(call: Call) -> list[str]:
    """The hosts that the call's metadata names."""
    names: list[str] = []
    for key, value in call.metadata:
        if key == _HOST_KEY and isinstance(value, str):
            names += [name.strip() for name in value.split(",") if name.strip()]
    call.host = ",".join(names)
    return names


def _elsewhere(content: bytes, call: Call) -> bytes:
    del content, call
    raise UnimplementedError(
        "this server does not record itself: call the profiler of the job, or NewSession here"
    )
