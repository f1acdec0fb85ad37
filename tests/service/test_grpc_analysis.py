"""The analysis service over gRPC: answers, names, reflection."""

import json
import os
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
from tests.jobs.xspace_hosts import xspace_hosts
from tests.service.conftest import SESSIONS
from tests.waiting import HANG_S

import peakline
from peakline.schema import MemoryProfile

NEWEST_FIRST = sorted(SESSIONS.values(), reverse=True)


@pytest.fixture
def client(serve, sample_logdir):
    return serve(sample_logdir).client


def failure(call, *arguments, **fields):
    """The status name and details with which a call fails."""
    with pytest.raises(grpc.RpcError) as caught:
        call(*arguments, **fields)
    return caught.value.code().name, caught.value.details()


def test_sessions_come_newest_first_with_their_tools(serve, sample_logdir):
    answer = serve(sample_logdir).client.call("EnumSessions", repository_root=str(sample_logdir))
    assert [session.session_id for session in answer.sessions] == NEWEST_FIRST
    tools = {session.session_id: list(session.available_tools) for session in answer.sessions}
    assert "memory_profile" in tools[SESSIONS["tf2_cnn"]]
    assert "memory_profile" not in tools[SESSIONS["jax_captured"]]
    assert "trace_viewer" in tools[SESSIONS["jax_captured"]]
    assert answer.error_message == ""


@each_row("spelling", ["{}", "{}/plugins/profile", "", "{}/"])
def test_every_spelling_of_the_root_names_the_same_sessions(client, sample_logdir, spelling):
    answer = client.call("EnumSessions", repository_root=spelling.format(sample_logdir))
    assert [session.session_id for session in answer.sessions] == NEWEST_FIRST


def test_a_tool_answers_with_the_bytes_of_the_library(serve, sample_logdir):
    served = serve(sample_logdir)
    session = SESSIONS["tf2_cnn"]
    answer = served.client.call(
        "GetSessionToolData", session_id=session, tool_name="memory_profile", host_name="vm"
    )
    path = f"{sample_logdir}/plugins/profile/{session}"
    with peakline.open(path) as profile:
        expected = profile.tool("memory_profile")
    assert (answer.output, answer.output_format) == (expected.content, "json")


def test_the_format_is_a_parameter(serve, sample_logdir):
    answer = serve(sample_logdir).client.call(
        "GetSessionToolData",
        session_id=SESSIONS["tf2_cnn"],
        tool_name="memory_profile",
        parameters={"format": "proto"},
    )
    assert answer.output_format == "proto"
    assert list(MemoryProfile.FromString(answer.output).memory_profile_per_allocator)


def test_an_empty_host_name_means_all_hosts_together(serve, sample_logdir):
    client = serve(sample_logdir).client
    fields = {
        "session_id": SESSIONS["tf2_multihost"],
        "tool_name": "memory_profile",
        "parameters": {"format": "proto"},
    }
    together = MemoryProfile.FromString(client.call("GetSessionToolData", **fields).output)
    parts = {}
    for host in ("localhost_47507", "localhost_56665"):
        answer = client.call("GetSessionToolData", host_name=host, **fields)
        part = MemoryProfile.FromString(answer.output)
        parts |= {f"{host}/{name}": one for name, one in part.memory_profile_per_allocator.items()}
    assert together.num_hosts == 2
    assert {
        name: one.profile_summary for name, one in together.memory_profile_per_allocator.items()
    } == {name: one.profile_summary for name, one in parts.items()}


@each_row("tool", ["job", "collectives"])
def test_so_it_does_for_what_is_about_all_ranks(serve, tmp_path, tool):
    xspace_hosts(tmp_path, 3, steps=2, session="s")
    served = serve(tmp_path)
    (session,) = served.client.call("EnumSessions", repository_root=str(tmp_path)).sessions
    assert tool in session.available_tools
    answer = served.client.call("GetSessionToolData", session_id="s", tool_name=tool)
    expected = peakline.Repository(tmp_path).session("s").tool(tool)
    assert (answer.output, answer.output_format) == (expected.content, "json")
    document = json.loads(answer.output)
    hosts = {row["host"] for row in document["ranks" if tool == "job" else "rows"]}
    assert hosts == {"host-0000", "host-0001", "host-0002"}


def test_a_tool_of_one_host_names_the_hosts_there_are(serve, sample_logdir):
    status, details = failure(
        serve(sample_logdir).client.call,
        "GetSessionToolData",
        session_id=SESSIONS["tf2_multihost"],
        tool_name="trace_viewer",
    )
    assert status == "INVALID_ARGUMENT"
    assert "localhost_47507, localhost_56665" in details


