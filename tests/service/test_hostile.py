"""Profilers that hang, die, lie and send too much, captured through a running server; callers
that open connections and say nothing.
"""

import http.client
import json
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

import grpc
import httpx
import pytest
from tests.capture.peers import Peer, peer, sample_profile, waiting_peer
from tests.service.bad_peers import (
    HalfAnswer,
    big,
    dying,
    exact_answer,
    half_answer,
    half_call,
    noise,
)
from tests.service.grpc_client import Client
from tests.service.process_numbers import costs_of, files_under, metrics_of, tell
from tests.service.server_here import server_here
from tests.service.server_process import running_server
from tests.waiting import HANG_S, EndedDeadline, until

from peakline.capture.host import HostCapture
from peakline.service import capturing

MIB = 1 << 20
FAILED = {
    "hangs": "no answer within",
    "stalls": "no answer within",
    "dies": "cannot be reached",
    "garbage": "its answer is damaged, or no ProfileResponse",
    "lies": "what it sent as the profile is",
    "noise": "cannot be reached",
    "nobody": "cannot be reached",
}
"""What is told of each host whose profiler does not do its work."""


SILENT = {"hangs", "stalls"}
"""Of those the ones that never end by themselves."""


@dataclass
class Hosts:
    """The addresses of one of every kind by name, ``healthy`` among them: what it sends is stored.

    ``hanging`` and ``half`` are the `SILENT` ones.
    """

    hanging: Peer
    half: HalfAnswer
    addresses: dict[str, str] = field(default_factory=dict)


@pytest.fixture(scope="module")
def hosts(sessions):
    good = exact_answer(sample_profile(sessions))

    def lie(_request, _context, _number):
        text = b"<html><body>502 Bad Gateway</body></html>"
        return bytes([8 << 3 | 2, len(text)]) + text

    with ExitStack() as stack:
        made = Hosts(stack.enter_context(waiting_peer()[0]), stack.enter_context(half_answer()))
        bound = stack.enter_context(socket.socket())
        bound.bind(("127.0.0.1", 0))
        made.addresses |= {
            "healthy": stack.enter_context(peer(lambda *_: good)).address,
            "garbage": stack.enter_context(peer(lambda *_: os.urandom(100_000))).address,
            "lies": stack.enter_context(peer(lie)).address,
            "hangs": made.hanging.address,
            "stalls": made.half.address,
            "noise": stack.enter_context(noise()),
            "dies": stack.enter_context(dying()),
            "nobody": f"127.0.0.1:{bound.getsockname()[1]}",
        }
        yield made


@pytest.fixture
def in_time(hosts, monkeypatch):
    """What a call that captures all of ``hosts`` returns: the time of the capture is over when
    all have ended but the silent ones, which have begun.
    """
    times, ended, run = [], [], HostCapture.run

    class Time(EndedDeadline):
        def __init__(self, _seconds):
            super().__init__()
            times.append(self)

    def noting(capture):
        outcome = run(capture)
        ended.append(capture.target.host)
        return outcome

    monkeypatch.setattr(HostCapture, "run", noting)
    monkeypatch.setattr(capturing, "Deadline", Time)

    def call(make):
        ended.clear()
        hosts.hanging.requests.clear()
        hosts.half.received.clear()
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(make)
            until(lambda: set(ended) == hosts.addresses.keys() - SILENT)
            until(lambda: hosts.hanging.requests)
            assert hosts.half.received.wait(HANG_S)
            times[-1].end()
            return answer.result()

    return call


def test_each_kind_at_once_over_both_faces_and_the_healthy_host_is_stored(
    tmp_path, hosts, in_time, sessions
):
    with (
        server_here(tmp_path, workers=hosts.addresses) as server,
        closing(Client(f"127.0.0.1:{server.grpc_port}")) as client,
    ):
        body = {"hosts": list(hosts.addresses), "session_id": "over_http", "duration_ms": 10}
        captures = f"{server.url}/api/captures"
        answer = in_time(lambda: httpx.post(captures, json=body, timeout=HANG_S))
        assert answer.status_code == 201
        outcomes = {outcome["host"]: outcome for outcome in answer.json()["outcomes"]}
        healthy = outcomes.pop("healthy")
        assert (healthy["state"], healthy["error"]) == ("stored", "")
        assert set(outcomes) == set(FAILED)
        for host, outcome in outcomes.items():
            assert (outcome["state"], outcome["size"]) == ("failed", 0)
            assert outcome["error"].startswith(FAILED[host])
        request = {"hosts": list(hosts.addresses), "request": {"duration_ms": 10}}
        reply = in_time(lambda: client.call("NewSession", session_id="over_grpc", **request))
        assert not reply.empty_trace
        assert reply.error_message.startswith(f"{len(FAILED)} of {len(FAILED) + 1} hosts: ")
        for host, reason in FAILED.items():
            assert f"{host}: {reason}" in reply.error_message
        for session in ("over_grpc", "over_http"):
            stored = tmp_path / "plugins" / "profile" / session / "healthy.xplane.pb"
            assert stored.read_bytes() == sample_profile(sessions)
            result = httpx.get(f"{server.url}/api/sessions/{session}", timeout=HANG_S).json()
            assert result["hosts"] == ["healthy"]
        assert len(files_under(tmp_path)) == 2
        counted = metrics_of(server)
        for outcome, count in (("stored", 2), ("failed", 2 * len(FAILED))):
            assert counted[f'peakline_captures_total{{outcome="{outcome}"}}'] == count
        broken = {name: hosts.addresses[name] for name in ("garbage", "lies", "noise", "nobody")}
        expect_all_named_and_nothing_kept(server, client, tmp_path, broken)


