"""Messages of the schema and their shapes."""

import dataclasses
import pickle
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import pytest
from google.protobuf import descriptor_pool, json_format, text_format
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet
from tests.each_row import each_row

from peakline import schema
from peakline.schema import (
    POOL,
    DeviceStepStats,
    MemoryActivityMetadata,
    MemoryProfile,
    MetaGraphDef,
    NodeExecStats,
    TensorDescription,
    XEvent,
    XEventMetadata,
    XPlane,
    XSpace,
    XStat,
    shape_texts,
)
from peakline.wire import Plan


def test_unknown_fields_survive_a_round_trip():
    known = XStat(metadata_id=3, uint64_value=2**64 - 1).SerializeToString()
    unknown = b"\xa0\x06\x07" + b"\xaa\x06\x03abc"
    stat = XStat.FromString(known + unknown)
    assert [field.field_number for field in UnknownFieldSet(stat)] == [100, 101]
    stat.metadata_id = 4
    assert stat.SerializeToString() == b"\x08\x04" + known[2:] + unknown


def test_reserved_numbers_are_kept_as_unknown_fields():
    old = b"\x22\x02ok"
    assert MemoryProfile.FromString(old).SerializeToString() == old


def test_unknown_enum_numbers_survive_and_have_no_name():
    data = b"\x08\x63"
    metadata = MemoryActivityMetadata.FromString(data)
    assert metadata.memory_activity == 99
    assert metadata.SerializeToString() == data
    assert json_format.MessageToDict(TensorDescription(dtype=200)) == {"dtype": 200}


def test_a_repeated_map_key_keeps_its_last_value():
    first = b"\x1a\x05\x08\x01\x12\x01a"
    last = b"\x1a\x05\x08\x01\x12\x01b"
    assert dict(DeviceStepStats.FromString(first + last).thread_names) == {1: "b"}


def test_map_values_are_made_on_access():
    plane = XPlane()
    plane.stat_metadata[7].name = "bytes_allocated"
    assert plane == XPlane.FromString(b"\x2a\x15\x08\x07\x12\x11\x12\x0fbytes_allocated")


def test_a_oneof_holds_its_last_member():
    event = XEvent(offset_ps=5)
    event.num_occurrences = 0
    assert event.WhichOneof("data") == "num_occurrences"
    assert event.SerializeToString() == b"\x28\x00"
    assert XStat.FromString(b"\x20\x01\x2a\x01x").WhichOneof("value") == "str_value"
    assert XStat().WhichOneof("value") is None


def test_packed_and_unpacked_numbers_are_both_read():
    unpacked = XEventMetadata.FromString(b"\x30\x01\x30\x02")
    assert list(unpacked.child_id) == [1, 2]
    assert unpacked.SerializeToString() == b"\x32\x02\x01\x02"


def test_json_has_camel_case_names_and_64_bit_numbers_as_text():
    assert json_format.MessageToDict(NodeExecStats(all_start_micros=2**53 + 1, thread_id=3)) == {
        "allStartMicros": "9007199254740993",
        "threadId": 3,
    }
    for name in ("allStartMicros", "all_start_micros"):
        assert json_format.ParseDict({name: 7}, NodeExecStats()).all_start_micros == 7


def test_text_format_is_read_and_written():
    text = "dtype: DT_FLOAT shape { dim { size: 2 } } allocation_description { allocation_id: 9 }"
    tensor = text_format.Parse(text, TensorDescription())
    assert tensor.shape.dim[0].size == 2
    assert text_format.MessageToString(tensor, as_one_line=True) == text


def test_any_is_resolved_in_the_private_pool():
    info = MetaGraphDef.MetaInfoDef()
    info.any_info.Pack(XStat(metadata_id=3))
    document = json_format.MessageToDict(info, descriptor_pool=POOL)
    assert document["anyInfo"] == {
        "@type": "type.googleapis.com/tensorflow.profiler.XStat",
        "metadataId": "3",
    }
    assert json_format.ParseDict(document, MetaGraphDef.MetaInfoDef(), descriptor_pool=POOL) == info


def test_messages_can_be_pickled():
    space = XSpace()
    space.planes.add(name="/host:CPU").lines.add(timestamp_ns=5)
    assert pickle.loads(pickle.dumps(space)) == space  # noqa: S301


