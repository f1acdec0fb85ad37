"""Silent connections and calls keep nobody out of gRPC; refusals say when to come again."""

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import grpc
import httpx
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, duration_pb2, message_factory
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tests.each_row import each_row
from tests.service.bad_peers import half_call
from tests.service.conftest import SESSIONS
from tests.service.grpc_client import Client
from tests.service.server_here import server_here
from tests.waiting import HANG_S, until

from peakline.service import deliveries

REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
HEALTH = "/grpc.health.v1.Health/"
ENUM = "/tensorflow.ProfileAnalysis/EnumSessions"
QUESTION = {"session_id": SESSIONS["tf2_cnn"], "tool_name": "memory_profile"}
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
