"""Profilers that hang, die, lie and send too much, captured through a running server; callers
that open connections and say nothing.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import time
from contextlib import ExitStack

import grpc
import httpx
import pytest
from tests.capture.peers import peer, sample_profile
from tests.service.bad_peers import big, dying, exact_answer, half_answer, half_call, noise
from tests.service.grpc_client import Client
from tests.service.process_numbers import costs_of, files_under, metrics_of, tell
from tests.service.server_process import running_server
from tests.waiting import HANG_S, until

GIGABYTE = 10**9
MOST_S = HANG_S / 2
"""Without an end a profiler that hangs would hold everybody up for ever."""
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


@pytest.fixture
def empty(tmp_path):
    logdir = tmp_path / "empty"
    logdir.mkdir()
    return logdir


@pytest.fixture
def bad_hosts(sessions, unused_port):
    """One of every kind by name, ``healthy`` among them: what it sends is stored."""
    good = exact_answer(sample_profile(sessions))

    def hang(_request, context, _number):
        while context.is_active():
            time.sleep(0.05)
        return b""

    def lie(_request, _context, _number):
        text = b"<html><body>502 Bad Gateway</body></html>"
        return bytes([8 << 3 | 2, len(text)]) + text

    with ExitStack() as stack:
        addresses = {
            name: stack.enter_context(peer(behave)).address
            for name, behave in (
                ("healthy", lambda *_: good),
                ("hangs", hang),
                ("garbage", lambda *_: os.urandom(100_000)),
                ("lies", lie),
            )
        }
        addresses["stalls"] = stack.enter_context(half_answer()).address
        addresses["noise"] = stack.enter_context(noise())
        addresses["dies"] = stack.enter_context(dying())
        addresses["nobody"] = f"127.0.0.1:{unused_port}"
        yield addresses


def serving(logdir, hosts, limit_s=MOST_S):
    workers = [word for name in hosts for word in ("--worker", f"{name}={hosts[name]}")]
    return running_server(
        logdir, "--max-capture", f"{limit_s:.0f}s", "--access-log", "off", *workers
    )


def test_each_kind_at_once_over_both_faces_and_the_healthy_host_is_stored(
    empty, bad_hosts, sessions
):
    with serving(empty, bad_hosts, limit_s=5) as server:
        url = f"http://127.0.0.1:{server.http_port}"
        # What a server loads for its first capture shall not use up the time of those below.
        first = {"hosts": ["healthy"], "session_id": "first", "duration_ms": 10}
        until(lambda: httpx.post(f"{url}/api/captures", json=first, timeout=HANG_S).is_success)
        before = metrics_of(server)
        body = {"hosts": list(bad_hosts), "session_id": "over_http", "duration_ms": 10}
        began = time.monotonic()
        answer = httpx.post(f"{url}/api/captures", json=body, timeout=HANG_S)
        assert answer.status_code == 201
        outcomes = {outcome["host"]: outcome for outcome in answer.json()["outcomes"]}
        healthy = outcomes.pop("healthy")
        assert (healthy["state"], healthy["error"]) == ("stored", "")
        assert set(outcomes) == set(FAILED)
        for host, outcome in outcomes.items():
            assert (outcome["state"], outcome["size"]) == ("failed", 0)
            assert outcome["error"].startswith(FAILED[host])
        client = Client(f"127.0.0.1:{server.grpc_port}")
        reply = client.call(
            "NewSession",
            session_id="over_grpc",
            hosts=list(bad_hosts),
            request={"duration_ms": 10},
        )
        assert time.monotonic() - began < MOST_S
        assert not reply.empty_trace
        assert reply.error_message.startswith(f"{len(FAILED)} of {len(FAILED) + 1} hosts: ")
        for host, reason in FAILED.items():
            assert f"{host}: {reason}" in reply.error_message
        for session in ("over_grpc", "over_http"):
            stored = empty / "plugins" / "profile" / session / "healthy.xplane.pb"
            assert stored.read_bytes() == sample_profile(sessions)
            told = httpx.get(f"{url}/api/sessions/{session}", timeout=HANG_S).json()
            assert told["hosts"] == ["healthy"]
        assert len(files_under(empty)) == 3
        counted = metrics_of(server)
        broken = {name: bad_hosts[name] for name in ("garbage", "lies", "noise", "nobody")}
        expect_all_named_and_nothing_kept(server, client, empty, broken)
        for outcome, count in (("stored", 2), ("failed", 2 * len(FAILED))):
            name = f'peakline_captures_total{{outcome="{outcome}"}}'
            assert counted[name] - before.get(name, 0) == count
        client.close()
        assert server.end() == 0


def test_a_gigabyte_beside_others_takes_bounded_time_and_memory(empty, bad_hosts):
    hosts = {name: bad_hosts[name] for name in ("healthy", "dies", "garbage")}
    with big(GIGABYTE) as large, serving(empty, hosts | {"large": large}) as server:
        before = costs_of(server)
        client = Client(f"127.0.0.1:{server.grpc_port}")
        began = time.monotonic()
        answer = client.call(
            "NewSession", session_id="s", hosts=[*hosts, "large"], request={"duration_ms": 10}
        )
        seconds = time.monotonic() - began
        assert answer.error_message.startswith("2 of 4 hosts: dies: ")
        assert seconds < MOST_S
        # What was received is given back; while it came, gRPC had it three times.
        until(lambda: costs_of(server).memory < before.memory + GIGABYTE, "memory is given back")
        after = costs_of(server)
        tell(f"{seconds:.1f} s", before, after)
        assert after.peak < before.peak + 3 * GIGABYTE + (600 << 20)
        until(lambda: costs_of(server).threads <= before.threads + 8, "threads end")
        place = empty / "plugins" / "profile" / "s"
        assert GIGABYTE < (place / "large.xplane.pb").stat().st_size < GIGABYTE + 1000
        data = client.call(
            "GetSessionToolData", session_id="s", tool_name="memory_profile", host_name="healthy"
        )
        assert data.output
        client.close()
        (place / "large.xplane.pb").unlink()
        assert files_under(empty) == ["plugins/profile/s/healthy.xplane.pb"]
        assert server.end() == 0


def expect_all_named_and_nothing_kept(server, client, logdir, addresses):
    """Where no host does its work both faces fail, and say why for each."""
    request = {"hosts": list(addresses), "session_id": "none"}
    with pytest.raises(grpc.RpcError) as caught:
        client.call("NewSession", **request, request={"duration_ms": 9})
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    answer = httpx.post(
        f"http://127.0.0.1:{server.http_port}/api/captures",
        json={**request, "duration_ms": 9},
        timeout=HANG_S,
    )
    assert answer.status_code == 503
    for told in (caught.value.details(), answer.json()["detail"]):
        for name, address in addresses.items():
            assert f"{address}: {FAILED[name]}" in told
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


def test_callers_that_say_nothing_hold_up_nobody(sample_logdir, open_connection):
    with running_server(sample_logdir, "--access-log", "off") as server:
        before = costs_of(server)
        silent = []
        for number in range(300):
            content = HALF_REQUESTS[number % len(HALF_REQUESTS)]
            content = content.replace(b"NUMBER", b"%d" % number)
            silent.append(open_connection(server.http_port, content))
        for number in range(200):
            connection = open_connection(server.grpc_port)
            silent.append(connection)
            if number % 2:
                half_call(connection, "/tensorflow.ProfileAnalysis/EnumSessions")
        until(lambda: costs_of(server).descriptors >= before.descriptors + 500, "all are in")
        client = Client(f"127.0.0.1:{server.grpc_port}")
        connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=HANG_S)
        slowest = 0.0
        for _ in range(20):
            began = time.monotonic()
            assert len(client.call("EnumSessions", timeout=HANG_S).sessions) == 4
            connection.request("GET", "/api/sessions")
            response = connection.getresponse()
            assert (response.status, len(json.loads(response.read()))) == (200, 4)
            slowest = max(slowest, time.monotonic() - began)
        tell(f"slowest of 20 pairs of answers: {slowest:.3f} s", costs_of(server))
        assert slowest < MOST_S
        # Nor were they turned away: all of them are still there.
        assert costs_of(server).descriptors >= before.descriptors + 500
        client.close()
        connection.close()
        for one in silent:
            one.close()
        until(lambda: costs_of(server).descriptors <= before.descriptors + 8, "they are gone")
        counted = metrics_of(server)
        assert counted['peakline_in_flight{face="grpc"}'] == 0
        assert server.end() == 0