def test_text_that_is_not_utf8_is_refused():
    with pytest.raises(DecodeError):
        XPlane.FromString(b"\x12\x02\xc3\x28")


def run_python(program: str) -> str:
    """What a program prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_short_and_full_names_give_one_class():
    assert schema.message("tensorflow.profiler.XSpace") is schema.XSpace
    assert schema.XSpace.DESCRIPTOR is schema.descriptor("tensorflow.profiler.XSpace")
    assert schema.message("tensorflow.AttrValue.ListValue") is schema.AttrValue.ListValue
    assert schema.RunMetadata.DESCRIPTOR.full_name == "tensorflow.RunMetadata"
    assert schema.Memory.DESCRIPTOR.full_name == "tensorflow.tfprof.Memory"


def test_every_exported_name_is_there():
    assert {"XSpace", "MemoryProfile", "GraphDef", "DataType", "message"} <= set(schema.__all__)
    assert "Any" not in schema.__all__
    assert set(schema.__all__) <= set(dir(schema))
    for name in schema.__all__:
        assert getattr(schema, name) is getattr(schema, name)


def test_every_top_level_type_has_a_short_name_of_its_own():
    full_names = [getattr(schema, name).DESCRIPTOR.full_name for name in schema.SHORT_NAMES]
    assert len(full_names) == len(set(full_names)) == 264
    assert all(name.rpartition(".")[2] in schema.SHORT_NAMES for name in full_names)


def test_an_unknown_name_is_an_error():
    with pytest.raises(AttributeError, match="no attribute 'XSpaces'"):
        _ = schema.XSpaces
    for lookup in (schema.message, schema.descriptor, schema.service):
        with pytest.raises(KeyError):
            lookup("tensorflow.Nothing")
    with pytest.raises(KeyError):
        schema.enum_name("tensorflow.Nothing", 0)


def test_enum_name():
    assert schema.enum_name("tensorflow.DataType", 101) == "DT_FLOAT_REF"
    assert schema.enum_name("tensorflow.ProfileOptions.DeviceType", 2) == "GPU"
    assert schema.enum_name("tensorflow.profiler.MemoryActivity", 99) is None


def test_threads_get_one_class():
    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(schema.message, (["tensorflow.SavedModel"] * 64)))) == 1


def test_the_default_pool_does_not_know_our_files():
    default = descriptor_pool.Default()
    paths = {getattr(schema, name).DESCRIPTOR.file.name for name in schema.SHORT_NAMES}
    assert len(paths) == 47
    for path in paths:
        with pytest.raises(KeyError):
            default.FindFileByName(path)
    any_class = schema.message("google.protobuf.Any")
    assert issubclass(any_class, Message)
    assert any_class.DESCRIPTOR.file.pool is schema.POOL


@each_row("ours_first", [True, False])
def test_other_definitions_of_the_same_names_do_no_harm(ours_first):
    ours = "from peakline.schema import MemoryLogStep"
    theirs = """
from google.protobuf import descriptor_pb2, descriptor_pool
file = descriptor_pb2.FileDescriptorProto(
    name="tensorflow/core/framework/log_memory.proto", package="tensorflow", syntax="proto3"
)
file.message_type.add(name="MemoryLogStep").field.add(name="other", number=9, type=5, label=1)
descriptor_pool.Default().AddSerializedFile(file.SerializeToString())
"""
    check = """
