"""The whole server as a process: both faces, its end by signals, and what a restart finds."""

import contextlib
import json
import signal
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import grpc
import httpx
import pytest
from tests.capture.peers import peer, sample_profile, space
from tests.service.bad_peers import exact_answer
from tests.service.certificates import Authority
from tests.service.conftest import SESSIONS
from tests.service.grpc_client import Client
from tests.service.server_here import listens, server_here
from tests.service.server_process import running_server
from tests.waiting import HANG_S, until

from peakline.safe_text import one_line
from peakline.schema import ProfileResponse

_SESSION = SESSIONS["tf2_cnn"]
_NEW = "2027_01_01_00_00_00"


def _files(logdir):
    """Everything below a log directory that is no directory, dot names too."""
    return sorted(str(p.relative_to(logdir)) for p in logdir.rglob("*") if not p.is_dir())


def _folders(logdir):
    return sorted(str(p.relative_to(logdir)) for p in logdir.rglob("*") if p.is_dir())


def _grpc_client(server, **kwargs):
    return Client(f"127.0.0.1:{server.grpc_port}", **kwargs)


def _url(server, path):
    return f"http://127.0.0.1:{server.http_port}{path}"


class _Slow:
    """A profiler that answers when it is told to; says when it was asked."""

    def __init__(self, content):
        self.asked = threading.Event()
        self.go_on = threading.Event()
        self._content = content

    def __call__(self, _request, context, _number):
        over = threading.Event()
        context.add_callback(over.set)
        self.asked.set()
        until(lambda: self.go_on.is_set() or over.is_set())
        if not self.go_on.is_set():
            return b""
        response = ProfileResponse()
        response.xspace.ParseFromString(self._content)
        return response.SerializeToString()


@pytest.fixture
def slow(sessions):
    behave = _Slow(sample_profile(sessions))
    with peer(behave) as there:
        behave.address = there.address
        yield behave
        behave.go_on.set()


def _capture(client, *hosts):
    return client.start(
        "NewSession",
        session_id=_NEW,
        hosts=hosts or ["w0"],
        request={"duration_ms": 100, "opts": {"duration_ms": 100}},
    )


def test_both_faces_answer_the_same_from_one_process_and_a_restart_finds_their_ports(logdir):
    with running_server(logdir, warms_up=False) as server:
        client = _grpc_client(server)
        listed = client.call("EnumSessions", repository_root=str(logdir))
        over_grpc = client.call(
            "GetSessionToolData", session_id=_SESSION, tool_name="memory_profile", host_name="vm"
        )
        url = _url(server, f"/api/sessions/{_SESSION}/tools/memory_profile")
        over_http = httpx.get(url, timeout=HANG_S)
        assert {session.session_id for session in listed.sessions} == set(SESSIONS.values())
        assert over_grpc.output == over_http.content
        assert server.announced.startswith(
            f"peakline: serving {one_line(str(logdir))} (4 sessions)"
        )
        assert server.end() == 0
        client.close()
    assert len(server.lines) == len(set(server.lines))
    for line in server.lines:
        assert line.startswith("peakline: ") or json.loads(line)["time"]
    ports = server.grpc_port, server.http_port
    with server_here(logdir, grpc_port=ports[0], http_port=ports[1]) as again:
        assert (again.grpc_port, again.http_port) == ports


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_exit_0_and_both_ports_closed(empty, number):
    """Also right at its start, when the main thread begins to wait while others load and compile,
    and hold the interpreter; and no other signal hides it.
    """
    with running_server(empty) as server, socket.create_connection(("127.0.0.1", server.http_port)):
        server.process.send_signal(signal.SIGHUP)
        assert server.end(number) == 0
        for port in (server.grpc_port, server.http_port):
            assert not listens(port)
    assert "ending" in server.lines[-2]
    assert json.loads(server.lines[-1])["event"] == "stopped"


@pytest.mark.nightly
def test_a_connection_that_is_accepted_as_the_end_begins_is_closed(empty):
    with server_here(empty) as server:
        http_server = server._http._server
        held, go_on = threading.Event(), threading.Event()

        def hold():
            held.set()
            go_on.wait(HANG_S)
            time.sleep(0.1)  # after which uvicorn's look at whether it is to end is due

        http_server.servers[0]._loop.call_soon_threadsafe(hold)
        assert held.wait(HANG_S)
        # Both are there when the loop goes on: the connection is accepted, and the end begins
        # before it is made.
        with socket.create_connection(("127.0.0.1", server.http_port), HANG_S) as late:
            ending = threading.Thread(target=server.stop, args=(2 * HANG_S,))
            ending.start()
            until(lambda: http_server.should_exit)
            go_on.set()
            assert late.recv(1) == b""
            ending.join(HANG_S)
            assert not ending.is_alive()


