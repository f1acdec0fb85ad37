"""Messages in text format and JSON become the binary form that readers read."""

import json

import pytest
from google.protobuf import json_format, text_format
from tests.each_row import each_row

import peakline
from peakline import schema
from peakline.errors import DamagedError, InputError
from peakline.formats.common.files import SourceFile
from peakline.formats.common.translate import translate
from peakline.tables.reader import Warnings

METADATA = "tensorflow.RunMetadata"
UNKNOWN = "fields that the schema does not have; the first is "


def translated(file, encoding, full_name):
    """The file in binary form, and what is lost: its detail and count by kind."""
    losses = Warnings()
    result = translate(file, encoding, full_name, losses)
    return result, {kind: (count, detail) for kind, count, detail in losses.entries()}


@pytest.fixture
def made(tmp_path):
    """A function that writes a file and opens it."""

    def make(content):
        path = tmp_path / "profile"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return SourceFile(str(path))

    return make


def message_of(file, full_name=METADATA):
    return schema.message(full_name).FromString(file.buffer.tobytes())


@pytest.fixture
def metadata():
    """A message with a bit of everything, as the runtime fills it."""
    message = schema.RunMetadata()
    device = message.step_stats.dev_stats.add(device="/gpu:0")
    device.thread_names[7] = "main"
    node = device.node_stats.add(node_name="a/b", all_start_micros=1 << 60, thread_id=5)
    node.memory_stats.persistent_tensor_alloc_ids.extend([1, -2])
    node.memory.add(allocator_name="cpu", peak_bytes=12)
    message.cost_graph.node.add(name="c", host_temp_memory_size=3, persistent_memory_size=4)
    graph = message.partition_graphs.add()
    graph.node.add(name="n", op="Const").attr["value"].tensor.tensor_content = b"\0\xff"
    graph.node[0].attr["f"].f = 0.1
    return message


def test_text(made, metadata):
    file = made(text_format.MessageToString(metadata))
    binary = translated(file, "text", METADATA)[0]
    assert message_of(binary) == metadata
    assert binary.path == file.path
    assert binary.head == binary.buffer.tobytes()


@each_row("names", [False, True])
def test_json_with_names_in_either_spelling(made, metadata, names):
    text = json_format.MessageToJson(metadata, preserving_proto_field_name=names)
    assert message_of(translated(made(text), "json", METADATA)[0]) == metadata
    # As some programs write it.
    assert message_of(translated(made("\ufeff" + text), "json", METADATA)[0]) == metadata


def test_old_names_in_text(made):
    text = """
    step_stats { dev_stats { node_stats { memory_stats {
      host_temp_memory_size: 1 device_temp_memory_size: 2 host_persistent_memory_size: 3
      host_persistent_tensor_alloc_ids: 4 host_persistent_tensor_alloc_ids: 5 } } } }
    cost_graph { node { host_temp_memory_size: 6 host_persistent_memory_size: 7 } }
    """
    assert_old_names(message_of(translated(made(text), "text", METADATA)[0]))


def test_old_names_in_json(made):
    stats = {
        "hostTempMemorySize": "1",
        "device_temp_memory_size": 2,
        "host_persistent_memory_size": "3",
        "hostPersistentTensorAllocIds": ["4", 5],
    }
    content = {
        "stepStats": {"devStats": [{"nodeStats": [{"memoryStats": stats}]}]},
        "cost_graph": {"node": [{"hostTempMemorySize": 6, "hostPersistentMemorySize": 7}]},
    }
    result, losses = translated(made(json.dumps(content)), "json", METADATA)
    assert not losses
    assert_old_names(message_of(result))


def assert_old_names(got):
    stats = got.step_stats.dev_stats[0].node_stats[0].memory_stats
    assert (stats.temp_memory_size, stats.device_temp_memory_size) == (1, 2)
    assert stats.persistent_memory_size == 3
    assert list(stats.persistent_tensor_alloc_ids) == [4, 5]
    node = got.cost_graph.node[0]
    assert (node.host_temp_memory_size, node.temporary_memory_size) == (6, 0)
    assert node.persistent_memory_size == 7


