"""A profiler as jobs have one inside: a `tensorflow.ProfilerService` on a port of this process.

It records for as long as it is asked to or until it is told to end, and answers with a real
profile. Where a test wants a profiler that misbehaves, it passes what `Profile` does instead.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc

from peakline.schema import (
    MonitorRequest,
    MonitorResponse,
    ProfileRequest,
    ProfileResponse,
    TerminateRequest,
    TerminateResponse,
    XSpace,
)


@dataclass
class Worker:
    """``answer`` is the XSpace that it recorded; None is an empty trace."""

    answer: bytes | None
    port: int = 0
    requests: list[ProfileRequest] = field(default_factory=list)
    terminated: list[str] = field(default_factory=list)
    monitored: list[MonitorRequest] = field(default_factory=list)
    recording: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def profile(self, request: ProfileRequest, context: Any) -> ProfileResponse:
        self.requests.append(request)
        context.add_callback(self.ended.set)
        self.recording.set()
        self.ended.wait(request.opts.duration_ms / 1000)
        if self.answer is None:
            return ProfileResponse(empty_trace=True)
        return ProfileResponse(xspace=XSpace.FromString(self.answer))

    def terminate(self, request: TerminateRequest, _: Any) -> TerminateResponse:
        self.terminated.append(request.session_id)
        self.ended.set()
        return TerminateResponse()

    def monitor(self, request: MonitorRequest, _: Any) -> MonitorResponse:
        self.monitored.append(request)
        return MonitorResponse(data=f"busy on {self.port}\nidle: 0%\n")


@contextmanager
def worker(
    answer: bytes | None,
    profile: Callable[[ProfileRequest, Any], ProfileResponse] | None = None,
    *,
    monitors: bool = True,
) -> Iterator[Worker]:
    """A running one. Without ``monitors`` it has no Monitor, as those of CPU and GPU jobs."""
    made = Worker(answer)
    methods = {
        "Profile": (profile or made.profile, ProfileRequest),
        "Terminate": (made.terminate, TerminateRequest),
    }
    if monitors:
        methods["Monitor"] = (made.monitor, MonitorRequest)
    handlers = {
        name: grpc.unary_unary_rpc_method_handler(
            behaviour, kind.FromString, lambda message: message.SerializeToString()
        )
        for name, (behaviour, kind) in methods.items()
    }
    server = grpc.server(ThreadPoolExecutor(8), options=(("grpc.so_reuseport", 0),))
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("tensorflow.ProfilerService", handlers),)
    )
    made.port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield made
    finally:
        made.ended.set()
        server.stop(0).wait()
