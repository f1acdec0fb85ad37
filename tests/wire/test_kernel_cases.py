"""Tiny byte strings, one question each, the exact columns expected."""

import struct

import numpy as np
import pytest
from tests.each_row import each_row
from tests.wire.wirebytes import fixed32, fixed64, len_field, tag, varint, varint_field
from tests.wire.zoo import ZOO

from peakline import schema
from peakline.wire import Decoded, Plan, Spans, as_buffer, decode

_NONE = Spans(np.zeros(0, np.int64), np.zeros(0, np.int64))


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


def test_absent_fields_are_zero_and_empty():
    table = zoo(b"", "int64", "double", "bool", "string?", "maybe?")
    assert values(table, "", "int64") == [0]
    assert values(table, "", "double") == [0.0]
    assert values(table, "", "bool") == [False]
    assert values(table, "", "string?") == [False]
    assert values(table, "", "maybe?") == [False]
    assert texts(table, "", "string") == [b""]


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


@each_row("size", range(1, 11))
def test_a_varint_may_be_longer_than_it_need_be(size):
    assert values(zoo(tag(number("int64"), 0) + varint(5, size), "int64"), "", "int64") == [5]


def test_bits_beyond_64_are_cut_off():
    decoded = zoo(tag(number("uint64"), 0) + b"\xff" * 9 + b"\x7f", "uint64")
    assert values(decoded, "", "uint64") == [2**64 - 1]
    assert not decoded.damage


@each_row("size", range(2, 6))
def test_a_tag_may_be_longer_than_it_need_be(size):
    assert values(zoo(tag(number("int64"), 0, size) + b"\x07", "int64"), "", "int64") == [7]


def test_fields_beyond_the_plan_are_skipped():
    unknown = (
        varint_field(2**29 - 1, 5) + fixed32(9999, 1) + fixed64(300, 1) + len_field(77, b"abc")
    )
    decoded = zoo(unknown + varint_field(number("int64"), 3) + unknown, "int64")
    assert values(decoded, "", "int64") == [3]
    assert not decoded.damage


def test_another_wire_type_makes_a_field_unknown():
    as_fixed = fixed64(number("int64"), 9) + fixed32(number("string"), 9)
    as_bytes = len_field(number("int64"), b"\x05") + varint_field(number("string_list"), 1)
    decoded = zoo(varint_field(number("int64"), 4) + as_fixed + as_bytes, "int64", "string_list")
    assert values(decoded, "", "int64") == [4]
    assert decoded["string_list"].rows == 0
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


def test_repeated_strings_are_rows():
    listed = number("bytes_list")
    decoded = zoo(len_field(listed, b"") + len_field(listed, b"ab"), "bytes_list")
    assert texts(decoded, "bytes_list") == [b"", b"ab"]
    assert decoded["bytes_list"].parent.tolist() == [0, 0]


def test_a_message_named_as_a_leaf_is_a_span():
    leaf = varint_field(1, 5)
    data = len_field(number("leaf"), leaf) + len_field(number("leaves"), leaf) * 2
    decoded = zoo(data, "leaf?", "leaves")
    assert texts(decoded, "", "leaf") == [leaf]
    assert values(decoded, "", "leaf?") == [True]
    assert texts(decoded, "leaves") == [leaf, leaf]


def test_at_span_says_where_each_message_lies():
    data = len_field(number("leaves"), b"") + len_field(number("leaves"), varint_field(1, 9))
    decoded = zoo(data, "leaves.@span", "leaves.id", "@span")
    assert texts(decoded, "leaves", "@span") == [b"", varint_field(1, 9)]
    assert texts(decoded, "", "@span") == [data]


def test_at_alone_counts_rows():
    decoded = zoo(len_field(number("leaves"), b"") * 3, "leaves.@")
    assert decoded["leaves"].rows == 3
    assert decoded["leaves"].columns == {}


# Merging, oneofs, maps, recursion.


