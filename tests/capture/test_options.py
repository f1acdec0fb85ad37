"""Options, stages and answers of a capture."""

import random
import threading

import grpc
import pytest
from google.protobuf.json_format import MessageToDict
from tests.capture.peers import answer_of, peer, sample_profile, space
from tests.capture.requests import NOWHERE, good, request_for
from tests.each_row import each_row
from tests.waiting import HANG_S

from peakline.capture import capture, default_options, parse_address, profile_options
from peakline.capture.answer import check_xspace, has_events, read_answer
from peakline.errors import InputError, RemoteError, UsageError
from peakline.schema import ProfileOptions, ProfileResponse, XSpace

DEFAULTS = {
    "version": 1,
    "hostTracerLevel": 2,
    "deviceTracerLevel": 1,
    "enableHloProto": True,
    "includeDatasetOps": True,
}


def as_dict(options):
    return MessageToDict(options)


def test_defaults_are_what_upstream_sends():
    assert as_dict(default_options()) == DEFAULTS
    assert as_dict(profile_options({})) == DEFAULTS


@each_row(
    ("key", "text", "told"),
    [
        ("host_tracer_level", "3", {"hostTracerLevel": 3}),
        ("python_tracer_level", "0x1", {"pythonTracerLevel": 1}),
        ("device_type", "gpu", {"deviceType": "GPU"}),
        ("device_type", "4", {"deviceType": "PLUGGABLE_DEVICE"}),
        ("raise_error_on_start_failure", "True", {"raiseErrorOnStartFailure": True}),
        ("enable_multipass", "on", {"enableMultipass": True}),
        ("start_timestamp_ns", str(2**64 - 1), {"startTimestampNs": str(2**64 - 1)}),
        ("repository_path", "gs://b/l", {"repositoryPath": "gs://b/l"}),
        (
            "trace_options.host_traceme_filter_mask",
            "7",
            {"traceOptions": {"hostTracemeFilterMask": "7"}},
        ),
        (
            "tpu_trace_mode",
            "TRACE_ONLY_XLA",
            {"advancedConfiguration": {"tpu_trace_mode": {"stringValue": "TRACE_ONLY_XLA"}}},
        ),
        ("tpu_num_chips", "-4", {"advancedConfiguration": {"tpu_num_chips": {"int64Value": "-4"}}}),
        ("gpu_pm", "false", {"advancedConfiguration": {"gpu_pm": {"boolValue": False}}}),
        ("gpu_pm", '"12"', {"advancedConfiguration": {"gpu_pm": {"stringValue": "12"}}}),
        ("gpu_pm", "", {"advancedConfiguration": {"gpu_pm": {"stringValue": ""}}}),
        (
            "advanced_configuration.host_tracer_leve",
            "1",
            {"advancedConfiguration": {"host_tracer_leve": {"int64Value": "1"}}},
        ),
    ],
)
def test_one_option(key, text, told):
    assert as_dict(profile_options({key: text})) == DEFAULTS | told


def test_a_false_default():
    assert not profile_options({"enable_hlo_proto": "false"}).enable_hlo_proto


@each_row(
    ("key", "text"),
    [
        ("host_tracer_level", "high"),
        ("host_tracer_level", "-1"),
        ("host_tracer_level", str(2**32)),
        ("start_timestamp_ns", str(2**64)),
        ("enable_hlo_proto", "2"), ("device_type", "ABACUS"), ("device_type", "17"),
        ("trace_options", "1"), ("trace_options.mask", "1"), ("version.x", "1"),
        ("advanced_configuration", "1"), ("tpu_x", str(2**63)), ("tpu_x", "\ud800"),
        ("host_trace_level", "3")],
)  # fmt: skip
def test_what_does_not_fit(key, text):
    with pytest.raises(UsageError, match=key.partition(".")[0]):
        profile_options({key: text})


def test_every_field_can_be_set():
    values = {1: "1", 3: "1", 4: "1", 5: "1", 8: "true", 9: "text", 13: "1", 14: "1"}
    for field in ProfileOptions.DESCRIPTOR.fields:
        if field.message_type is None:
            options = profile_options({field.name: values.get(field.type, "1")})
            assert getattr(options, field.name), field.name


@each_row(
    ("text", "address"),
    [
        ("localhost:9012", "localhost:9012"),
        ("10.0.0.2:8466", "10.0.0.2:8466"),
        ("grpc://worker-0.pool.example:1", "worker-0.pool.example:1"),
        ("[::1]:9931", "[::1]:9931"),
        ("tpu_worker:065535", "tpu_worker:65535"),
        (" a:2 ", "a:2"),
    ],
)
def test_addresses(text, address):
    assert parse_address(text) == address


@each_row(
    "text",
    [
        "", ":", "localhost", "localhost:", ":9012", "a:b", "a:1:2", "::1:9012", "a:0", "a:65536",
        "a:99999999999999999999", "a:-1", "a:+1", "a:1 2", "a:\uff11", "a/b:1", "../x:1", "http://a:1",
        "grpc://grpc://a:1", "unix:///tmp/s:1", "dns:///a:1", "a b:1", "-a:1", "a-:1", "a?x=1:1",
        "a#b:1", "a%2f:1", "a\x00:1", "a\n:1", "[::1]", "[a]:1", "[]:1", "[::1:1", "é:1",
        "[fe80::1%eth0/..]:1", "a" * 300 + ":1",
    ],
)  # fmt: skip
def test_what_is_no_address(text):
    with pytest.raises(UsageError) as raised:
        parse_address(text)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 300


