"""What paths, containers and filters ask for, and which of them are refused."""

import numpy as np
import pytest
from tests.each_row import each_row
from tests.wire.wirebytes import len_field, tag, varint_field
from tests.wire.zoo import ZOO

from peakline import schema
from peakline.wire import Plan, Spans, as_buffer, decode

_SPACE = schema.descriptor("tensorflow.profiler.XSpace")
_GRAPH_NODES = schema.descriptor("tensorflow.tfprof.MultiGraphNodeProto")
_ATTR = schema.descriptor("tensorflow.AttrValue")


def number(name: str) -> int:
    return ZOO.fields_by_name[name].number


def columns(message, *paths: str) -> dict[str, list[str]]:
    decoded = decode(as_buffer(b""), Plan(message, paths))
    return {path: sorted(table.columns) for path, table in decoded.tables.items()}


# Paths.


def test_each_path_gives_its_columns_and_tables():
    assert columns(_SPACE, "hostnames", "planes.name", "planes.lines.events.data") == {
        "": [],
        "hostnames": ["value"],
        "planes": ["name"],
        "planes.lines": [],
        "planes.lines.events": ["data", "data.case"],
    }


def test_a_star_gives_all_numbers_and_strings():
    assert columns(_SPACE, "planes.*") == {"": [], "planes": ["id", "name"]}
    assert columns(ZOO.fields_by_name["leaf"].message_type, "*") == {"": ["id", "name"]}


def test_two_stars_give_everything():
    leaf = ZOO.fields_by_name["leaf"].message_type
    assert columns(leaf, "**") == {"": ["id", "name"], "many": ["value"]}


@each_row(
    "paths", [("id", "id"), ("id", "id?"), ("id?", "id"), ("*", "id?"), ("id?", "*"), ("**", "id?")]
)
def test_one_column_may_be_asked_for_twice(paths):
    leaf = ZOO.fields_by_name["leaf"].message_type
    table = decode(as_buffer(varint_field(1, 5)), Plan(leaf, paths))[""]
    assert table.array("id").tolist() == [5]
    assert ("id?" in table.columns) == ("id?" in paths)


@each_row(
    ("message", "path"),
    [
        (_SPACE, "nothing"), (_SPACE, "planes.nothing"), (_SPACE, "planes.name.nothing"),
        (_SPACE, "nothing.name"), (_SPACE, "hostnames.nothing"), (_SPACE, ""), (_SPACE, "planes."),
        (_SPACE, ".planes"), (_SPACE, "planes.@nothing"), (_SPACE, "planes.*?"),
        (_SPACE, "planes.name??"), (_SPACE, "hostnames?"), (_SPACE, "planes.**.name")],
)  # fmt: skip
def test_paths_that_do_not_fit_are_refused(message, path):
    with pytest.raises(ValueError, match=r"\S"):
        Plan(message, [path])


@each_row(
    "paths",
    [
        ("tensor", "tensor.dtype"),
        ("tensor.dtype", "tensor"),
        ("i", "value"),
        ("value", "i"),
        ("value", "tensor.dtype"),
        ("list.tensor", "list.tensor.dtype"),
        ("tensor", "**"),
        ("value", "**"),
    ],
)
def test_one_field_in_two_ways_is_refused(paths):
    with pytest.raises(ValueError, match="two ways"):
        Plan(_ATTR, paths)


@each_row(
    "name", ["tensorflow.MemoryLogTensorOutput", "tensorflow.TensorProto", "tensorflow.GraphDef",
             "tensorflow.AttrValue", "tensorflow.Event"]
)  # fmt: skip
def test_everything_of_messages_within_messages(name):
    assert columns(schema.descriptor(name), "**")


def test_recursion_ends_where_everything_begins():
    """The messages above a ``**`` have only the columns that were asked for."""
    tables = columns(_GRAPH_NODES, "children.name", "children.children.**")
    assert tables["children"] == ["name"]
    assert "float_ops" in tables["children.children"]


# Containers.


@each_row(
    ("containers", "reason"),
    [
        (("", "planes.lines"), "below an atomic message"),
        (("planes",), r"\S"),
        ((), r"\S"),
        (("", "nothing"), "no such table"),
        (("", "planes.events"), "no such table"),
        (("", "hostnames"), r"\S"),
        (("", "planes.event_metadata.value"), r"\S"),
    ],
)
def test_containers_that_cannot_be_are_refused(containers, reason):
    paths = ("hostnames", "planes.lines.name", "planes.event_metadata.value.id")
    with pytest.raises(ValueError, match=reason):
        Plan(_SPACE, paths, containers=containers)


