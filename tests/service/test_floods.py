"""Thousands of connections and calls that say nothing or too little, to a usual server."""

import resource
import socket
import threading
import time
from contextlib import closing, contextmanager, suppress

import grpc
import httpx
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.service.bad_peers import half_call
from tests.service.grpc_client import Client
from tests.service.process_numbers import costs_of, metrics_of, tell
from tests.service.server_process import running_server
from tests.service.test_grpc_admission import ENUM, HEALTH, REFLECTION
from tests.service.test_http_guard import HALF_HEADS, UPLOAD
from tests.waiting import HANG_S, until

pytestmark = pytest.mark.soak

MIB = 1 << 20
_SPARE = 500
LARGE = b"GET /api/sessions/tf2_cnn/tools/trace_viewer HTTP/1.1\r\nHost: localhost\r\n\r\n"
"""More than systems take unread."""
BODIES = (UPLOAD, UPLOAD.replace(b"octet-stream", b"json").replace(b"uploads", b"captures"))


@contextmanager
def flood(port, count, contents, *, trickles=False):
    """``count`` connections that send the beginning of something, and some of them a bit more."""
    if count + _SPARE > resource.getrlimit(resource.RLIMIT_NOFILE)[0]:
        pytest.skip(f"this process may not have {count} connections")
    held, over = [], threading.Event()

    def trickle():
        while not over.is_set():
            for one in held[:]:
                with suppress(OSError):
                    one.send(b"a")
            over.wait(0.5)

    thread = threading.Thread(target=trickle if trickles else int)
    try:
        thread.start()
        for number in range(count):
            one = socket.create_connection(("127.0.0.1", port), HANG_S)
            held.append(one)
            with suppress(OSError):  # it may be closed already
                contents[number % len(contents)](one)
        yield held
    finally:
        over.set()
        thread.join(HANG_S)
        for one in held:
            one.close()


def sends(content):
    return lambda one: one.sendall(content)


def expect_service(server):
    """Health and answers over both faces, each over a new connection; what the slowest took."""
    slowest = 0.0
    for _ in range(10):
        began = time.monotonic()
        url = f"http://127.0.0.1:{server.http_port}"
        assert httpx.get(f"{url}/healthz", timeout=HANG_S).status_code == 200
        assert len(httpx.get(f"{url}/api/sessions", timeout=HANG_S).json()) == 4
        address = f"127.0.0.1:{server.grpc_port}"
        with grpc.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
            check = health_pb2_grpc.HealthStub(channel).Check
            assert check(health_pb2.HealthCheckRequest(), timeout=HANG_S).status == 1
        with closing(Client(address)) as client:
            assert len(client.call("EnumSessions").sessions) == 4
        slowest = max(slowest, time.monotonic() - began)
    return slowest


FLOODS = {
    "silent": ("http_port", list(map(sends, HALF_HEADS)), False),
    "trickling": ("http_port", list(map(sends, (*HALF_HEADS[1:], *BODIES))), True),
    "not reading": ("http_port", [sends(LARGE)], False),
    "silent to gRPC": ("grpc_port", [lambda _: None], False),
}


@pytest.mark.parametrize("count", [1000, 10_000])
@pytest.mark.parametrize("kind", FLOODS)
def test_connections_keep_nobody_out(sample_logdir, kind, count):
    face, contents, trickles = FLOODS[kind]
    with running_server(sample_logdir, "--access-log", "off") as server:
        expect_service(server)
        before = costs_of(server)
        with flood(getattr(server, face), count, contents, trickles=trickles):
            slowest = expect_service(server)
            during = costs_of(server)
        until(lambda: costs_of(server).descriptors <= before.descriptors + 8, "they are gone")
        expect_service(server)
        tell(f"{count} {kind}: the slowest round of four took {slowest:.2f} s", before, during)
        assert during.descriptors <= before.descriptors + 1024 + 100
        assert during.threads <= before.threads + 20
        assert during.memory <= before.memory + 400 * MIB
        assert server.end() == 0


@pytest.mark.parametrize("path", [ENUM, REFLECTION, HEALTH + "Watch"])
def test_calls_keep_nobody_out(sample_logdir, path):
    def call(one):
        half_call(one, path, 250)

    with running_server(sample_logdir, "--access-log", "off") as server:
        expect_service(server)
        before = costs_of(server)
        with flood(server.grpc_port, 40, [call]):
            slowest = expect_service(server)
            during = costs_of(server)
        expect_service(server)
        tell(f"10,000 calls of {path}: the slowest round took {slowest:.2f} s", before, during)
        assert during.threads <= before.threads + 20
        assert during.memory <= before.memory + 300 * MIB
        assert metrics_of(server)["peakline_gate_waiting"] == 0
        assert server.end() == 0
