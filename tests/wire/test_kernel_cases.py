"""The kernel on messages by hand: right ones and damaged ones."""

import struct

import numpy as np
import pytest
from tests.each_row import each_row
from tests.wire.wirebytes import fixed64, len_field, tag, varint, varint_field
from tests.wire.zoo import ZOO

from peakline import schema
from peakline.wire import Damage, Decoded, Plan, Spans, as_buffer, decode


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


_SPACE = schema.descriptor("tensorflow.profiler.XSpace")
_PATHS = ("hostnames", "planes.name", "planes.id", "planes.lines.name", "planes.lines.id",
          "planes.lines.events.metadata_id", "planes.lines.events.stats.int64_value")  # fmt: skip
_CONTAINERS = ("", "planes", "planes.lines")


def zoo_of_kernel_damage(data: bytes, *paths: str, containers=("",)) -> Decoded:
    return decode(as_buffer(data), Plan(ZOO, paths, containers=containers))


def space(data: bytes, paths=_PATHS, containers=_CONTAINERS) -> Decoded:
    return decode(as_buffer(data), Plan(_SPACE, paths, containers=containers))


def ids(decoded: Decoded, path: str = "planes.lines.events", column: str = "metadata_id") -> list:
    return decoded[path].array(column).tolist()


def event(metadata_id: int, *stats: bytes) -> bytes:
    """A field of XLine."""
    return len_field(4, varint_field(1, metadata_id) + b"".join(len_field(4, s) for s in stats))


def line(*fields: bytes) -> bytes:
    """A field of XPlane."""
    return len_field(3, b"".join(fields))


# What breaks a message.

_BROKEN = {
    "tag 0": b"\x00\x00",
    "tag of number 0": tag(0, 2) + b"\x01a",
    "overlong tag": varint(number("int64") << 3, 6) + b"\x01",
    "tag above 32 bits": varint(number("int64") << 3 | 1 << 32) + b"\x01",
    "cut tag": b"\x80",
    "varint of 11 bytes": tag(number("int64"), 0) + b"\x80" * 10 + b"\x01",
    "cut varint": tag(number("int64"), 0) + b"\x80",
    "no varint": tag(number("int64"), 0),
    "cut fixed32": tag(number("float"), 5) + bytes(3),
    "cut fixed64": tag(number("double"), 1) + bytes(7),
    "cut length": tag(number("string"), 2) + b"\xff",
    "length too long": tag(number("string"), 2) + b"\x02a",
    "length of 2**64 - 1": tag(number("string"), 2) + varint(-1) + b"a",
    "length of 2**63": tag(number("string"), 2) + varint(2**63) + b"a",
    "wire type 6": tag(number("string"), 6) + b"\x00",
    "wire type 7": tag(number("string"), 7) + b"\x00",
    "unknown wire type 6": tag(999, 6),
    "unknown length too long": tag(999, 2) + b"\x01",
    "unknown cut varint": tag(999, 0) + b"\xff" * 3,
    "message too long": tag(number("leaf"), 2) + b"\x03\x08\x01",
    "cut inside a message": len_field(number("leaf"), b"\x08"),
    "cut packed varint": len_field(number("int64_list"), b"\x01\x80"),
    "packed varint of 11 bytes": len_field(number("int64_list"), b"\x80" * 10 + b"\x01"),
    "cut packed fixed32": len_field(number("fixed32_list"), bytes(7)),
    "cut packed fixed64": len_field(number("double_list"), bytes(9)),
}
_ASKED = ("int64", "float", "double", "string", "leaf.id", "int64_list", "fixed32_list",
          "double_list", "bool")  # fmt: skip


@each_row("broken", _BROKEN.values())
def test_a_broken_atom_is_dropped_alone(broken):
    whole = len_field(
        number("zoos"), varint_field(1, 5) + len_field(2, varint_field(number("bool"), 1))
    )
    half = varint_field(1, 6) + len_field(2, varint_field(number("int64_list"), 1) + broken)
    data = whole + len_field(number("zoos"), half) + whole
    decoded = zoo_of_kernel_damage(data, "zoos.key", *(f"zoos.value.{name}" for name in _ASKED))
    assert ids(decoded, "zoos", "key") == [5, 5]
    assert ids(decoded, "zoos.value", "bool") == [True, True]
    assert decoded["zoos.value"].parent.tolist() == [0, 1]
    assert decoded["zoos.value.int64_list"].rows == 0
    assert decoded["zoos.value.leaf"].rows == 0
    damage = decoded.damage
    assert damage.places == 1
    assert len(whole) < damage.first_offset < len(data) - len(whole)
    assert 0 < damage.skipped_bytes <= len(broken)
    assert damage.groups == damage.missing_bytes == 0


