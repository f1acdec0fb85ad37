"""Profilers that misbehave: a gRPC server in this process that answers as it is told."""

import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from tests.waiting import HANG_S

from peakline.schema import ProfileRequest, ProfileResponse, XSpace

BUSY = "Another profiling session active."
LIMITS = [("grpc.max_send_message_length", 2**31 - 1), ("grpc.so_reuseport", 0)]
SAMPLE = "tf2_multihost/plugins/profile/2026_11_20_17_33_46/localhost_47507.xplane.pb"


@dataclass
class Peer:
    address: str = ""
    requests: list[ProfileRequest] = field(default_factory=list)
    seconds_left: list[float] = field(default_factory=list)
    cancelled: int = 0


@contextmanager
def peer(behave: Callable[[ProfileRequest, Any, int], bytes], threads: int = 4) -> Iterator[Peer]:
    """A server whose Profile answers with the bytes of ``behave(request, context, number)``."""
    state = Peer()

    def profile(content: bytes, context: grpc.ServicerContext) -> bytes:
        state.requests.append(ProfileRequest.FromString(content))
        state.seconds_left.append(context.time_remaining())
        return behave(state.requests[-1], context, len(state.requests))

    class Handler(grpc.GenericRpcHandler):
        def service(self, details):
            if details.method == "/tensorflow.ProfilerService/Profile":
                return grpc.unary_unary_rpc_method_handler(profile)
            return None

    server = grpc.server(futures.ThreadPoolExecutor(threads), handlers=[Handler()], options=LIMITS)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    state.address = f"127.0.0.1:{port}"
    try:
        yield state
    finally:
        server.stop(None).wait(10)


def waiting_peer():
    """A profiler that records until the caller leaves: with events for its begin and its end."""
    begun, ended = threading.Event(), threading.Event()

    def behave(_, context, __):
        over = threading.Event()
        context.add_callback(over.set)
        begun.set()
        if over.wait(HANG_S):
            ended.set()
        return b""

    return peer(behave), begun, ended


def sample_profile(sessions: Path) -> bytes:
    """A real XSpace."""
    return (sessions / SAMPLE).read_bytes()


def space(events: int = 1) -> XSpace:
    """A small XSpace of so many events."""
    made = XSpace(hostnames=["worker"])
    plane = made.planes.add(name="/host:CPU")
    plane.event_metadata[1].name = "step"
    line = plane.lines.add(name="main", timestamp_ns=1000)
    for number in range(events):
        line.events.add(metadata_id=1, offset_ps=number, duration_ps=1)
    return made


def answer_of(xspace: XSpace | bytes | None = None, **fields: Any) -> bytes:
    """A ProfileResponse with this profile."""
    response = ProfileResponse(**fields)
    if isinstance(xspace, bytes):
        response.xspace.MergeFromString(xspace)
    elif xspace is not None:
        response.xspace.CopyFrom(xspace)
    return response.SerializeToString()


def profile_of(events: int = 1) -> bytes:
    """A good answer."""
    return answer_of(space(events))
