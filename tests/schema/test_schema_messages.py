"""What the classes do with data: nothing is lost, old and new producers are both readable."""

import pickle

import pytest
from google.protobuf import json_format, text_format
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

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
)


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
    tensor = TensorDescription(dtype=200)
    assert json_format.MessageToDict(tensor) == {"dtype": 200}


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
    stats = NodeExecStats(all_start_micros=2**53 + 1, thread_id=3)
    assert json_format.MessageToDict(stats) == {
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
    back = json_format.ParseDict(document, MetaGraphDef.MetaInfoDef(), descriptor_pool=POOL)
    assert back == info


def test_messages_can_be_pickled():
    space = XSpace()
    space.planes.add(name="/host:CPU").lines.add(timestamp_ns=5)
    assert pickle.loads(pickle.dumps(space)) == space  # noqa: S301


def test_text_that_is_not_utf8_is_refused():
    with pytest.raises(DecodeError):
        XPlane.FromString(b"\x12\x02\xc3\x28")
