import pytest
from google.protobuf.json_format import MessageToDict
from tests.each_row import each_row

from peakline.capture import default_options, profile_options
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