@each_row("host", ["localhost:47507", "localhost_47507", "localhost_47507."])
def test_a_host_may_be_spelled_with_a_colon_or_a_final_dot(client, host):
    answer = client.call(
        "GetSessionToolData",
        session_id=SESSIONS["tf2_multihost"],
        host_name=host,
        tool_name="trace_viewer",
    )
    assert answer.output_format == "json"
    assert answer.output.startswith(b"{")


def test_unknown_parameters_are_told_and_ignored(serve, sample_logdir):
    """What the streaming trace viewer of TensorBoard's plugin sends."""
    answer = serve(sample_logdir).client.call(
        "GetSessionToolData",
        repository_root=f"{sample_logdir}/plugins/profile",
        session_id=SESSIONS["tf2_multihost"],
        host_name="localhost_47507.",
        tool_name="memory_profile",
        parameters={"resolution": "8000", "start_time_ms": "0.5", "surprise": ""},
    )
    assert answer.output
    assert "'surprise'" in answer.error_message
    assert "\n" not in answer.error_message


def test_a_host_that_cannot_be_read_becomes_a_note(serve, logdir):
    session = SESSIONS["tf2_multihost"]
    broken = logdir / "plugins" / "profile" / session / "third.xplane.pb"
    broken.write_bytes(b"\xff\xff\xff\xff this is no profile")
    answer = serve(logdir).client.call(
        "GetSessionToolData", session_id=session, tool_name="memory_profile"
    )
    assert b'"numHosts":2' in answer.output
    assert "host third:" in answer.error_message
    assert str(logdir) not in answer.error_message


def test_warnings_are_told_beside_the_answer(serve, logdir):
    session = SESSIONS["tf2_multihost"]
    host = logdir / "plugins" / "profile" / session / "localhost_56665.xplane.pb"
    host.write_bytes(host.read_bytes()[:-1000])
    answer = serve(logdir).client.call(
        "GetSessionToolData",
        session_id=session,
        host_name="localhost_56665",
        tool_name="memory_profile",
    )
    with peakline.open(host) as profile:
        profile.tool("memory_profile")
        (kind, *_), *_ = profile.warnings
    assert answer.error_message.startswith(f"{kind} (")
    assert answer.output


def test_what_does_not_exist_is_not_found(serve, sample_logdir):
    client = serve(sample_logdir).client
    good = {"session_id": SESSIONS["tf2_cnn"], "host_name": "vm", "tool_name": "memory_profile"}
    for field in good:
        status, details = failure(client.call, "GetSessionToolData", **good | {field: "nothing"})
        assert status == "NOT_FOUND"
        assert "nothing" in details
        assert str(sample_logdir) not in details


@each_row(
    ("parameters", "told"),
    [({"format": "xml"}, "xml"), ({"max_snapshots": "many"}, "max_snapshots")],
)
def test_bad_parameters_are_the_callers_fault(client, parameters, told):
    status, details = failure(
        client.call,
        "GetSessionToolData",
        session_id=SESSIONS["tf2_cnn"],
        tool_name="memory_profile",
        parameters=parameters,
    )
    assert (status, told in details) == ("INVALID_ARGUMENT", True)


def test_parameters_that_name_files_are_refused(serve, sample_logdir):
    status, details = failure(
        serve(sample_logdir).client.call,
        "GetSessionToolData",
        session_id=SESSIONS["tf2_cnn"],
        tool_name="op_stats",
        parameters={"graph": "/etc/passwd"},
    )
    assert status == "PERMISSION_DENIED"
    assert "graph" in details


@each_row("method", ["NewSession", "EnumSessions", "GetSessionToolData", "Monitor"])
def test_a_request_that_is_no_message_is_told_as_such(client, method):
    service = "ProfilerService" if method == "Monitor" else "ProfileAnalysis"
    stub = client.channel.unary_unary(f"/tensorflow.{service}/{method}")
    assert failure(stub, b"\xff\xff", timeout=HANG_S)[0] == "INVALID_ARGUMENT"
    # A string field that is no UTF-8.
    assert failure(stub, b"\x0a\x02\xff\xfe", timeout=HANG_S)[0] == "INVALID_ARGUMENT"


def test_a_message_beyond_the_limit_is_refused_with_its_size(serve, sample_logdir):
    status, details = failure(
        serve(sample_logdir, max_message_bytes=10_000).client.call,
        "GetSessionToolData",
        session_id=SESSIONS["tf2_cnn"],
        tool_name="memory_profile",
    )
    assert status == "INVALID_ARGUMENT"
    assert "a message may have 10000" in details


