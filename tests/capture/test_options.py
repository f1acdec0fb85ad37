"""What a capture is asked with: its options, and the addresses of its hosts."""

import pytest
from google.protobuf.json_format import MessageToDict
from tests.each_row import each_row

from peakline.capture import default_options, parse_address, profile_options
from peakline.errors import UsageError
from peakline.schema import ProfileOptions

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
        (
            "tpu_num_chips",
            "-4",
            {"advancedConfiguration": {"tpu_num_chips": {"int64Value": "-4"}}},
        ),
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
        ("enable_hlo_proto", "2"),
        ("device_type", "ABACUS"),
        ("device_type", "17"),
        ("trace_options", "1"),
        ("trace_options.mask", "1"),
        ("version.x", "1"),
        ("advanced_configuration", "1"),
        ("tpu_x", str(2**63)),
        ("tpu_x", "\ud800"),
        ("host_trace_level", "3"),
    ],
)
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