@each_row("broken", _BROKEN.values())
def test_a_broken_container_keeps_what_stands_before(broken):
    before = varint_field(number("bool"), 1) + len_field(number("leaves"), varint_field(1, 3))
    decoded = zoo_of_kernel_damage(before + broken, *_ASKED, "leaves.id")
    assert ids(decoded, "", "bool") == [True]
    assert ids(decoded, "leaves", "id") == [3]
    assert decoded.damage.places == 1
    assert decoded.damage.first_offset >= len(before)
    assert bool(decoded.damage)


def test_groups_are_refused_and_counted():
    group = tag(60, 3) + varint_field(1, 1) + tag(60, 4)
    leaf = number("leaves")
    atom = len_field(leaf, varint_field(1, 1) + group)
    decoded = zoo_of_kernel_damage(atom + len_field(leaf, varint_field(1, 2)) + group, "leaves.id")
    assert ids(decoded, "leaves", "id") == [2]
    first = len(atom) - len(group)
    assert decoded.damage == Damage(2, 2 * len(group), first, 0, 2)


def test_the_damage_of_a_length_inside_an_atom():
    good, bad = event(1, varint_field(4, 7)), len_field(4, varint_field(1, 2) + tag(4, 2) + b"\x05")
    plane = len_field(2, b"name") + line(good, bad, event(3))
    decoded = space(len_field(1, plane) + len_field(4, b"host"))
    assert ids(decoded) == [1, 3]
    assert ids(decoded, "planes.lines.events.stats", "int64_value") == [7]
    assert decoded["hostnames"].rows == 1
    at = (len_field(1, plane) + b"").index(tag(4, 2) + b"\x05" + event(3))
    assert decoded.damage == Damage(places=1, skipped_bytes=2, first_offset=at)


def test_a_too_long_stat_costs_only_the_stat():
    stat = len_field(4, tag(5, 2) + b"\x09ab")
    plane = line(
        len_field(4, varint_field(1, 2) + stat + len_field(4, varint_field(4, 6))), event(3)
    )
    decoded = space(len_field(1, plane))
    assert ids(decoded) == [2, 3]
    assert ids(decoded, "planes.lines.events.stats", "int64_value") == [6]
    assert decoded["planes.lines.events.stats"].parent.tolist() == [0]
    assert (decoded.damage.places, decoded.damage.skipped_bytes) == (1, 4)


def test_a_length_that_reaches_beyond_a_container():
    lines = line(event(1)) + tag(3, 2) + varint(1000) + event(2)
    data = len_field(1, len_field(2, b"one") + lines) + len_field(
        1, len_field(2, b"two") + line(event(3))
    )
    decoded = space(data)
    assert decoded["planes"].spans("name").texts(as_buffer(data)) == ["one", "two"]
    assert ids(decoded) == [1, 2, 3]
    assert decoded["planes.lines"].parent.tolist() == [0, 0, 1]
    assert decoded.damage == Damage(1, 0, data.index(tag(3, 2) + varint(1000)))


def test_a_length_that_reaches_beyond_the_buffer_tells_how_much_is_missing():
    lines = line(event(1)) + tag(3, 2) + varint(1000) + event(2)
    decoded = space(tag(1, 2) + varint(len(lines) + 1000) + lines)
    assert ids(decoded) == [1, 2]
    assert decoded.damage == Damage(1, 0, 0, missing_bytes=1000)


def test_every_container_that_was_cut_is_counted():
    lying = len_field(1, line(event(1)) + tag(3, 2) + varint(1000) + event(2))
    less = len_field(1, tag(3, 2) + varint(500) + event(3))
    decoded = space(lying + less + lying + len_field(4, b"host"))
    assert ids(decoded) == [1, 2, 3, 1, 2]
    assert decoded.damage == Damage(3, 0, lying.index(tag(3, 2) + varint(1000)), 0)


def test_damage_in_a_container_costs_the_rest_of_it_and_no_more():
    first = line(varint_field(1, 5), event(1), b"\x00", event(2))
    data = len_field(1, varint_field(1, 9) + first + line(event(3))) + len_field(4, b"h")
    decoded = space(data)
    assert ids(decoded) == [1, 3]
    assert ids(decoded, "planes", "id") == [9]
    assert ids(decoded, "planes.lines", "id") == [5, 0]
    assert decoded["hostnames"].rows == 1
    at = data.index(b"\x00" + event(2))
    assert decoded.damage == Damage(1, 1 + len(event(2)), at)


@each_row("tail", [b"\x22", b"\x22\x80", b"\x22\x01", b"\x00", b"\x80", b"\x08"])
@each_row("atoms", range(4))
def test_a_broken_field_after_atoms_is_seen(tail, atoms):
    data = len_field(1, line(len_field(4, b"") * atoms + tail))
    decoded = space(data)
    assert decoded["planes.lines.events"].rows == atoms
    assert decoded.damage == Damage(1, len(tail), len(data) - len(tail))


