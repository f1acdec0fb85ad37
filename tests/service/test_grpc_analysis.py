import grpc
import pytest
from tests.each_row import each_row
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
    good = {
        "session_id": SESSIONS["tf2_cnn"],
        "host_name": "vm",
        "tool_name": "memory_profile",
    }
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