def test_a_container_must_not_recur_inside_an_atom():
    """Its rows would be found only where atoms are decoded, which is out of order."""
    with pytest.raises(ValueError, match=r"\S"):
        Plan(ZOO, ["trees.**"], containers=("", "trees"))
    assert Plan(ZOO, ["trees.**"], containers=("", "trees", "trees.named"))


# Filters.


def entries(*keys: int) -> bytes:
    return b"".join(len_field(number("zoos"), varint_field(1, key)) for key in keys)


@each_row(
    ("ids", "given", "kept"),
    [
        ([5, 3], [3, 4, 5, 3], [0, 1, 0]),
        ([], [0, 1], []),
        ([0], [0, 1], [0]),
        ([1, 70000, 65536, 2**40], [65536, 70000, 2**40, 65537, 1], [1, 2, 3, 0]),
        ([2**63 - 1], [2**63 - 1, 0], [0]),
        ([3, 3, 3, 7], [7, 3], [1, 0]),
    ],
)
def test_a_filter_keeps_rows_and_gives_positions(ids, given, kept):
    plan = Plan(ZOO, ["zoos.key"], keep={"zoos.key": ids})
    decoded = decode(as_buffer(entries(*given)), plan)
    assert decoded["zoos"].array("key").tolist() == kept
    assert not decoded.damage


def test_a_filter_drops_all_that_hangs_on_a_row():
    leaf = len_field(number("leaves"), varint_field(1, 1) + varint_field(3, 4))
    data = b"".join(
        len_field(number("zoos"), len_field(2, leaf * n) + varint_field(1, n)) for n in (1, 2, 3)
    )
    plan = Plan(ZOO, ["zoos.key", "zoos.value.leaves.many"], keep={"zoos.key": [1, 3]})
    decoded = decode(as_buffer(data), plan)
    assert decoded["zoos.value"].parent.tolist() == [0, 1]
    assert decoded["zoos.value.leaves"].parent.tolist() == [0, 1, 1, 1]
    assert decoded["zoos.value.leaves.many"].array("value").tolist() == [2] * 4


def test_a_filter_meets_fields_that_are_absent_or_negative():
    leaves = number("leaves")
    data = b"".join(
        len_field(leaves, field) for field in (b"", varint_field(1, -1), varint_field(1, 2))
    )
    plan = Plan(ZOO, ["leaves.id"], keep={"leaves.id": [-1, 0]})
    assert decode(as_buffer(data), plan)["leaves"].array("id").tolist() == [1, 0]


def test_positions_of_a_narrow_column_are_whole_numbers():
    graph = schema.descriptor("tensorflow.OpDef")
    attr = graph.fields_by_name["attr"]
    has_minimum = attr.message_type.fields_by_name["has_minimum"]
    data = len_field(attr.number, varint_field(has_minimum.number, 1)) + len_field(attr.number, b"")
    plan = Plan(graph, ["attr.has_minimum"], keep={"attr.has_minimum": [-3, -2, -1, 0, 1]})
    assert decode(as_buffer(data), plan)["attr"].array("has_minimum").tolist() == [4, 3]


@each_row(
    "column",
    ["zoos.nothing", "nothing.key", "zoos.value.int64", ".int64", "zoos.value.leaves.name", "key"],
)
def test_filters_that_cannot_be_are_refused(column):
    paths = ["zoos.key", "zoos.value.int64", "int64", "zoos.value.leaves.name"]
    with pytest.raises(ValueError, match=r"\S"):
        Plan(ZOO, paths, keep={column: [1]})


def test_a_filter_on_floating_point_is_refused():
    with pytest.raises(ValueError, match=r"\S"):
        Plan(ZOO, ["numbers.value"], keep={"numbers.value": [1]})


# The tables' own helpers.


def test_columns_are_asked_for_by_kind():
    data = varint_field(number("int64"), 1) + len_field(number("string"), b"ab")
    table = decode(as_buffer(data), Plan(ZOO, ["int64", "string", "pick"]))[""]
    with pytest.raises(TypeError):
        table.array("string")
    with pytest.raises(TypeError):
        table.spans("int64")
    with pytest.raises(TypeError):
        table.union("string")
    with pytest.raises(KeyError):
        table.array("nothing")


def test_rows_are_taken_by_number_or_mask():
    spans = Spans(np.array([0, 2, 4]), np.array([1, 2, 3]))
    assert spans.take(np.array([2, 0])).start.tolist() == [4, 0]
    assert spans.take(np.array([False, True, False])).length.tolist() == [2]
    union = decode(
        as_buffer(entries(1) + tag(number("pick_bool"), 0) + b"\x01"), Plan(ZOO, ["pick"])
    )[""].union("pick")
    assert union.take(np.array([0, 0])).bits.tolist() == [1, 1]
