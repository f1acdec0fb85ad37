"""Tiny byte strings, one question each, the exact columns expected."""

import struct

import numpy as np
import pytest
from tests.each_row import each_row
from tests.wire.wirebytes import fixed64, len_field, tag, varint, varint_field
from tests.wire.zoo import ZOO

from peakline import schema
from peakline.wire import Decoded, Plan, Spans, as_buffer, decode


def number(name: str) -> int:
    return ZOO.fields_by_name[name].number


def zoo(data: bytes, *paths: str, containers=("",), keep=None, spans=None) -> Decoded:
    return decode(as_buffer(data), Plan(ZOO, paths, containers=containers, keep=keep), spans)


def values(decoded: Decoded, path: str, column: str = "value") -> list:
    return decoded[path].array(column).tolist()


def texts(decoded: Decoded, path: str, column: str = "value") -> list[bytes]:
    spans = decoded[path].spans(column)
    return [spans.bytes(decoded.buffer, row) for row in range(len(spans))]


# Numbers.

_MINUS_ONE = b"\xff" * 9 + b"\x01"
_SCALARS = [
    ("int64", 0, b"\x00", 0),
    ("int64", 0, _MINUS_ONE, -1),
    ("int64", 0, varint(2**63), -(2**63)),
    ("int64", 0, varint(2**63 - 1), 2**63 - 1),
    ("uint64", 0, _MINUS_ONE, 2**64 - 1),
    ("int32", 0, _MINUS_ONE, -1),
    ("int32", 0, varint(2**31), -(2**31)),
    ("int32", 0, varint(2**32 + 5), 5),
    ("uint32", 0, varint(2**32 - 1), 2**32 - 1),
    ("uint32", 0, _MINUS_ONE, 2**32 - 1),
    ("color", 0, _MINUS_ONE, -1),
    ("color", 0, varint(77), 77),
    ("bool", 0, b"\x00", False),
    ("bool", 0, b"\x01", True),
    ("bool", 0, varint(2**63), True),
    ("bool", 0, varint(256), True),
    ("sint32", 0, varint(0), 0),
    ("sint32", 0, varint(1), -1),
    ("sint32", 0, varint(2), 1),
    ("sint32", 0, varint(2**32 - 1), -(2**31)),
    ("sint32", 0, varint(2**32 - 2), 2**31 - 1),
    ("sint64", 0, varint(3), -2),
    ("sint64", 0, varint(2**64 - 1), -(2**63)),
    ("sint64", 0, varint(2**64 - 2), 2**63 - 1),
    ("fixed32", 5, b"\xff\xff\xff\xff", 2**32 - 1),
    ("sfixed32", 5, b"\xff\xff\xff\xff", -1),
    ("fixed64", 1, b"\xff" * 8, 2**64 - 1),
    ("sfixed64", 1, b"\xfe" + b"\xff" * 7, -2),
    ("float", 5, struct.pack("<f", -1.5), -1.5),
    ("double", 1, struct.pack("<d", 1e300), 1e300),
    ("double", 1, struct.pack("<d", float("-inf")), float("-inf")),
]


@each_row(("kind", "wire", "payload", "expected"), _SCALARS)
def test_a_number_of_every_type(kind, wire, payload, expected):
    one = zoo(tag(number(kind), wire) + payload, kind)
    assert values(one, "", kind) == [expected]
    listed = f"{kind}_list"
    loose = zoo((tag(number(listed), wire) + payload) * 2, listed)
    assert values(loose, listed) == [expected, expected]
    packed = zoo(len_field(number(listed), payload * 3), listed)
    assert values(packed, listed) == [expected] * 3
    assert not one.damage
    assert not loose.damage
    assert not packed.damage


def test_nan_keeps_its_bits():
    signalling = b"\x01\x00\x80\x7f"
    data = tag(number("float"), 5) + signalling + fixed64(number("double"), 0x7FF0_0000_0000_0001)
    table = zoo(data, "float", "double")[""]
    assert table.array("float").view(np.uint32).tolist() == [0x7F800001]
    assert table.array("double").view(np.uint64).tolist() == [0x7FF0000000000001]


@each_row(
    ("kind", "given", "dtype"),
    [
        ("int64_list", [0, -(2**31), 2**31 - 1], np.int32),
        ("int64_list", [0, 2**31], np.int64),
        ("int64_list", [-(2**31) - 1], np.int64),
        ("int64_list", [], np.int32),
        ("uint64_list", [0, 2**32 - 1], np.uint32),
        ("uint64_list", [2**32], np.uint64),
        ("uint64_list", [2**64 - 1], np.uint64),
        ("uint64_list", [], np.uint32),
        ("int32_list", [-1], np.int32),
        ("uint32_list", [2**32 - 1], np.uint32),
        ("bool_list", [1], np.bool_),
        ("color_list", [1], np.int32),
    ],
)
def test_columns_are_as_narrow_as_their_values_allow(kind, given, dtype):
    data = len_field(number(kind), b"".join(varint(v) for v in given))
    for containers in (("",), ("", "zoos")):
        in_container = zoo(data, kind, "zoos.key", containers=containers)
        assert in_container[kind].array("value").dtype == dtype
        assert values(in_container, kind) == given
    in_atom = zoo(len_field(number("zoos"), len_field(2, data)), f"zoos.value.{kind}")
    assert in_atom[f"zoos.value.{kind}"].array("value").dtype == dtype
    assert values(in_atom, f"zoos.value.{kind}") == given


