"""Health and reflection: what a client needs that knows nothing of this server."""

import json
import shlex

import grpc
import pytest
from google.protobuf import json_format
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import (
    ProtoReflectionDescriptorDatabase,
)
from tests.each_row import each_row
from tests.service.conftest import SESSIONS
from tests.waiting import HANG_S

SERVICES = {
    "grpc.health.v1.Health",
    "grpc.reflection.v1alpha.ServerReflection",
    "tensorflow.ProfileAnalysis",
    "tensorflow.ProfilerService",
}


@pytest.fixture
def channel(serve, sample_logdir):
    return serve(sample_logdir).client.channel


def test_a_client_that_knows_nothing_can_ask_for_an_answer(channel):
    """As grpcurl does: services, then their files, then a call made of JSON."""
    database = ProtoReflectionDescriptorDatabase(channel)
    assert set(database.get_services()) == SERVICES
    service = DescriptorPool(database).FindServiceByName("tensorflow.ProfileAnalysis")
    method = service.methods_by_name["GetSessionToolData"]
    call = channel.unary_unary(
        f"/{service.full_name}/{method.name}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
    text = json.dumps({"sessionId": SESSIONS["tf2_cnn"], "toolName": "memory_profile"})
    answer = call(json_format.Parse(text, GetMessageClass(method.input_type)()), timeout=HANG_S)
    assert answer.output_format == "json"
    assert json.loads(answer.output)["numHosts"] == 1


def test_the_page_of_the_service_says_what_grpcurl_can_call(channel, root):
    """Its commands, with the same services, methods and JSON, by reflection."""
    page = (root / "docs/service-grpc.md").read_text("utf-8").replace("\\\n", "")
    lines = [shlex.split(line) for line in page.splitlines() if line.startswith("grpcurl ")]
    assert [given[-1] for given in lines if given[-1] == "list"] == ["list"]
    pool, answered = DescriptorPool(ProtoReflectionDescriptorDatabase(channel)), []
    for given in lines:
        if given[-1] == "list":
            continue
        service, _, name = given[-1].partition("/")
        method = pool.FindServiceByName(service).methods_by_name[name]
        text = given[given.index("-d") + 1] if "-d" in given else "{}"
        request = json_format.Parse(text, GetMessageClass(method.input_type)())
        if name != "NewSession":  # it captures from whatever listens on this machine
            call = channel.unary_unary(
                f"/{given[-1]}",
                request_serializer=lambda message: message.SerializeToString(),
                response_deserializer=GetMessageClass(method.output_type).FromString,
            )
            answered.append(call(request, timeout=HANG_S).ByteSize() > 100)
    assert answered == [True, True]


@each_row("service", sorted(SERVICES))
def test_every_service_is_described_with_all_it_needs(channel, service):
    protos = [
        FileDescriptorProto.FromString(content)
        for content in files(channel, file_containing_symbol=service)
    ]
    assert service in {f"{proto.package}.{one.name}" for proto in protos for one in proto.service}
    needed = {name for proto in protos for name in proto.dependency}
    assert needed <= {proto.name for proto in protos}


@each_row(
    "question",
    [
        {"file_by_filename": "no/such/file.proto"},
        {"file_containing_symbol": "no.such.Symbol"},
        # In the default pool of this process, and no business of a caller.
        {"file_containing_symbol": "google.protobuf.compiler.CodeGeneratorRequest"},
        {"file_by_filename": "../../etc/passwd"},
    ],
)
def test_what_is_not_served_is_not_found(channel, question):
    answer = reflect(channel, **question)
    assert answer.error_response.error_code == grpc.StatusCode.NOT_FOUND.value[0]


def test_descriptors_are_those_of_the_schema(channel):
    names = {
        FileDescriptorProto.FromString(content).name
        for content in files(channel, file_containing_symbol="tensorflow.ProfileAnalysis")
    }
    assert "tsl/profiler/protobuf/profiler_analysis.proto" in names
    assert "tsl/profiler/protobuf/xplane.proto" in names


@each_row("service", ["", "tensorflow.ProfileAnalysis", "tensorflow.ProfilerService"])
def test_health_says_serving(channel, service):
    check = health_pb2_grpc.HealthStub(channel).Check
    request = health_pb2.HealthCheckRequest(service=service)
    assert check(request, timeout=HANG_S).status == health_pb2.HealthCheckResponse.SERVING


def test_health_of_what_is_not_there_is_not_found(channel):
    check = health_pb2_grpc.HealthStub(channel).Check
    with pytest.raises(grpc.RpcError) as caught:
        check(health_pb2.HealthCheckRequest(service="other"), timeout=HANG_S)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


def test_a_watcher_learns_of_the_end(serve, sample_logdir):
    served = serve(sample_logdir)
    watch = health_pb2_grpc.HealthStub(served.client.channel).Watch
    statuses = watch(health_pb2.HealthCheckRequest(), timeout=HANG_S)
    assert next(statuses).status == health_pb2.HealthCheckResponse.SERVING
    served.server.drain()
    assert next(statuses).status == health_pb2.HealthCheckResponse.NOT_SERVING
    statuses.cancel()


def reflect(channel, **question):
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    request = reflection_pb2.ServerReflectionRequest(**question)
    (answer,) = stub.ServerReflectionInfo(iter([request]), timeout=HANG_S)
    return answer


def files(channel, **question):
    return reflect(channel, **question).file_descriptor_response.file_descriptor_proto
