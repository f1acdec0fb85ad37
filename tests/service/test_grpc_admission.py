"""What the gRPC server lets in: requests, callers, limits."""

import contextlib
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import grpc
import httpx
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, message_factory
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from tests.capture.dying_peer import HEADERS, SETTINGS, frame
from tests.each_row import each_row
from tests.engine.held_tool import HeldTool
from tests.service.bad_peers import PREFACE, half_call
from tests.service.certificates import Authority
from tests.service.conftest import SESSIONS
from tests.service.grpc_client import Client
from tests.service.server_here import listens, server_here
from tests.service.test_grpc_analysis import failure
from tests.waiting import HANG_S, growing, until

import peakline
from peakline.deadline import Deadline
from peakline.errors import UsageError
from peakline.service import deliveries, grpc_answering

REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
HEALTH = "/grpc.health.v1.Health/"
ENUM = "/tensorflow.ProfileAnalysis/EnumSessions"
QUESTION = {"session_id": SESSIONS["tf2_cnn"], "tool_name": "memory_profile"}
_NEVER_THE_LAST = frame(9, 0, 1, 3276 * b"\x00\x01a\x01b")
"""CONTINUATION (RFC 9113, 6.10) without END_HEADERS, of small headers."""
PATIENT = {"head_timeout_s": HANG_S}


@pytest.fixture
def connect():
    """``connect(port)``: a connection, open until the end of the test."""
    with ExitStack() as stack:
        yield lambda port: stack.enter_context(
            socket.create_connection(("127.0.0.1", port), HANG_S)
        )


def is_healthy(address):
    with grpc.insecure_channel(address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        check = health_pb2_grpc.HealthStub(channel).Check
        return check(health_pb2.HealthCheckRequest(), timeout=HANG_S).status == 1


@each_row("path", [ENUM, REFLECTION, HEALTH + "Check", HEALTH + "Watch"])
def test_calls_whose_requests_do_not_come_shut_nobody_out(serve, sample_logdir, connect, path):
    served = serve(sample_logdir, max_concurrent=1, max_queued=0, **PATIENT)
    for _ in range(5):
        half_call(connect(served.server.port), path, 250)
    # Each is there before the next is sent over a connection, but not before one over another.
    for _ in range(3):
        assert is_healthy(served.address)
        assert len(served.client.call("EnumSessions").sessions) == 4
    until(lambda: is_healthy(served.address))


def test_a_request_that_does_not_come_ends_its_call(serve, sample_logdir, connect):
    served = serve(sample_logdir, head_timeout_s=0.1)
    half_call(connect(served.server.port), ENUM)
    until(served.parts.log_lines)
    (line,) = served.parts.log_lines()
    assert (line["method"], line["code"]) == (ENUM[1:], "DEADLINE_EXCEEDED")


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="the system lists no descriptors")
def test_connections_that_say_nothing_give_way(serve, sample_logdir, connect):
    served = serve(
        sample_logdir, max_concurrent=1, max_connections=64, max_connections_per_peer=16, **PATIENT
    )
    gate = served.parts.analysis.gate
    with gate.enter():
        # The oldest of all connections, and the only one that the server works for.
        call = served.client.start("GetSessionToolData", **QUESTION)
        until(lambda: gate.waiting == 1)
        held = [connect(served.server.port) for _ in range(150)]
        until(lambda: sum(map(_is_open, held)) < 16, "they were refused, or gave way")
    assert call.result(HANG_S).output
    for _ in range(3):
        assert is_healthy(served.address)
        with closing(Client(served.address)) as client:
            assert len(client.call("EnumSessions").sessions) == 4
    metrics = served.parts.metrics.render().decode()
    assert 'peakline_connections_closed_total{reason="full"} 0.0' not in metrics