@each_row(
    ("encoding", "content", "unknown", "redacted"),
    [
        ("text", "step_stats { none: 1 dev_stats { nil { a: 1 } device: [REDACTED] } }", 2, 1),
        ("json", '{"stepStats": {"none": 1, "devStats": [{"nil": {"a": 1}}]}}', 2, 0),
    ],
)
def test_what_the_schema_does_not_have_is_counted(made, encoding, content, unknown, redacted):
    result, losses = translated(made(content), encoding, METADATA)
    assert losses["unknown_fields"] == (unknown, f"{UNKNOWN}none")
    assert losses.get("redacted", (0, ""))[0] == redacted
    assert len(message_of(result).step_stats.dev_stats) == 1


def test_maps_in_json_are_no_fields(made):
    content = {"devStats": [{"threadNames": {"1": "none"}}]}
    _, losses = translated(made(json.dumps(content)), "json", "tensorflow.StepStats")
    assert not losses
    nodes = {"node": [{"attr": {"T": {"type": "DT_FLOAT"}, "x": {"new": 1}}}]}
    _, losses = translated(made(json.dumps(nodes)), "json", "tensorflow.GraphDef")
    assert losses == {"unknown_fields": (1, f"{UNKNOWN}new")}


@each_row(
    ("encoding", "content", "error", "message"),
    [
        ("text", "step_stats {\n  dev_stats {\n    device: 5 }\n}\n", DamagedError,
         "line 3, column 13: expected a string in quotes (RunMetadata in text format)"),
        ("text", "step_stats {", DamagedError,
         "line 1, column 13: the text ends inside a message (RunMetadata in text format)"),
        ("text", "step_stats { }\n\n}", DamagedError,
         "line 3, column 1: a closing bracket that does not belong to the one that is open"),
        ("json", '{"stepStats": {\n  "devStats": [}', DamagedError,
         "line 2, column 16: Expecting value (RunMetadata in JSON)"),
        ("json", b'{"stepStats": "\xff"}', DamagedError, "not UTF-8 (RunMetadata in JSON)"),
        ("json", '{"stepStats":' * 100_000, DamagedError,
         "nested too deeply (RunMetadata in JSON)"),
        ("json", '{"stepStats": {"devStats": [{"device": 5}]}}', InputError, "device"),
        ("json", '{"stepStats": 1}', InputError, "(RunMetadata in JSON)"),
        ("json", '{"stepStats": {"devStats": 1}}', InputError, "(RunMetadata in JSON)"),
        ("json", '{"stepStats": {"devStats": [1]}}', InputError, "(RunMetadata in JSON)"),
        ("json", "[1]", InputError, "(RunMetadata in JSON)"),
    ],
)  # fmt: skip
def test_errors_are_one_line_with_the_place(made, encoding, content, error, message):
    file = made(content)
    with pytest.raises(error) as caught:
        translated(file, encoding, METADATA)
    assert type(caught.value) is error
    text = str(caught.value)
    assert text.startswith(f"{file.path}: ")
    assert message in text
    assert "\n" not in text


def test_the_offset_of_an_error_is_kept(made):
    with pytest.raises(DamagedError) as caught:
        translated(made("step_stats { x"), "text", METADATA)
    assert caught.value.offset == 14


def test_what_the_translation_leaves_out_is_a_warning(tmp_path):
    path = tmp_path / "graph.pbtxt"
    path.write_text('node { name: "a" op: "NoOp" novelty: 3 novelty: 4 device: [REDACTED] }')
    with peakline.open(str(path)) as profile:
        assert profile.sql("select name, op from nodes").to_pylist() == [
            {"name": "a", "op": "NoOp"}
        ]
        assert [(kind, count) for kind, count, _ in profile.warnings] == [
            ("unknown_fields", 2),
            ("redacted", 1),
        ]
        assert "novelty" in profile.warnings[0].detail