def test_a_session_that_cannot_be_read_is_listed_all_the_same(serve, logdir):
    broken = logdir / "plugins" / "profile" / "2027_01_01_00_00_00"
    broken.mkdir()
    (broken / "host.xplane.pb").write_bytes(b"")
    answer = serve(logdir).client.call("EnumSessions")
    assert answer.sessions[0].session_id == broken.name
    assert list(answer.sessions[0].available_tools) == []
    assert answer.error_message.startswith(f"session {broken.name}: plugins/profile/{broken.name}")
    assert answer.error_message.endswith("the file is empty")
    assert [session.session_id for session in answer.sessions[1:]] == NEWEST_FIRST


def test_a_new_session_appears_at_once(serve, logdir):
    client = serve(logdir).client
    assert len(client.call("EnumSessions").sessions) == len(SESSIONS)
    place = logdir / "plugins" / "profile"
    (place / SESSIONS["tf2_cnn"]).rename(place / "2027_01_01_00_00_00")
    assert client.call("EnumSessions").sessions[0].session_id == "2027_01_01_00_00_00"


def test_the_log_tells_of_every_call(serve, sample_logdir):
    served = serve(sample_logdir)
    served.client.call(
        "GetSessionToolData",
        session_id=SESSIONS["tf2_cnn"],
        host_name="vm",
        tool_name="memory_profile",
        metadata=(("x-request-id", "mine-1"),),
    )
    failure(served.client.call, "GetSessionToolData", session_id="x\ny", tool_name="t")
    good, bad = served.parts.log_lines()
    assert good["method"] == "tensorflow.ProfileAnalysis/GetSessionToolData"
    assert (good["code"], good["session"], good["tool"], good["host"], good["request_id"]) == (
        "OK", SESSIONS["tf2_cnn"], "memory_profile", "vm", "mine-1",
    )  # fmt: skip
    assert good["bytes"] > 10_000
    assert (bad["code"], bad["session"]) == ("INVALID_ARGUMENT", "x\ny")
    metrics = served.parts.metrics.render().decode()
    assert 'method="tensorflow.ProfileAnalysis/GetSessionToolData"' in metrics


def test_an_unexpected_error_gives_the_caller_an_id_only(serve, sample_logdir, monkeypatch):
    served = serve(sample_logdir)

    def fail(*_, **__):
        raise OSError(13, "secret of the server", f"{sample_logdir}/hidden")

    monkeypatch.setattr(served.parts.engine, "tool", fail)
    status, details = failure(
        served.client.call, "GetSessionToolData", session_id=SESSIONS["tf2_cnn"], tool_name="graph"
    )
    lines = served.parts.log_lines()
    assert status == "INTERNAL"
    assert details == f"internal error ({lines[0]['request_id']})"
    assert "secret of the server" in lines[0]["traceback"]


def test_the_example_of_the_documentation_works(serve, sample_logdir, root, capsys):
    served = serve(sample_logdir, token="TOKEN")  # noqa: S106 (the example's)
    page = (root / "docs" / "service-grpc.md").read_text()
    example = page.split("```python\n")[1].split("```")[0]
    assert "localhost:50051" in example
    example = example.replace("localhost:50051", served.address)
    names = {}
    exec(example, names)  # noqa: S102 (our own page)
    names["channel"].close()
    shown_format, size, *_ = capsys.readouterr().out.split()
    assert (shown_format, int(size) > 10) == ("json", True)


SESSION = SESSIONS["tf2_cnn"]
TRICKS = {
    "parent": "..", "parents": "../../../../etc", "escaped": "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "here": ".", "hidden": ".cached", "absolute": "/etc/passwd", "separator": "a/b",
    "backslash": "..\\..\\etc", "null": "a\x00b", "newline": "a\nb", "escape": "\x1b[2J",
    "long": "a" * 5000, "wide": "\u2025\u2215etc", "url": "file:///etc/passwd", "variable": "$HOME",
    "home": "~root", "glob": "*",
}  # fmt: skip
REFUSED = {"INVALID_ARGUMENT", "NOT_FOUND", "PERMISSION_DENIED"}


@pytest.fixture
def served(serve, logdir):
    (logdir / "secret.xplane.pb").write_bytes(b"secret")
    return serve(logdir)


def tricks():
    return each_row("trick", TRICKS.values())