other = descriptor_pool.Default().FindMessageTypeByName("tensorflow.MemoryLogStep")
print([field.name for field in other.fields], MemoryLogStep(handle="h").handle)
"""
    parts = [ours, theirs] if ours_first else [theirs, ours]
    assert run_python("\n".join([*parts, check])) == "['other'] h"


def test_importing_loads_nothing_heavy():
    loaded = run_python(
        """
        import sys
        import peakline.schema
        heavy = {"numpy", "pyarrow", "duckdb", "msgspec", "grpc", "click", "rich"}
        print(sorted(heavy & set(sys.modules)))
        """
    )
    assert loaded == "[]"


NAMES = ("name", "number", "type", "has_presence")


def is_repeated(field):
    """Older protobuf runtimes only know the label, newer ones warn of it."""
    flag = getattr(field, "is_repeated", None)
    return field.label == field.LABEL_REPEATED if flag is None else flag


def below(message):
    yield message
    for nested in message.nested_types:
        yield from below(nested)


def descriptors():
    """Every message of ours, and what these consist of."""
    result = {}
    waiting = list(map(schema.descriptor, shape_texts.MESSAGES))
    while waiting:
        message = waiting.pop()
        if message.full_name not in result:
            result[message.full_name] = message
            waiting += [field.message_type for field in message.fields if field.message_type]
            waiting += below(message)
    return result


def full_name(entry):
    return None if entry is None else entry.full_name


def field_facts(field):
    oneof = field.containing_oneof
    return (
        *(getattr(field, name) for name in NAMES),
        is_repeated(field),
        full_name(field.message_type),
        full_name(field.enum_type),
        None if oneof is None else (oneof.name, [member.name for member in oneof.fields]),
    )


def test_every_message_has_the_fields_of_its_descriptor():
    every = descriptors()
    top = [schema.SHORT_NAMES[name] for name in schema.SHORT_NAMES]
    names = {m.full_name for d in top if isinstance(d, Descriptor) for m in below(d)}
    assert names <= set(every) == set(shape_texts.MESSAGES)
    for name, message in every.items():
        shape = schema.shape(name)
        assert (shape.full_name, shape.name) == (message.full_name, message.name)
        assert [*map(field_facts, shape.fields)] == [*map(field_facts, message.fields)], name
        assert list(shape.fields_by_name) == [field.name for field in message.fields]
        assert set(shape.fields_by_number) == set(message.fields_by_number)
        assert set(shape.oneofs_by_name) == set(message.oneofs_by_name)


def test_every_enum_has_the_values_of_its_descriptor():
    assert len(shape_texts.ENUMS) > 20
    for name in shape_texts.ENUMS:
        enum = schema.POOL.FindEnumTypeByName(name)
        for number in {value.number for value in enum.values}:
            assert schema.enum_name(name, number) in {
                value.name for value in enum.values if value.number == number
            }
    fields = [f for m in descriptors().values() for f in m.fields if f.enum_type]
    for field in fields:
        ours = schema.shape(field.containing_type.full_name).fields_by_name[field.name].enum_type
        values = [(value.name, value.number) for value in field.enum_type.values]
        assert [tuple(value) for value in ours.values] == values
        assert ours.is_closed == field.enum_type.is_closed


def test_a_plan_is_the_same_from_a_shape_and_from_a_descriptor():
    for name, paths in (
        ("tensorflow.profiler.XSpace", ["planes.**", "hostnames"]),
        ("tensorflow.RunMetadata", ["**"]),
        ("tensorflow.GraphDef", ["node.name", "node.attr.key", "library.function.@"]),
        ("peakline.MemoryLog", ["**"]),
    ):
        ours, theirs = (Plan(of(name), paths) for of in (schema.shape, schema.descriptor))
        assert [(t.path, t.columns, t.parent, t.frame) for t in ours.tables] == [
            (t.path, t.columns, t.parent, t.frame) for t in theirs.tables
        ]
        for field in dataclasses.fields(ours.arrays):
            one, other = (getattr(plan.arrays, field.name) for plan in (ours, theirs))
            assert pickle.dumps(one) == pickle.dumps(other), field.name


def test_unknown_names_are_errors():
    with pytest.raises(KeyError):
        schema.shape("tensorflow.Nothing")
    with pytest.raises(KeyError):
        schema.enum_name("tensorflow.Nothing", 0)


def test_one_field_can_be_said_to_be_another():
    changed = schema.shape("tensorflow.ProfileResponse").with_field("xspace 8 12 *")
    field = changed.fields_by_name["xspace"]
    assert (field.number, field.type, field.is_repeated, field.message_type) == (8, 12, True, None)
    assert len(changed.fields) == len(schema.shape("tensorflow.ProfileResponse").fields)


def test_shapes_need_no_protobuf_runtime():
    program = (
        "import sys; from peakline import schema;"
        "schema.shape('tensorflow.profiler.XSpace').fields; print('google.protobuf' in sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    assert shown.stdout.strip() == b"False"