def test_a_scheme_of_grpc_is_only_a_name():
    """A host of that name is looked up: no Unix socket and no file is opened."""
    for text in ("unix:80", "xds:80", "ipv4:80"):
        assert parse_address(text) == text


def content_of(answer):
    spans = zip(answer.xspace.start.tolist(), answer.xspace.length.tolist(), strict=True)
    return b"".join(answer.buffer[start : start + length].tobytes() for start, length in spans)


def test_the_profile_is_a_slice_of_the_answer(sessions):
    profile = sample_profile(sessions)
    answer = read_answer(answer_of(profile))
    check_xspace(answer)
    # Serialised anew by protobuf, which orders map entries as it likes: the length is the same.
    assert answer.size == len(profile)
    assert XSpace.FromString(content_of(answer)) == XSpace.FromString(profile)
    assert has_events(answer.buffer, answer.xspace)
    assert not answer.empty_trace


def test_a_field_in_several_pieces_is_merged_as_protobuf_does():
    first, second = space(1), space(2)
    content = answer_of(first) + answer_of(empty_trace=True) + answer_of(second)
    answer = read_answer(content)
    check_xspace(answer)
    assert XSpace.FromString(content_of(answer)) == ProfileResponse.FromString(content).xspace
    assert answer.empty_trace


def test_what_else_an_answer_holds():
    answer = read_answer(
        answer_of(tool_data=[{"name": "trace", "data": b"abc"}, {"name": "é", "data": b""}])
    )
    assert [(file.name, file.length) for file in answer.tool_files] == [("trace", 3), ("é", 0)]
    assert answer.size == 0


def test_an_old_server_may_send_the_profile_as_a_tools_file():
    content = space().SerializeToString()
    files = [{"name": f"t{number}", "data": b"x"} for number in range(300)]
    files.append({"name": "xplane.pb", "data": content})
    answer = read_answer(answer_of(tool_data=files))
    assert content_of(answer) == content
    assert len(answer.tool_files) == 300


def test_an_empty_answer_has_nothing():
    answer = read_answer(b"")
    assert (answer.size, answer.empty_trace, answer.tool_files) == (0, False, ())


def test_unknown_fields_are_no_damage():
    # Field 99, as a newer server might add.
    assert read_answer(answer_of(space()) + b"\x9a\x06\x03abc").size == space().ByteSize()


@each_row(
    "content",
    [
        b"<html><body>502 Bad Gateway</body></html>", b"hello", b"\xff" * 20, b"\x42\x7f\x0a",
        answer_of(space())[:-3], space().SerializeToString(),
    ],
)  # fmt: skip
def test_what_is_no_answer(content):
    with pytest.raises(InputError, match="its answer"):
        read_answer(content)


def wrapped(content):
    """A sound answer around what should be an XSpace."""
    assert len(content) < 128
    return bytes([0x42, len(content)]) + content


@each_row(
    "content",
    [
        b"this is no protobuf message at all, it is text",
        b"\xff" * 20,
        b"\x00" * 20,
        answer_of(tool_data=[{"name": "trace", "data": b"a"}]),
        b"\x0a\x05\x12\x7fabc",
        space().SerializeToString()[:-1],
    ],
)
def test_what_is_no_profile(content):
    answer = read_answer(wrapped(content))
    with pytest.raises(InputError, match="sent"):
        check_xspace(answer)


def test_random_bytes_are_never_taken_for_a_profile():
    chance = random.Random(7)
    for _ in range(300):
        content = chance.randbytes(100)
        with pytest.raises(InputError):
            check_xspace(read_answer(wrapped(content)))


def test_a_profile_without_events():
    for empty in (space(0), XSpace(hostnames=["a"]), XSpace()):
        answer = read_answer(answer_of(empty))
        check_xspace(answer)
        assert not has_events(answer.buffer, answer.xspace)
    assert has_events(*_buffer_and_spans(space(1)))


def _buffer_and_spans(xspace):
    answer = read_answer(answer_of(xspace))
    return answer.buffer, answer.xspace


def captured(repository, address, progress=lambda _state: None, **changes):
    """The stages that were told."""
    seen = []

    def note(_host, state, _detail):
        seen.append(state)
        progress(state)

    capture(request_for(address, **changes), repository, progress=note)
    return seen


def test_each_stage_is_told_once_and_when_it_begins(repository):
    recording, begun = threading.Event(), threading.Event()

    def behave(_request, context, _number):
        assert recording.wait(HANG_S)
        context.send_initial_metadata(())
        assert begun.wait(HANG_S)
        return good()

    def progress(state):
        {"recording": recording, "receiving": begun}.get(state, threading.Event()).set()

    with peer(behave) as worker:
        seen = captured(repository, worker.address, progress)
    assert seen == ["connecting", "recording", "receiving", "stored"]


def test_every_attempt_has_its_own(repository):
    def behave(_request, context, number):
        if number == 1:
            context.abort(grpc.StatusCode.UNAVAILABLE, "not yet")
        return good()

    with peer(behave) as worker:
        seen = captured(repository, worker.address)
    first, again = ["connecting", "recording"], ["connecting", "recording", "receiving", "stored"]
    assert seen == [*first, "retrying", *again]


def test_a_host_that_nobody_reaches_has_none(repository):
    seen = []
    with pytest.raises(RemoteError):
        capture(
            request_for(NOWHERE, attempts=1),
            repository,
            progress=lambda _host, state, _detail: seen.append(state),
        )
    assert seen == ["connecting", "failed"]