def _is_open(one):
    one.settimeout(0)
    try:
        while one.recv(1 << 12):
            pass  # gRPC says hello
    except BlockingIOError:
        return True
    except ConnectionError:
        return False
    return False


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="the system lists no descriptors")
def test_a_head_without_an_end_ends_its_connection_and_large_calls_do_not(
    serve, sample_logdir, connect
):
    served = serve(sample_logdir, **PATIENT)
    for _ in range(9):
        code, _ = failure(served.client.call, "GetSessionToolData", session_id="s" * 1_000_000)
        assert code == "INVALID_ARGUMENT"
    endless = connect(served.server.port)
    head = frame(HEADERS, 0, 1, b"\x83\x86")
    left = memoryview(PREFACE + frame(SETTINGS, 0, 0) + head + 8 * 64 * _NEVER_THE_LAST)

    def is_over():
        nonlocal left
        with contextlib.suppress(OSError):
            left = left[endless.send(left) :]
        return not _is_open(endless)

    endless.settimeout(0)

    def closed():
        metrics = served.parts.metrics.render().decode()
        return metrics.partition('closed_total{reason="head"} ')[2][0]

    until(is_over)
    until(lambda: closed() != "0")
    assert closed() == "1"


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="the system lists no descriptors")
def test_answers_that_nobody_reads_give_way_to_others(serve, sample_logdir, connect, monkeypatch):
    monkeypatch.setattr(deliveries, "_LEAST_BYTES", 1)
    served = serve(sample_logdir, cache_bytes=0, **PATIENT)
    size = len(served.client.call("GetSessionToolData", **QUESTION).SerializeToString())
    monkeypatch.setattr(deliveries, "_LEAST_BYTES", 3 * size)
    served = serve(sample_logdir, cache_bytes=0, **PATIENT)
    request = served.client.request("GetSessionToolData", **QUESTION).SerializeToString()
    path = "/tensorflow.ProfileAnalysis/GetSessionToolData"
    silent = [connect(served.server.port) for _ in range(10)]
    for number, one in enumerate(silent, 1):
        half_call(one, path, 1, request)
        until(lambda: len(served.parts.log_lines()) == number)  # noqa: B023 (waited for here)
    assert {line["code"] for line in served.parts.log_lines()} == {"OK"}
    until(lambda: [_is_open(one) for one in silent] == [False] * 7 + [True] * 3, "the oldest end")
    assert len(served.client.call("GetSessionToolData", **QUESTION).SerializeToString()) == size


def test_a_refusal_says_when_to_come_again(serve, sample_logdir):
    served = serve(sample_logdir, max_concurrent=1, max_queued=0)
    with served.parts.analysis.gate.enter(), pytest.raises(grpc.RpcError) as caught:
        served.client.call("GetSessionToolData", **QUESTION)
    assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    trailing = dict(caught.value.trailing_metadata())
    assert int(trailing["grpc-retry-pushback-ms"]) >= 1000
    status = _google_status().FromString(trailing["grpc-status-details-bin"])
    assert (status.code, status.message) == (8, caught.value.details())
    (detail,) = status.details
    assert detail.type_url == "type.googleapis.com/google.rpc.RetryInfo"
    # RetryInfo has one field, the first: how long to wait.
    assert detail.value[:1] == b"\x0a"
    assert duration_pb2.Duration.FromString(detail.value[2:]).seconds >= 1


def _google_status():
    """google.rpc.Status (google/rpc/status.proto), in a pool of its own."""
    from google.protobuf import any_pb2

    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(any_pb2.DESCRIPTOR.serialized_pb)
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="status.proto",
        package="google.rpc",
        syntax="proto3",
        dependency=["google/protobuf/any.proto"],
    )
    message = file.message_type.add(name="Status")
    message.field.add(name="code", number=1, type=field.TYPE_INT32, label=field.LABEL_OPTIONAL)
    message.field.add(name="message", number=2, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    message.field.add(
        name="details",
        number=3,
        type=field.TYPE_MESSAGE,
        type_name=".google.protobuf.Any",
        label=field.LABEL_REPEATED,
    )
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("google.rpc.Status"))


