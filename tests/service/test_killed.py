"""Servers that end by SIGKILL in the middle of storing, and two servers that store the same."""

import http.client
import signal
import threading
from contextlib import closing
from pathlib import Path

import grpc
import httpx
import pytest
from tests.capture.peers import peer, sample_profile, space
from tests.service.bad_peers import big, exact_answer, half_answer
from tests.service.grpc_client import Client
from tests.service.process_numbers import files_under
from tests.service.server_here import server_here
from tests.service.server_process import running_server
from tests.waiting import HANG_S, until

LOST = ("receiving", "uploading", "writing")
"""Sessions of which nothing was whole when the server was killed."""
ID = "s"
LARGE = 100 << 20


@pytest.fixture
def healthy(sessions):
    """A profiler that answers with a real profile."""
    content = exact_answer(sample_profile(sessions))
    with peer(lambda *_: content) as there:
        yield there


def start_capture(client, session_id, *hosts):
    request = {"duration_ms": 10}
    return client.start("NewSession", session_id=session_id, hosts=hosts, request=request)


def serving(logdir, **workers):
    words = [
        word for name, address in workers.items() for word in ("--worker", f"{name}={address}")
    ]
    return running_server(logdir, "--access-log", "off", *words, warms_up=False)


def path_of(logdir, session_id):
    return logdir / "plugins" / "profile" / session_id


def written_bytes(server, directory):
    """How much is written so far of a file in ``directory``, whether it has a name or not."""
    sizes = [0]
    for descriptor in Path(f"/proc/{server.process.pid}/fd").iterdir():
        try:
            if descriptor.readlink().is_relative_to(directory) and descriptor.is_file():
                sizes.append(descriptor.stat().st_size)
        except OSError:
            continue
    return max(sizes)


def start_upload(server, session_id):
    """Send the first half of a profile."""
    long = space()
    long.planes[0].event_metadata[1].metadata = bytes(LARGE)
    content = long.SerializeToString()
    connection = http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=HANG_S)
    connection.putrequest("POST", f"/api/uploads?session_id={session_id}&host=w")
    connection.putheader("Content-Type", "application/octet-stream")
    connection.putheader("Content-Length", str(len(content)))
    connection.endheaders()
    connection.send(content[: LARGE // 2])
    return connection


@pytest.mark.soak
def test_killed_in_the_middle_of_everything_and_started_again(empty, healthy, sessions):
    """One capture receives, one writes, one has stored the first of two hosts, an upload comes
    in: after SIGKILL there is the host that was whole, and nothing of all the rest.
    """
    with (
        half_answer() as half,
        half_answer() as second_half,
        big(LARGE) as large,
        serving(
            empty, a=healthy.address, half=half.address, b=second_half.address, large=large
        ) as server,
        closing(Client(f"127.0.0.1:{server.grpc_port}")) as client,
    ):
        calls = [
            start_capture(client, "receiving", "half"),
            start_capture(client, "partly", "a", "b"),
        ]
        assert half.received.wait(HANG_S)
        assert second_half.received.wait(HANG_S)
        until(lambda: files_under(empty), "the healthy host is stored")
        with closing(start_upload(server, "uploading")):
            uploading = path_of(empty, "uploading")
            until(lambda: written_bytes(server, uploading) > 1 << 20, "the upload is written")
            calls.append(start_capture(client, "writing", "large"))
            writing = path_of(empty, "writing")
            until(lambda: written_bytes(server, writing) or calls[-1].done(), "it writes", 0.001)
            assert server.end(signal.SIGKILL) == -signal.SIGKILL
        assert all(call.exception(timeout=HANG_S) is not None for call in calls)
    whole = "plugins/profile/partly/a.xplane.pb"
    assert files_under(empty) == [whole]
    expect_only_the_whole_one_and_capture_the_others(empty, healthy)
    stored = [f"plugins/profile/{name}/a.xplane.pb" for name in (*LOST, "partly")]
    assert files_under(empty) == sorted(stored)
    assert {(empty / name).read_bytes() for name in stored} == {sample_profile(sessions)}


def expect_only_the_whole_one_and_capture_the_others(logdir, healthy):
    with (
        serving(logdir, a=healthy.address) as server,
        closing(Client(f"127.0.0.1:{server.grpc_port}")) as client,
    ):
        assert "(1 session)" in server.announced
        url = f"http://127.0.0.1:{server.http_port}/api/sessions"
        (session,) = httpx.get(url, timeout=HANG_S).json()
        assert (session["session_id"], session["hosts"]) == ("partly", ["a"])
        assert httpx.get(f"{url}/partly/tools/memory_profile", timeout=HANG_S).status_code == 200
        assert client.call("EnumSessions").error_message == ""
        taken = start_capture(client, "partly", "a").exception(HANG_S)
        assert taken.code() is grpc.StatusCode.ALREADY_EXISTS
        for name in LOST:
            assert httpx.get(f"{url}/{name}", timeout=HANG_S).status_code == 404
            answer = start_capture(client, name, "a").result(HANG_S)
            assert (answer.error_message, answer.empty_trace) == ("", False)
        found = client.call("EnumSessions").sessions
        assert {one.session_id for one in found} == {*LOST, "partly"}
        assert all("memory_profile" in one.available_tools for one in found)
        assert server.end() == 0


@pytest.mark.parametrize(
    "rounds",
    [
        1,
        pytest.param(5, marks=pytest.mark.nightly),
        pytest.param(100, marks=pytest.mark.soak),
    ],
)
def test_of_two_servers_one_makes_the_session(empty, healthy, sessions, rounds):
    """In round after round exactly one wins, and what it stored is whole."""
    release = threading.Event()
    content = exact_answer(sample_profile(sessions))

    def wait(_request, _context, _number):
        release.wait(HANG_S)
        return content

    with (
        peer(wait) as slow,
        serving(empty, w=healthy.address, slow=slow.address) as one,
        server_here(empty, workers={"w": healthy.address, "slow": slow.address}) as two,
        closing(Client(f"127.0.0.1:{one.grpc_port}")) as first,
        closing(Client(f"127.0.0.1:{two.grpc_port}")) as second,
    ):
        for number in range(rounds):
            request = {"session_id": f"r{number}", "hosts": ["w"], "request": {"duration_ms": 1}}
            calls = [client.start("NewSession", **request) for client in (first, second)]
            assert sorted(call.code().name for call in calls) == ["ALREADY_EXISTS", "OK"]
        # The other one is refused while the first is still recording, not at the end.
        recording = start_capture(first, ID, "slow")
        until(lambda: slow.requests, "it records")
        refused = start_capture(second, ID, "slow").exception(HANG_S)
        assert refused.code() is grpc.StatusCode.ALREADY_EXISTS
        assert len(slow.requests) == 1
        release.set()
        assert recording.result(HANG_S).error_message == ""
        ids = {session.session_id for session in second.call("EnumSessions").sessions}
        assert ids == {ID, *(f"r{number}" for number in range(rounds))}
        assert one.end() == 0
    stored = [empty / name for name in files_under(empty)]
    assert len(stored) == rounds + 1
    assert {file.read_bytes() for file in stored} == {sample_profile(sessions)}