# Truncation.


def _truncatable() -> tuple[bytes, list[int], list[int], list[int]]:
    """An XSpace of one plane; and where its events, its lines' and the plane's contents end."""
    events = [event(n, varint_field(4, n), varint_field(4, -n)) for n in range(1, 7)]
    head = len_field(2, b"/host:CPU") + varint_field(1, 1)
    lines = [line(varint_field(1, 7), *events[:4]), line(*events[4:], varint_field(1, 8))]
    plane = head + b"".join(lines)
    data = len_field(1, plane)
    at = len(data) - len(plane)
    ends, begins, cursor = [], [], at + len(head)
    for text, held in zip(lines, (events[:4], events[4:]), strict=True):
        inside = cursor + text.index(held[0])
        begins.append(inside - (2 if text is lines[0] else 0))
        for one in held:
            inside += len(one)
            ends.append(inside)
        cursor += len(text)
    return data, ends, begins, [at]


@each_row("paths", [_PATHS, ("planes.lines.events.metadata_id",)])
def test_truncated_anywhere_what_is_whole_is_kept(paths):
    data, ends, begins, (plane_at,) = _truncatable()
    for cut in range(len(data)):
        decoded = space(data[:cut], paths)
        assert ids(decoded) == [n for n, end in enumerate(ends, 1) if end <= cut], cut
        assert decoded["planes"].rows == int(cut >= plane_at)
        assert decoded["planes.lines"].rows == sum(begin <= cut for begin in begins), cut
        damage = decoded.damage
        assert bool(damage) == (cut > 0), cut
        if cut >= plane_at:
            assert damage.missing_bytes == len(data) - cut
            assert damage.first_offset == 0
    assert not space(data, paths).damage


def test_truncated_anywhere_spans_of_lines_reach_to_the_end():
    data, _, begins, _ = _truncatable()
    for cut in range(begins[0], len(data)):
        spans = space(data[:cut], ("planes.lines",), ("", "planes"))["planes.lines"].spans("value")
        assert len(spans) == sum(begin <= cut for begin in begins)
        last = int(spans.start[-1]) + int(spans.length[-1])
        assert last == cut or (len(spans) == 1 and begins[1] > cut)


def test_truncated_anywhere_atoms_in_the_root_are_whole_or_gone():
    leaf = len_field(number("leaves"), varint_field(1, 5) + len_field(2, b"name"))
    for cut in range(3 * len(leaf) + 1):
        decoded = zoo_of_kernel_damage((leaf * 3)[:cut], "leaves.id")
        assert decoded["leaves"].rows == cut // len(leaf)
        assert bool(decoded.damage) == (cut % len(leaf) > 0)


# Depth.


@each_row("containers", [("",), ("", "trees", "trees.named")])
@each_row("depth", [99, 100, 101, 1000])
def test_messages_nested_deeper_than_protobuf_allows_are_damage(containers, depth):
    deep = varint_field(1, 2)
    for _ in range(depth - 1):
        deep = len_field(4, deep)
    data = len_field(number("trees"), deep) + len_field(number("trees"), varint_field(1, 4))
    decoded = zoo_of_kernel_damage(data, "trees.**", containers=containers)
    assert decoded.damage.places == int(depth > 100)
    assert ids(decoded, "trees", "id")[-1] == 2
    if depth <= 100:
        assert decoded["trees"].rows == depth + 1
        assert ids(decoded, "trees", "id")[-2] == 1


def test_what_is_not_descended_into_may_be_any_depth():
    deep = b""
    for _ in range(500):
        deep = len_field(4, deep)
    decoded = zoo_of_kernel_damage(
        len_field(number("trees"), deep + varint_field(1, 2)), "trees.id"
    )
    assert ids(decoded, "trees", "id") == [1]
    assert not decoded.damage


# Damage as a value.


def test_damage_adds_up():
    one, two = Damage(1, 5, 70, 9, 0), Damage(2, 1, 30, 4, 1)
    assert one + two == Damage(3, 6, 30, 9, 1)
    assert Damage() + two == two
    assert one + Damage() == one
    assert not Damage()
    assert Damage(places=1)


def test_damage_is_counted_once_over_all_pieces():
    bad = len_field(4, varint_field(1, 2) + fixed64(2, 1)[:-1])
    plane = len_field(1, line(*([event(1), bad] * 20)) + b"\x00")
    damage = space(plane * 3).damage
    assert damage.places == 63
    assert damage.skipped_bytes == 3 * (20 * 8 + 1)
    assert damage.first_offset == plane.index(bad) + 4