def test_floating_point_keeps_its_width():
    data = len_field(number("float_list"), bytes(4)) + len_field(number("double_list"), bytes(8))
    decoded = zoo(data, "float_list", "double_list")
    assert decoded["float_list"].array("value").dtype == np.float32
    assert decoded["double_list"].array("value").dtype == np.float64


# Varints and tags.


def test_bits_beyond_64_are_cut_off():
    decoded = zoo(tag(number("uint64"), 0) + b"\xff" * 9 + b"\x7f", "uint64")
    assert values(decoded, "", "uint64") == [2**64 - 1]
    assert not decoded.damage


# Strings, bytes, messages.


def test_spans_say_where_strings_lie():
    data = len_field(number("string"), b"first") + len_field(number("string"), "zwölf".encode())
    spans = zoo(data, "string")[""].spans("string")
    assert spans.start.tolist() == [len(data) - 6]
    assert spans.length.tolist() == [6]
    assert spans.texts(as_buffer(data)) == ["zwölf"]


def test_texts_that_are_no_utf8_become_replacement_characters():
    assert zoo(len_field(number("string"), b"a\xffb"), "string")[""].spans("string").texts(
        as_buffer(len_field(number("string"), b"a\xffb"))
    ) == ["a\ufffdb"]


# Merging, oneofs, maps, recursion.


def test_the_parts_of_a_split_message_merge():
    first = varint_field(1, 5) + varint_field(3, 2)
    second = len_field(2, b"n") + varint_field(3, 4)
    data = len_field(number("leaf"), first) + len_field(number("leaf"), second)
    decoded = zoo(data, "leaf.id", "leaf.name", "leaf.many")
    assert values(decoded, "leaf", "id") == [5]
    assert texts(decoded, "leaf", "name") == [b"n"]
    assert values(decoded, "leaf.many") == [1, 2]
    assert decoded["leaf.many"].parent.tolist() == [0, 0]


def test_the_last_member_of_a_oneof_wins():
    data = len_field(number("pick_string"), b"abc") + varint_field(number("pick_bool"), 1)
    decoded = zoo(data, "pick_string?", "pick_bool?", "pick_leaf.id")
    assert values(decoded, "", "pick.case") == [number("pick_bool")]
    assert texts(decoded, "", "pick_string") == [b""]
    assert values(decoded, "", "pick_string?") == [False]
    assert values(decoded, "", "pick_bool?") == [True]


def test_map_entries_are_rows_in_order_with_their_defaults():
    def entry(*parts: bytes) -> bytes:
        return len_field(number("numbers"), b"".join(parts))

    key, value = varint_field(1, 3), fixed64(2, 0x3FF0_0000_0000_0000)
    data = entry(value, key) + entry(key) + entry(value) + entry() + entry(key, key, value)
    decoded = zoo(data, "numbers.key?", "numbers.value?")
    assert values(decoded, "numbers", "key") == [-2, -2, 0, 0, -2]
    assert values(decoded, "numbers", "key?") == [True, True, False, False, True]
    assert values(decoded, "numbers", "value") == [1.0, 0.0, 1.0, 0.0, 1.0]


# Buffers and spans.


@each_row("containers", [("",), ("", "planes"), ("", "planes", "planes.lines")])
def test_an_empty_buffer_is_one_root_without_anything(containers):
    plan = Plan(schema.descriptor("tensorflow.profiler.XSpace"), ["planes.lines.name"],
                containers=containers)  # fmt: skip
    decoded = decode(as_buffer(b""), plan)
    assert {path: table.rows for path, table in decoded.tables.items()} == {
        "": 1, "planes": 0, "planes.lines": 0,
    }  # fmt: skip
    assert not decoded.damage


@each_row(
    ("start", "length"),
    [(-1, 1), (0, 11), (11, 0), (10, 1), (5, -1), (2**62, 2**62), (2**63 - 1, 1), (0, 2**63 - 1)],
)
def test_spans_outside_the_buffer_are_refused(start, length):
    plan = Plan(ZOO, ["int64"])
    spans = Spans(np.array([0, start]), np.array([0, length]))
    with pytest.raises(ValueError, match="outside the buffer"):
        decode(as_buffer(bytes(10)), plan, spans)


@each_row("kind", [bytes, bytearray, memoryview])
def test_any_bytes_like_object_is_a_buffer(kind):
    buffer = as_buffer(kind(varint_field(number("int64"), 5)))
    assert not buffer.flags.writeable
    assert values(decode(buffer, Plan(ZOO, ["int64"])), "", "int64") == [5]
    assert as_buffer(kind(b"")).size == 0