@pytest.mark.nightly
def test_a_running_capture_may_end_within_the_time_of_grace(empty, slow):
    workers = {"w0": slow.address}
    with server_here(empty, workers=workers) as server, closing(_grpc_client(server)) as client:
        call = _capture(client)
        assert slow.asked.wait(HANG_S)
        ending = threading.Thread(target=server.stop, args=(HANG_S,))
        port = server.grpc_port
        ending.start()
        # Not by a call: gRPC lets one that comes at this very moment wait until the grace is over.
        until(lambda: not listens(port))
        slow.go_on.set()
        assert not call.result(timeout=HANG_S).empty_trace
        ending.join(HANG_S)
        assert _is_refused(client)
    assert _files(empty) == [f"plugins/profile/{_NEW}/w0.xplane.pb"]


@pytest.mark.nightly
def test_captures_of_both_faces_are_cancelled_after_the_grace_and_leave_nothing(empty, slow):
    workers = {"w0": slow.address}
    with (
        server_here(empty, workers=workers) as server,
        closing(_grpc_client(server)) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        over_grpc = _capture(client)
        assert slow.asked.wait(HANG_S)
        body = {"hosts": ["w0"], "session_id": "other", "duration_ms": 100}
        over_http = pool.submit(
            httpx.post, _url(server, "/api/captures"), json=body, timeout=HANG_S
        )
        until((empty / "plugins" / "profile" / "other").exists)
        server.stop(0.2)
        with pytest.raises(grpc.RpcError) as refused:
            over_grpc.result(timeout=HANG_S)
        assert refused.value.code() in (grpc.StatusCode.CANCELLED, grpc.StatusCode.UNAVAILABLE)
        error = over_http.exception(timeout=HANG_S)
        # The connection is closed, or there was time to say why.
        assert isinstance(error, httpx.TransportError) or over_http.result().status_code >= 499
    until(lambda: not any(name.endswith((_NEW, "other")) for name in _folders(empty)), "they go")
    assert _files(empty) == []


@pytest.mark.nightly
def test_the_grace_is_no_longer_than_was_said(empty):
    with server_here(empty, grace_s=0.25) as server:
        uvicorn = server._http._server
        server.stop()
    assert uvicorn.config.timeout_graceful_shutdown == 0.25


def test_a_second_signal_ends_it_at_once(empty, slow):
    options = ("--worker", f"w0={slow.address}", "--grace", "1h")
    with (
        running_server(empty, *options, warms_up=False) as server,
        closing(_grpc_client(server)) as client,
    ):
        call = _capture(client)
        assert slow.asked.wait(HANG_S)
        server.process.send_signal(signal.SIGINT)
        server.wait_for("ending; running requests have 3600 s")
        assert server.end(signal.SIGINT) == 130
        assert call.exception(timeout=HANG_S) is not None
    assert _files(empty) == []


def test_a_server_that_is_killed_leaves_what_was_whole_and_starts_again(empty, slow, sessions):
    """One capture has stored the first of two hosts, an upload comes in."""
    content = sample_profile(sessions)
    filler = space()
    filler.planes[0].event_metadata[1].metadata = bytes(4 << 20)
    long = filler.SerializeToString()
    whole = f"plugins/profile/{_NEW}/w1.xplane.pb"
    with peer(lambda *_: exact_answer(content)) as healthy:
        workers = {"w0": slow.address, "w1": healthy.address}
        options = [word for name in workers for word in ("--worker", f"{name}={workers[name]}")]
        with (
            running_server(empty, *options, warms_up=False) as server,
            closing(_grpc_client(server)) as client,
            closing(HTTPConnection("127.0.0.1", server.http_port, timeout=HANG_S)) as uploading,
        ):
            call = _capture(client, *workers)
            assert slow.asked.wait(HANG_S)
            until(lambda: _files(empty), "the healthy host is stored")
            uploading.putrequest("POST", "/api/uploads?session_id=uploaded&host=w")
            uploading.putheader("Content-Type", "application/octet-stream")
            uploading.putheader("Content-Length", str(2 * len(long)))
            uploading.endheaders()
            uploading.send(long)
            until((empty / "plugins/profile/uploaded").exists, "the upload is begun")
            assert server.end(signal.SIGKILL) == -signal.SIGKILL
            assert call.exception(timeout=HANG_S) is not None
        assert _files(empty) == [whole]
        slow.go_on.set()
        with server_here(empty, workers=workers) as again, closing(_grpc_client(again)) as client:
            assert "(1 session)" in again.announcement()
            taken = _capture(client, "w1").exception(timeout=HANG_S)
            assert taken.code() is grpc.StatusCode.ALREADY_EXISTS
            request = {"duration_ms": 100}
            for name in ("uploaded", "another"):
                reply = client.call("NewSession", session_id=name, hosts=["w0"], request=request)
                assert (reply.error_message, reply.empty_trace) == ("", False)
            result = {session.session_id for session in client.call("EnumSessions").sessions}
            assert result == {_NEW, "uploaded", "another"}
    stored = [f"plugins/profile/{name}/w0.xplane.pb" for name in ("another", "uploaded")]
    assert _files(empty) == sorted([whole, *stored])
    assert (empty / whole).read_bytes() == content


def test_a_hangup_reads_tokens_and_opens_the_log_anew(empty, tmp_path):
    tokens, log = tmp_path / "tokens", tmp_path / "access.log"
    tokens.write_text("the-first-of-all-tokens\n", encoding="utf-8")
    tokens.chmod(0o600)

    def code(token):
        headers = {"Authorization": f"Bearer {token}"}
        return httpx.get(_url(server, "/api/sessions"), headers=headers, timeout=HANG_S).status_code

    words = (empty, "--token-file", tokens, "--access-log", log)
    with running_server(*words, warms_up=False) as server:
        assert httpx.get(_url(server, "/healthz"), timeout=HANG_S).status_code == 200
        assert httpx.get(_url(server, "/api/sessions"), timeout=HANG_S).status_code == 401
        assert code("the-first-of-all-tokens") == 200
        tokens.write_text("the-second-of-all-tokens\n", encoding="utf-8")
        log.rename(tmp_path / "access.log.1")
        server.process.send_signal(signal.SIGHUP)
        until(lambda: code("the-second-of-all-tokens") == 200)
        assert code("the-first-of-all-tokens") == 401
        tokens.write_text("", encoding="utf-8")
        server.process.send_signal(signal.SIGHUP)
        until(lambda: '"reload failed"' in log.read_text())
        assert code("the-second-of-all-tokens") == 200
        assert server.end() == 0
    old, new = (tmp_path / "access.log.1").read_text(), log.read_text()
    assert '"code": "401"' in old
    assert '"code": "200"' in old
    assert '"code": "401"' in new
    events = [json.loads(line).get("event") for line in new.splitlines()]
    assert [event for event in events if event and "reload" in event] == [
        "reloaded",
        "reload failed",
    ]
    assert "of-all-tokens" not in old + new + "".join(server.lines)
    assert all(json.loads(line)["time"] for line in (old + new).splitlines())


def test_both_faces_speak_tls_and_ask_for_the_client_s_certificate(sample_logdir, tmp_path):
    authority, clients = Authority(tmp_path, "authority"), Authority(tmp_path, "clients")
    own, friend = authority.issue("server"), clients.issue("friend")
    secured = {
        "tls_cert": str(own.certificate_path),
        "tls_key": str(own.key_path),
        "tls_client_ca": str(clients.path),
    }
    with server_here(sample_logdir, **secured) as server:
        faces = f" on grpcs://127.0.0.1:{server.grpc_port} and https://127.0.0.1:{server.http_port}"
        assert faces in server.announcement()
        url = f"https://localhost:{server.http_port}/api/sessions"
        context = ssl.create_default_context(cafile=authority.path)
        with pytest.raises(httpx.TransportError):
            httpx.get(url, verify=context, timeout=HANG_S)
        context.load_cert_chain(friend.certificate_path, friend.key_path)
        assert len(httpx.get(url, verify=context, timeout=HANG_S).json()) == 4
        with pytest.raises(httpx.TransportError):
            httpx.get(url.replace("https", "http"), timeout=HANG_S)
        for pair, refused in (((friend.key, friend.certificate), False), ((), True)):
            credentials = grpc.ssl_channel_credentials(authority.certificate, *pair)
            client = Client(f"localhost:{server.grpc_port}", credentials)
            assert _is_refused(client) is refused
            client.close()


@pytest.mark.usefixtures("uncollected")
def test_a_stopped_server_leaves_no_thread_and_no_socket(sample_logdir):
    before = _threads(), _sockets()
    with server_here(sample_logdir) as server:
        ports = server.grpc_port, server.http_port
        assert httpx.get(f"http://127.0.0.1:{ports[1]}/healthz", timeout=HANG_S).status_code == 200
        client = Client(f"127.0.0.1:{ports[0]}")
        assert len(client.call("EnumSessions", repository_root="").sessions) == 4
        client.close()
    until(lambda: _threads() <= before[0], f"ends: {_threads() - before[0]}")
    assert _sockets() <= before[1]
    for port in ports:
        assert not listens(port)
    assert server.stop()


def _is_refused(client):
    try:
        client.call("EnumSessions", repository_root="", timeout=HANG_S)
    except grpc.RpcError:
        return True
    return False


def _threads():
    """The threads, but those that libraries keep for the whole process."""
    chosen = ("AnyIO worker thread", "asyncio_")
    return {thread for thread in threading.enumerate() if not thread.name.startswith(chosen)}


def _sockets():
    """The sockets of this process that listen, by inode."""
    owned = set()
    for entry in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):
            owned.add(str(entry.readlink()))
    listening = set()
    for table in ("tcp", "tcp6"):
        rows = Path("/proc/net", table).read_text(encoding="ascii").splitlines()[1:]
        listening |= {f"socket:[{row.split()[9]}]" for row in rows if row.split()[3] == "0A"}
    return owned & listening