@pytest.mark.parametrize(
    "size",
    [
        pytest.param(48 * MIB, marks=pytest.mark.nightly),
        pytest.param(10**9, marks=pytest.mark.soak),
    ],
    ids=["48 MiB", "1 GB"],
)
def test_a_large_profile_beside_others_takes_bounded_memory(tmp_path, hosts, size):
    names = ("healthy", "dies", "garbage")
    with (
        big(size) as large,
        big(MIB) as small,
        running_server(
            tmp_path, "--access-log", "off", "--max-capture", f"{HANG_S:.0f}s",
            *(w for name in names for w in ("--worker", f"{name}={hosts.addresses[name]}")),
            "--worker", f"large={large}", "--worker", f"small={small}",
            warms_up=False,
        ) as server,
        closing(Client(f"127.0.0.1:{server.grpc_port}")) as client,
    ):  # fmt: skip

        def capture(session, name):
            return client.call(
                "NewSession", session_id=session, hosts=[*names, name], request={"duration_ms": 10}
            )

        # What a server loads for its first capture is not what a large one costs.
        capture("first", "small")
        before = costs_of(server)
        assert capture("s", "large").error_message.startswith("2 of 4 hosts: dies: ")
        # What was received is given back; while it came, gRPC had it three times.
        most = before.memory + size
        until(lambda: costs_of(server).memory < most, "memory is given back")
        after = costs_of(server)
        tell(before, after)
        assert after.peak < before.peak + 3 * size + size // 2
        until(lambda: costs_of(server).threads <= before.threads + 8, "threads end")
        place = tmp_path / "plugins" / "profile" / "s"
        assert size < (place / "large.xplane.pb").stat().st_size < size + 1000
        data = client.call(
            "GetSessionToolData", session_id="s", tool_name="memory_profile", host_name="healthy"
        )
        assert data.output
        (place / "large.xplane.pb").unlink()
        assert files_under(place) == ["healthy.xplane.pb"]
        assert server.end() == 0


def expect_all_named_and_nothing_kept(server, client, logdir, addresses):
    """Where no host does its work both faces fail, and say why for each."""
    request = {"hosts": list(addresses), "session_id": "none"}
    with pytest.raises(grpc.RpcError) as caught:
        client.call("NewSession", **request, request={"duration_ms": 9})
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    answer = httpx.post(
        f"{server.url}/api/captures", json={**request, "duration_ms": 9}, timeout=HANG_S
    )
    assert answer.status_code == 503
    for result in (caught.value.details(), answer.json()["detail"]):
        for name, address in addresses.items():
            assert f"{address}: {FAILED[name]}" in result
    assert not (logdir / "plugins" / "profile" / "none").exists()


@pytest.fixture
def open_connection():
    """Connect to a port of this machine: ``open_connection(port, first_bytes)``."""
    with ExitStack() as stack:

        def connect(port, content=b""):
            connection = socket.create_connection(("127.0.0.1", port), timeout=HANG_S)
            stack.enter_context(connection)
            connection.sendall(content)
            return connection

        yield connect


def beginning(path, content_type, body):
    """The head of a POST of a thousand bytes, and the first of them."""
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: 1000\r\n\r\n{body}"
    ).encode()


HALF_REQUESTS = (
    b"",
    b"GET /api/sessions HT",
    b"GET /api/sessions HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
    beginning("/api/sessions/s/sql", "application/json", "{"),
    beginning("/api/uploads?session_id=NUMBER", "application/octet-stream", "abc"),
)
"""Nothing, and the beginnings of requests of which the rest never comes; each upload makes a
session of its own.
"""


def are_open(server, http_connections, grpc_connections):
    """Whether so many callers are connected, beside the one who reads the metrics."""
    counted = metrics_of(server)
    return (
        counted['peakline_connections{face="http"}'] > http_connections
        and counted['peakline_connections{face="grpc"}'] >= grpc_connections
    )


@pytest.mark.parametrize(
    ("silent_http", "silent_grpc"), [(30, 20), pytest.param(300, 200, marks=pytest.mark.soak)]
)
def test_callers_that_say_nothing_hold_up_nobody(
    sample_logdir, open_connection, silent_http, silent_grpc
):
    with (
        running_server(sample_logdir, "--access-log", "off", warms_up=False) as server,
        closing(Client(f"127.0.0.1:{server.grpc_port}")) as client,
        closing(
            http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=HANG_S)
        ) as connection,
    ):
        before = costs_of(server)
        silent = []
        for number in range(silent_http):
            content = HALF_REQUESTS[number % len(HALF_REQUESTS)]
            content = content.replace(b"NUMBER", b"%d" % number)
            silent.append(open_connection(server.http_port, content))
        for number in range(silent_grpc):
            connected = open_connection(server.grpc_port)
            silent.append(connected)
            if number % 2:
                half_call(connected, "/tensorflow.ProfileAnalysis/EnumSessions")
        until(lambda: are_open(server, silent_http, silent_grpc), "all are in")
        for _ in range(20):
            assert len(client.call("EnumSessions", timeout=HANG_S).sessions) == 4
            connection.request("GET", "/api/sessions")
            response = connection.getresponse()
            assert (response.status, len(json.loads(response.read()))) == (200, 4)
        tell(costs_of(server))
        # Nor were they turned away: all of them are still there.
        assert are_open(server, silent_http, silent_grpc)
        client.close()
        connection.close()
        for one in silent:
            one.close()
        until(lambda: costs_of(server).descriptors <= before.descriptors + 8, "they are gone")
        assert metrics_of(server)['peakline_in_flight{face="grpc"}'] == 0
        assert server.end() == 0