def test_the_last_singular_value_wins():
    data = varint_field(number("int64"), 1) + varint_field(number("int64"), 2)
    assert values(zoo(data, "int64"), "", "int64") == [2]


def test_the_parts_of_a_split_message_merge():
    first = varint_field(1, 5) + varint_field(3, 2)
    second = len_field(2, b"n") + varint_field(3, 4)
    data = len_field(number("leaf"), first) + len_field(number("leaf"), second)
    decoded = zoo(data, "leaf.id", "leaf.name", "leaf.many")
    assert values(decoded, "leaf", "id") == [5]
    assert texts(decoded, "leaf", "name") == [b"n"]
    assert values(decoded, "leaf.many") == [1, 2]
    assert decoded["leaf.many"].parent.tolist() == [0, 0]


def test_a_missing_message_is_no_row():
    decoded = zoo(len_field(number("zoos"), b"") + len_field(number("zoos"), len_field(2, b"")),
                  "zoos.value.leaf.id", "zoos.value.int64")  # fmt: skip
    assert decoded["zoos"].rows == 2
    assert decoded["zoos.value"].parent.tolist() == [1]
    assert decoded["zoos.value.leaf"].rows == 0


def test_the_last_member_of_a_oneof_wins():
    data = len_field(number("pick_string"), b"abc") + varint_field(number("pick_bool"), 1)
    decoded = zoo(data, "pick_string?", "pick_bool?", "pick_leaf.id")
    assert values(decoded, "", "pick.case") == [number("pick_bool")]
    assert texts(decoded, "", "pick_string") == [b""]
    assert values(decoded, "", "pick_string?") == [False]
    assert values(decoded, "", "pick_bool?") == [True]


def test_a_member_nobody_asked_for_switches_too():
    data = varint_field(number("pick_bool"), 1) + len_field(number("pick_tree"), b"")
    decoded = zoo(data, "pick_bool?")
    assert values(decoded, "", "pick.case") == [number("pick_tree")]
    assert values(decoded, "", "pick_bool") == [False]
    assert values(decoded, "", "pick_bool?") == [False]


def test_a_replaced_message_takes_its_rows_with_it():
    tree = number("pick_tree")
    kid = len_field(4, varint_field(1, 2) + len_field(4, len_field(4, varint_field(1, 4))))
    data = len_field(tree, kid) + varint_field(number("pick_bool"), 0) + len_field(tree, kid)
    decoded = zoo(data + varint_field(number("pick_uint64"), 1), "pick_tree.**")
    assert {path: t.rows for path, t in decoded.tables.items() if t.rows} == {"": 1}
    again = zoo(data, "pick_tree.**")
    assert again["pick_tree"].parent.tolist() == [0]
    assert values(again, "pick_tree.kids", "id") == [1, 0, 2]
    order = list(again.tables)
    above = [order[index] for index in values(again, "pick_tree.kids", "@parent_table")]
    assert above == ["pick_tree", "pick_tree.kids", "pick_tree.kids"]
    assert again["pick_tree.kids"].parent.tolist() == [0, 0, 1]