def test_a_caller_with_many_calls_shuts_out_nobody_of_either_face(sample_logdir, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("the-token-of-many-calls\nthe-token-of-one-request\n")
    tokens.chmod(0o600)
    with (
        server_here(
            sample_logdir, max_concurrent=1, max_queued=8, token_file=str(tokens)
        ) as server,
        closing(Client(f"127.0.0.1:{server.grpc_port}")) as client,
        ThreadPoolExecutor(1) as pool,
    ):
        gate = server.analysis.gate
        metadata = (("authorization", "Bearer the-token-of-many-calls"),)

        def ask():
            return httpx.get(
                f"{server.url}/api/sessions/{QUESTION['session_id']}/tools/memory_profile",
                headers={"Authorization": "Bearer the-token-of-one-request"},
                timeout=HANG_S,
            )

        codes = []
        with gate.enter():
            calls = [
                client.start("GetSessionToolData", metadata=metadata, **QUESTION) for _ in range(20)
            ]
            for call in calls:
                call.add_done_callback(lambda one: codes.append(one.code().name))
            until(lambda: len(codes) == 12 and gate.waiting == 8, "the others are refused")
            one = pool.submit(ask)
            until(lambda: len(codes) == 13, "one more gives way")
            assert gate.waiting == 8
        assert one.result().status_code == 200
        until(lambda: len(codes) == 20)
        assert sorted(codes) == ["OK"] * 7 + ["RESOURCE_EXHAUSTED"] * 13


@each_row(
    ("method", "fields"),
    [
        ("EnumSessions", {"repository_root": "a/" * 400_000}),
        ("EnumSessions", {"repository_root": "x" * 5000}),
        ("EnumSessions", {"repository_root": "/" * 1000}),
        ("NewSession", {"repository_root": "../" * 250_000, "hosts": ["localhost"]}),
        ("GetSessionToolData", {"session_id": "a/" * 400_000 + "a", "tool_name": "summary"}),
    ],
)
def test_a_path_that_no_file_system_takes_is_refused_at_once(serve, sample_logdir, method, fields):
    client = serve(sample_logdir).client
    with pytest.raises(grpc.RpcError) as caught:
        client.call(method, **fields)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "4096 and 1000 are the most" in caught.value.details()


def test_parameters_have_a_size(serve, sample_logdir):
    client = serve(sample_logdir).client
    for parameters in ({"x": "y" * 70_000}, {f"{number:04}": "" for number in range(20_000)}):
        with pytest.raises(grpc.RpcError) as caught:
            client.call("GetSessionToolData", **QUESTION, parameters=parameters)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert "65536 are the most" in caught.value.details()


SLOW = {"session_id": SESSIONS["jax_captured"], "tool_name": "trace_viewer"}
QUICK = {"session_id": SESSIONS["tf2_cnn"], "tool_name": "memory_profile"}


@pytest.fixture
def held(monkeypatch):
    """The analysis of `SLOW` goes on until it is let go, or nobody waits for it."""
    tool = HeldTool(monkeypatch, SLOW["tool_name"])
    yield tool
    tool.let_go()


def start_slow(served, **options):
    """A call that works until it is let go, once it is at work."""
    gate = served.parts.analysis.gate
    before = gate.running
    call = served.client.start("GetSessionToolData", **SLOW, **options)
    until(lambda: gate.running > before)
    return call


@pytest.mark.usefixtures("held")
def test_beyond_the_queue_calls_are_refused_at_once(serve, sample_logdir):
    served = serve(sample_logdir, max_concurrent=1, max_queued=1)
    gate = served.parts.analysis.gate
    first = start_slow(served)
    second = served.client.start("GetSessionToolData", **SLOW)
    until(lambda: gate.waiting == 1)
    status, details = failure(served.client.call, "GetSessionToolData", **QUICK)
    assert (status, "try again later" in details) == ("RESOURCE_EXHAUSTED", True)
    # Whoever watches over the server still gets an answer.
    channel = served.client.channel
    check = health_pb2_grpc.HealthStub(channel).Check
    assert check(health_pb2.HealthCheckRequest(), timeout=HANG_S).status == 1
    ask = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo
    assert list(
        ask(iter([reflection_pb2.ServerReflectionRequest(list_services="")]), timeout=HANG_S)
    )
    second.cancel()
    until(lambda: gate.waiting == 0)
    first.cancel()
    until(lambda: gate.running == 0)
    assert served.client.call("GetSessionToolData", **QUICK).output
    assert '_total{reason="busy"} 1.0' in served.parts.metrics.render().decode()


@pytest.mark.usefixtures("held")
def test_a_call_that_waited_is_answered(serve, sample_logdir):
    served = serve(sample_logdir, max_concurrent=1, max_queued=1)
    first = start_slow(served)
    second = served.client.start("GetSessionToolData", **QUICK)
    until(lambda: served.parts.analysis.gate.waiting == 1)
    first.cancel()
    assert second.result(HANG_S).output


def test_the_callers_deadline_ends_a_long_analysis(serve, sample_logdir, held):
    served = serve(sample_logdir)
    for timeout in growing():
        call = served.client.start("GetSessionToolData", **SLOW, timeout=timeout)
        assert call.exception(HANG_S).code() is grpc.StatusCode.DEADLINE_EXCEEDED
        until(lambda: served.parts.analysis.gate.running == 0)
        if held.held:
            break
    until(served.parts.log_lines)
    assert served.parts.log_lines()[-1]["code"] in ("DEADLINE_EXCEEDED", "CANCELLED")


def test_the_servers_own_limit_ends_it_too(serve, sample_logdir, held):
    for limit in growing():
        served = serve(sample_logdir, request_timeout_s=limit)
        status, details = failure(served.client.call, "GetSessionToolData", **SLOW)
        assert (status, "time for this answer is over" in details) == ("DEADLINE_EXCEEDED", True)
        if held.held:
            break


class HeldAtLook(Deadline):
    """Holds the work under it at the ``look``-th look, until it is over."""

    def __init__(self, look):
        super().__init__(HANG_S)
        self.look, self.held = look, threading.Event()

    def check(self):
        self.look -= 1
        if self.look == 0:
            self.held.set()
            until(self.is_over)
        super().check()


@pytest.mark.parametrize("tool", ["trace_viewer", "memory_profile"])
def test_a_cancelled_call_frees_its_place_and_leaves_the_profile_whole(
    serve, sample_logdir, monkeypatch, tool
):
    """Wherever it is when it is cancelled: opening, decoding, making the answer."""
    question = {"session_id": SESSIONS["tf2_cnn"], "tool_name": tool}
    with peakline.open(sample_logdir, session=question["session_id"]) as profile:
        right = profile.tool(tool).content
    served = serve(sample_logdir, max_concurrent=1, max_queued=0)
    answered = []
    for look in (3, 12, 30, 60, 120, 10_000):
        deadline = HeldAtLook(look)
        monkeypatch.setattr(grpc_answering, "Deadline", lambda _, at_look=deadline: at_look)
        call = served.client.start("GetSessionToolData", **question)
        until(lambda: deadline.held.is_set() or call.done())  # noqa: B023 (waited for here)
        answered.append(call.done())
        call.cancel()
        until(lambda: served.parts.analysis.gate.running == 0)
        if answered[-1]:
            break
    assert 3 <= len(answered) < 6
    assert call.result().output == right


def test_a_call_whose_time_is_over_in_the_queue_is_not_begun(serve, sample_logdir, held):
    served = serve(sample_logdir, max_concurrent=1, max_queued=4)
    gate = served.parts.analysis.gate
    first = start_slow(served)
    until(lambda: held.held)
    for timeout in growing():
        call = served.client.start("GetSessionToolData", timeout=timeout, **SLOW)
        until(lambda: gate.waiting == 1 or call.done())  # noqa: B023 (waited for here)
        has_waited = gate.waiting == 1
        assert call.exception(HANG_S).code() is grpc.StatusCode.DEADLINE_EXCEEDED
        until(lambda: gate.waiting == 0)
        if has_waited:
            break
    assert gate.running == 1
    assert len(held.held) == 1
    first.cancel()


@pytest.mark.parametrize("clients", [12, pytest.param(48, marks=pytest.mark.soak)])
def test_many_clients_get_the_right_answers(serve, sample_logdir, clients):
    served = serve(sample_logdir)
    questions = [
        (SESSIONS["tf2_cnn"], "vm", "memory_profile"),
        (SESSIONS["tf2_cnn"], "vm", "trace_viewer"),
        (SESSIONS["jax_captured"], "localhost_9912", "trace_viewer"),
        (SESSIONS["tf2_multihost"], "localhost_47507", "memory_profile"),
        (SESSIONS["tf2_multihost"], "localhost_56665", "memory_profile"),
    ]
    expected = []
    for session, host, tool in questions:
        with peakline.open(sample_logdir, session=session, host=host) as profile:
            expected.append(profile.tool(tool).content)
    together = threading.Barrier(clients)

    def ask(number):
        client = Client(served.address)
        try:
            together.wait(HANG_S)
            for step in range(len(questions)):
                which = (number + step) % len(questions)
                session, host, tool = questions[which]
                answer = client.call(
                    "GetSessionToolData", session_id=session, host_name=host, tool_name=tool
                )
                assert answer.output == expected[which]
        finally:
            client.close()

    with ThreadPoolExecutor(clients) as pool:
        list(pool.map(ask, range(clients)))
    stats = served.parts.engine.cache.stats()
    assert stats.misses == 4  # each file was opened once


def test_a_server_that_ends_lets_calls_finish(serve, sample_logdir, held):
    served = serve(sample_logdir)
    call = start_slow(served)
    ending = threading.Thread(target=served.server.stop, args=(HANG_S,))
    ending.start()
    try:
        # Not by a call: gRPC lets one that comes at this very moment wait until the grace is over.
        until(lambda: not listens(served.server.port))
        assert not call.done()
        held.let_go()
        assert call.result(HANG_S).output
    finally:
        ending.join(HANG_S)
    assert not ending.is_alive()
    assert failure(served.client.call, "EnumSessions", timeout=HANG_S)[0] == "UNAVAILABLE"


@pytest.mark.usefixtures("held")
def test_without_grace_they_are_ended(serve, sample_logdir):
    served = serve(sample_logdir)
    call = start_slow(served)
    served.server.stop(0)
    with pytest.raises(grpc.RpcError):
        call.result(HANG_S)
    until(lambda: served.parts.analysis.gate.running == 0)


TOKEN = "a-token-of-27-characters.-_"  # noqa: S105 (a test's own)


def bearer(text):
    return (("authorization", text),)


def listed(client, **options):
    return [session.session_id for session in client.call("EnumSessions", **options).sessions]


# -- tokens ---------------------------------------------------------------------------------------


@pytest.fixture
def guarded(serve, sample_logdir):
    return serve(sample_logdir, token=TOKEN)


def test_the_token_opens_every_method(serve, sample_logdir):
    client = serve(sample_logdir, token=TOKEN).client
    assert len(listed(client, metadata=bearer(f"Bearer {TOKEN}"))) == len(SESSIONS)


@each_row(
    "metadata",
    [
        (),
        bearer(""), bearer(TOKEN), bearer("Bearer"), bearer("Bearer wrong"),
        bearer(f"Bearer {TOKEN}x"), bearer(f"Bearer {TOKEN[:-1]}"), bearer(f"Basic {TOKEN}"),
        (*bearer(f"Bearer {TOKEN}"), *bearer("Bearer wrong")),
        (("x-authorization", f"Bearer {TOKEN}"),),
    ],
)  # fmt: skip
@each_row("method", ["EnumSessions", "NewSession", "Monitor", "Profile"])
def test_no_other_text_opens_one(guarded, method, metadata):
    before = len(guarded.parts.log_lines())
    status, details = failure(guarded.client.call, method, metadata=metadata)
    assert (status, "Bearer TOKEN" in details) == ("UNAUTHENTICATED", True)
    *_, line = lines = guarded.parts.log_lines()
    assert len(lines) == before + 1
    assert line["method"].endswith(method)
    assert line["code"] == "UNAUTHENTICATED"
    assert line["seconds"] > 0
    assert line["request_id"]
    assert TOKEN not in guarded.parts.log_path.read_text()
    assert f'_total{{reason="token"}} {len(lines)}.0' in (guarded.parts.metrics.render().decode())


def test_a_token_in_the_place_of_a_request_id_is_not_logged(serve, sample_logdir):
    served = serve(sample_logdir, token=TOKEN)
    mine, token = (("x-request-id", "mine-1"),), (("x-request-id", TOKEN),)
    shown = bearer(f"Bearer {TOKEN}")
    for metadata in (mine, token, (*shown, *mine), (*shown, *token)):
        with contextlib.suppress(grpc.RpcError):
            served.client.call("EnumSessions", metadata=metadata)
    ids = [line["request_id"] for line in served.parts.log_lines()]
    assert (ids[0], ids[2]) == ("mine-1", "mine-1")
    assert TOKEN not in served.parts.log_path.read_text()


def test_reflection_needs_the_token_and_health_does_not(serve, sample_logdir):
    channel = serve(sample_logdir, token=TOKEN).client.channel
    ask = reflection_pb2_grpc.ServerReflectionStub(channel).ServerReflectionInfo
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    status, _ = failure(list, ask(iter([request]), timeout=HANG_S))
    assert status == "UNAUTHENTICATED"
    (answer,) = ask(iter([request]), timeout=HANG_S, metadata=bearer(f"Bearer {TOKEN}"))
    assert answer.list_services_response.service
    check = health_pb2_grpc.HealthStub(channel).Check
    assert check(health_pb2.HealthCheckRequest(), timeout=HANG_S).status == 1


@pytest.mark.nightly
def test_a_method_that_does_not_exist_needs_the_token_too(serve, sample_logdir):
    channel = serve(sample_logdir, token=TOKEN).client.channel
    stub = channel.unary_unary("/tensorflow.ProfileAnalysis/DeleteEverything")
    assert failure(stub, b"", timeout=HANG_S)[0] == "UNAUTHENTICATED"
    metadata = bearer(f"Bearer {TOKEN}")
    assert failure(stub, b"", timeout=HANG_S, metadata=metadata)[0] == "UNIMPLEMENTED"


# -- TLS ------------------------------------------------------------------------------------------


@pytest.fixture
def authority(tmp_path):
    return Authority(tmp_path, "authority")


@pytest.fixture
def connect_of_grpc_security():
    clients = []

    def make(served, *, trusted, pair=None):
        credentials = grpc.ssl_channel_credentials(
            trusted, *(() if pair is None else (pair.key, pair.certificate))
        )
        clients.append(Client(f"localhost:{served.server.port}", credentials))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


def test_tls_clients_that_trust_the_authority_are_answered(
    serve, sample_logdir, authority, connect_of_grpc_security
):
    pair = authority.issue("server")
    served = serve(sample_logdir, tls_cert=str(pair.certificate_path), tls_key=str(pair.key_path))
    assert listed(connect_of_grpc_security(served, trusted=authority.certificate))
    assert failure(served.client.call, "EnumSessions", timeout=HANG_S)[0] == "UNAVAILABLE"


def test_other_clients_do_not_take_the_server_for_real(
    serve, sample_logdir, tmp_path, authority, connect_of_grpc_security
):
    pair = authority.issue("server")
    served = serve(sample_logdir, tls_cert=str(pair.certificate_path), tls_key=str(pair.key_path))
    stranger = connect_of_grpc_security(served, trusted=Authority(tmp_path, "other").certificate)
    assert failure(stranger.call, "EnumSessions", timeout=HANG_S)[0] == "UNAVAILABLE"


def test_with_a_client_authority_only_its_clients_are_answered(
    serve, sample_logdir, tmp_path, authority, connect_of_grpc_security
):
    pair, clients = authority.issue("server"), Authority(tmp_path, "clients")
    served = serve(
        sample_logdir,
        tls_cert=str(pair.certificate_path),
        tls_key=str(pair.key_path),
        tls_client_ca=str(clients.path),
    )
    trusted = authority.certificate
    assert listed(connect_of_grpc_security(served, trusted=trusted, pair=clients.issue("friend")))
    for pair in (None, authority.issue("of-another-authority")):
        status, _ = failure(
            connect_of_grpc_security(served, trusted=trusted, pair=pair).call,
            "EnumSessions",
            timeout=HANG_S,
        )
        assert status == "UNAVAILABLE"


def test_a_key_that_does_not_fit_is_one_line(serve, sample_logdir, authority):
    pair, other = authority.issue("server"), authority.issue("other")
    with pytest.raises(UsageError, match="the certificate and the key do not fit"):
        serve(sample_logdir, tls_cert=str(pair.certificate_path), tls_key=str(other.key_path))
    with pytest.raises(UsageError, match=r"--tls-key .*: cannot be read: No such file"):
        serve(sample_logdir, tls_cert=str(pair.certificate_path), tls_key="/nowhere")


@pytest.mark.nightly
def test_a_taken_port_is_one_line(serve, sample_logdir):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"--grpc-port {port}: cannot listen on 127"):
            serve(sample_logdir, grpc_port=port)


@pytest.mark.nightly
def test_two_servers_never_share_a_port(serve, sample_logdir):
    port = serve(sample_logdir).server.port
    with pytest.raises(UsageError, match="in use"):
        serve(sample_logdir, grpc_port=port)