@each_row("field", ["session_id", "host_name", "tool_name"])
@tricks()
def test_tool_data_takes_names_only(served, field, trick):
    fields = {"session_id": SESSION, "host_name": "vm", "tool_name": "memory_profile"}
    status, details = failure(served.client.call, "GetSessionToolData", **fields | {field: trick})
    assert status in REFUSED
    assert "secret" not in details
    assert details.isascii()
    assert details.isprintable()
    assert len(details) <= 1000


@each_row("method", ["EnumSessions", "GetSessionToolData"])
@tricks()
def test_a_root_lies_under_a_served_one(served, logdir, method, trick):
    status, details = failure(served.client.call, method, repository_root=trick)
    assert status in REFUSED
    assert str(logdir) not in details


def refused_without_a_trace(served, logdir, **fields):
    """The capture is refused and nothing has been made, in the root or beside it."""
    before = sorted(logdir.parent.glob("**/*"))
    request = {"opts": {"duration_ms": 10}}
    fields = {"session_id": "new", "hosts": ["localhost"], "request": request} | fields
    status, _ = failure(served.client.call, "NewSession", **fields)
    assert status in REFUSED
    assert sorted(logdir.parent.glob("**/*")) == before


@each_row("name", TRICKS.keys() - {"wide", "escaped", "variable", "home", "glob"})
def test_a_capture_takes_no_trick_for_a_session_id(served, logdir, name):
    refused_without_a_trace(served, logdir, session_id=TRICKS[name])


@tricks()
def test_a_capture_takes_no_trick_for_a_root(served, logdir, trick):
    refused_without_a_trace(served, logdir, repository_root=trick)


@tricks()
def test_a_capture_takes_no_trick_for_a_host(served, logdir, trick):
    refused_without_a_trace(served, logdir, hosts=[trick])


@tricks()
def test_names_inside_the_inner_request_are_checked_as_well(served, logdir, trick):
    before = sorted(logdir.parent.glob("**/*"))
    request = {
        "opts": {"duration_ms": 10, "override_hostname": trick},
        "repository_root": str(logdir),
        "session_id": "new",
        "host_name": "not-allowed.example",
    }
    for change in ({"repository_root": trick}, {"session_id": trick}, {"host_name": trick}, {}):
        status, _ = failure(served.client.call, "NewSession", request=request | change)
        assert status in REFUSED
    assert sorted(logdir.parent.glob("**/*")) == before


def test_links_out_of_the_root_are_not_followed(serve, logdir, tmp_path):
    outside = tmp_path / "outside"
    (outside / "plugins" / "profile").mkdir(parents=True)
    profiles = logdir / "plugins" / "profile"
    os.rename(profiles / SESSION, outside / "plugins" / "profile" / "theirs")  # noqa: PTH104
    (profiles / "linked").symlink_to(outside / "plugins" / "profile" / "theirs")
    (profiles / "files").mkdir()
    (profiles / "files" / "vm.xplane.pb.gz").symlink_to(
        outside / "plugins" / "profile" / "theirs" / "vm.xplane.pb.gz"
    )
    (logdir / "other").symlink_to(outside)
    client = serve(logdir).client
    ask = {"tool_name": "memory_profile"}
    for fields in (
        {"session_id": "linked", **ask},
        {"session_id": "files", **ask},
        {"session_id": "files", "host_name": "vm", **ask},
        {"session_id": "theirs", "repository_root": str(outside), **ask},
        {"session_id": "theirs", "repository_root": f"{logdir}/other", **ask},
        {"session_id": "theirs", "repository_root": f"{logdir}/../outside", **ask},
    ):
        status, details = failure(client.call, "GetSessionToolData", **fields)
        assert status == "PERMISSION_DENIED"
        assert "theirs" not in details
    assert "linked" not in [session.session_id for session in client.call("EnumSessions").sessions]


def test_a_repository_under_the_root_is_served(serve, logdir):
    """TensorBoard's plugin sends the directory of a nested run."""
    nested = logdir / "train" / "plugins" / "profile"
    nested.parent.mkdir(parents=True)
    (logdir / "plugins" / "profile").rename(nested)
    answer = serve(logdir).client.call("EnumSessions", repository_root=str(nested))
    assert SESSION in [session.session_id for session in answer.sessions]


def test_with_several_roots_one_must_be_named(serve, logdir, sample_logdir):
    client = serve(logdir, sample_logdir).client
    status, details = failure(client.call, "EnumSessions")
    assert (status, "repository_root" in details) == ("INVALID_ARGUMENT", True)
    assert client.call("EnumSessions", repository_root=str(logdir)).sessions


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