def test_a_oneof_as_one_column():
    pick = [fd.name for fd in ZOO.oneofs_by_name["pick"].fields]
    members = {
        "pick_sint64": (varint_field(number("pick_sint64"), 3), -2, 0),
        "pick_float": (fixed32(number("pick_float"), 0xBFC00000), 0xBFC00000 - 2**32, 0),
        "pick_double": (fixed64(number("pick_double"), 2**63), -(2**63), 0),
        "pick_bool": (varint_field(number("pick_bool"), 9), 1, 0),
        "pick_string": (len_field(number("pick_string"), b"abc"), None, 3),
        "pick_fixed32": (fixed32(number("pick_fixed32"), 2**32 - 1), 2**32 - 1, 0),
        "pick_uint64": (varint_field(number("pick_uint64"), 2**64 - 1), -1, 0),
        "pick_leaf": (len_field(number("pick_leaf"), varint_field(1, 1)), None, 2),
        "pick_tree": (len_field(number("pick_tree"), b""), None, 0),
    }
    assert list(members) == pick
    entries = b"".join(len_field(number("zoos"), len_field(2, m[0])) for m in members.values())
    union = zoo(entries + len_field(number("zoos"), len_field(2, b"")), "zoos.value.pick")[
        "zoos.value"
    ].union("pick")
    assert union.case.tolist() == [number(name) for name in pick] + [0]
    assert union.length.tolist() == [m[2] for m in members.values()] + [0]
    assert union.bits.tolist()[-1] == 0
    for (name, (_, bits, _)), found in zip(members.items(), union.bits.tolist(), strict=False):
        if bits is not None:
            assert found == bits, name
    start = union.bits.tolist()[4]
    assert entries[start : start + 3] == b"abc"


def test_map_entries_are_rows_in_order_with_their_defaults():
    def entry(*parts: bytes) -> bytes:
        return len_field(number("numbers"), b"".join(parts))

    key, value = varint_field(1, 3), fixed64(2, 0x3FF0_0000_0000_0000)
    data = entry(value, key) + entry(key) + entry(value) + entry() + entry(key, key, value)
    decoded = zoo(data, "numbers.key?", "numbers.value?")
    assert values(decoded, "numbers", "key") == [-2, -2, 0, 0, -2]
    assert values(decoded, "numbers", "key?") == [True, True, False, False, True]
    assert values(decoded, "numbers", "value") == [1.0, 0.0, 1.0, 0.0, 1.0]


def test_a_message_that_recurs_is_one_table():
    inner = varint_field(1, 6)
    data = len_field(number("trees"), len_field(4, inner) + len_field(5, len_field(4, inner)))
    decoded = zoo(data, "trees.**")
    assert values(decoded, "trees", "id") == [0, 3, 0, 3]
    order = list(decoded.tables)
    assert [order[i] for i in values(decoded, "trees", "@parent_table")] == ["", *["trees"] * 3]
    assert decoded["trees"].parent.tolist() == [0, 0, 0, 2]


def test_singular_recursion_is_left_as_a_span():
    left = len_field(3, varint_field(1, 2))
    decoded = zoo(len_field(number("tree"), left), "tree.**")
    assert texts(decoded, "tree", "left") == [varint_field(1, 2)]


def test_maps_recur_too():
    tree = varint_field(1, 2)
    entry = len_field(6, len_field(1, b"k") + len_field(2, tree))
    decoded = zoo(len_field(number("tree"), len_field(6, len_field(2, entry))), "tree.**")
    assert texts(decoded, "tree.named", "key") == [b"", b"k"]
    assert values(decoded, "tree.named.value", "id") == [0, 1]
    assert decoded["tree.named.value"].parent.tolist() == [0, 1]


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


def test_no_spans_are_no_roots():
    decoded = zoo(varint_field(number("int64"), 1), "int64", spans=_NONE)
    assert decoded[""].rows == 0
    assert not decoded.damage


def test_every_span_is_a_root():
    leaf = varint_field(1, 7)
    data = len_field(number("leaves"), leaf) * 3
    plan = Plan(ZOO.fields_by_name["leaf"].message_type, ["id", "many"])
    spans = Spans(np.array([6, 0, 2, 3]), np.zeros(4, np.int64))
    assert values(decode(as_buffer(data), plan, spans), "", "id") == [0, 0, 0, 0]
    size = len(data) // 3
    starts = np.array([2 * size, 0, size], np.uint32) + size - len(leaf)
    three = decode(as_buffer(data), plan, Spans(starts, np.full(3, len(leaf), np.uint8)))
    assert values(three, "", "id") == [7, 7, 7]
    assert three[""].parent.tolist() == [0, 1, 2]


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
