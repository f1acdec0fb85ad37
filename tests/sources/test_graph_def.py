"""Tables of graphs: tiny graphs, exact rows."""

from tests.each_row import each_row

from peakline.formats.graph_def.source import GraphSpan
from peakline.formats.graph_def.tables import GraphTables
from peakline.schema import AttrValue, GraphDef
from peakline.tables.tables import check_columns
from peakline.wire import as_buffer


def tables_of(*graphs):
    """The tables of serialised or other graphs: ``g0``, ``g1``... or the nameless only one."""
    parts = [g if isinstance(g, bytes) else g.SerializeToString() for g in graphs]
    spans, start = [], 0
    for number, part in enumerate(parts):
        name = f"g{number}" if len(parts) > 1 else ""
        spans.append(GraphSpan(name, "graph_def", start, len(part)))
        start += len(part)
    return GraphTables(as_buffer(b"".join(parts)), spans)


def rows(tables, table, *columns):
    """The rows of a table as tuples of ``columns``."""
    found = check_columns(table, tables.read(table)).to_pylist()
    return [tuple(row[column] for column in columns) for row in found]


def graph_with(node=None, function=None):
    """A graph with one node, or one function, given as keyword arguments of the message."""
    graph = GraphDef()
    if node is not None:
        graph.node.add(**node)
    if function is not None:
        graph.library.function.add(**function)
    return graph


_EDGE = ("source", "source_output", "is_control", "source_argument", "input")


@each_row(
    ("text", "edge"),
    [
        ("a", ("a", 0, False, None, None)),
        ("a/b-c>d", ("a/b-c>d", 0, False, None, None)),
        ("a:1", ("a", 1, False, None, None)),
        ("a:2147483647", ("a", 2147483647, False, None, None)),
        ("^a", ("a", -1, True, None, None)),
        # Accepted, but spelled otherwise.
        ("a:0", ("a", 0, False, None, "a:0")),
        ("a:00", ("a", 0, False, None, "a:00")),
        ("a:07", ("a", 7, False, None, "a:07")),
        # Kept whole.
        ("", ("", 0, False, None, "")),
        ("a:", ("a:", 0, False, None, "a:")),
        (":0", (":0", 0, False, None, ":0")),
        ("a:-1", ("a:-1", 0, False, None, "a:-1")),
        ("a:b", ("a:b", 0, False, None, "a:b")),
        ("a:0:0", ("a:0:0", 0, False, None, "a:0:0")),
        ("a:2147483648", ("a:2147483648", 0, False, None, "a:2147483648")),
        ("^", ("^", 0, False, None, "^")),
        ("^a:0", ("^a:0", 0, False, None, "^a:0")),
    ],
)
def test_an_input_outside_functions(text, edge):
    assert rows(tables_of(graph_with({"name": "n", "input": [text]})), "edges", *_EDGE) == [edge]


@each_row(
    ("text", "edge"),
    [
        ("x", ("x", 0, False, None, None)),
        ("x:1", ("x", 1, False, None, None)),
        ("^n", ("n", -1, True, None, None)),
        ("n:out:0", ("n", 0, False, "out", None)),
        ("n:out:12", ("n", 12, False, "out", None)),
        ("x:0", ("x", 0, False, None, "x:0")),
        ("n:out", ("n", 0, False, "out", "n:out")),
        ("n:out:00", ("n", 0, False, "out", "n:out:00")),
        ("n:out:", ("n:out:", 0, False, None, "n:out:")),
        ("n::0", ("n::0", 0, False, None, "n::0")),
        (":out:0", (":out:0", 0, False, None, ":out:0")),
        ("n:out:0:0", ("n:out:0:0", 0, False, None, "n:out:0:0")),
    ],
)
def test_an_input_in_a_function_body(text, edge):
    function = {"signature": {"name": "f"}, "node_def": [{"name": "n", "input": [text]}]}
    tables = tables_of(graph_with(function=function))
    assert rows(tables, "edges", *_EDGE, "function") == [(*edge, "f")]


def test_no_graph_at_all():
    tables = GraphTables(as_buffer(b""), [])
    assert [rows(tables, table, "graph") for table in ("graphs", "nodes", "functions")] == [
        [], [], [],
    ]  # fmt: skip


def shape(*sizes):
    return {"dim": [{"size": size} for size in sizes]}


@each_row(
    ("value", "text", "kind"),
    [
        ({}, "", ""),
        ({"s": b"loc:@a"}, "loc:@a", "s"),
        ({"s": b"a\\\n\x01\xff\xc3\xa9"}, "a\\\\\\n\\x01\\xffé", "s"),
        ({"i": -3}, "-3", "i"),
        ({"f": 0.1}, "0.1", "f"),
        ({"f": 1.0}, "1.0", "f"),
        ({"b": False}, "false", "b"),
        ({"type": 1}, "DT_FLOAT", "type"),
        ({"type": 101}, "DT_FLOAT_REF", "type"),
        ({"type": 7777}, "7777", "type"),
        ({"shape": shape(2, 3)}, "[2,3]", "shape"),
        ({"shape": shape()}, "[]", "shape"),
        ({"shape": shape(-1, 3)}, "[?,3]", "shape"),
        ({"shape": {"dim": [{"size": 2, "name": "batch"}]}}, "[batch=2]", "shape"),
        ({"shape": {"unknown_rank": True}}, "<unknown>", "shape"),
        ({"placeholder": "T"}, "T", "placeholder"),
        ({"func": {"name": "f"}}, "f", "func"),
        ({"func": {"name": "f", "attr": {"b": {"s": b"x"}, "a": {"type": 3}}}},
         'f{a=DT_INT32, b="x"}', "func"),
        ({"list": {}}, "[]", "list"),
        ({"list": {"s": [b'say "hi"', b"b"]}}, '["say \\"hi\\"", "b"]', "list"),
        ({"list": {"i": [1, -2]}}, "[1, -2]", "list"),
        ({"list": {"f": [0.5]}}, "[0.5]", "list"),
        ({"list": {"b": [True, False]}}, "[true, false]", "list"),
        ({"list": {"type": [1, 3]}}, "[DT_FLOAT, DT_INT32]", "list"),
        ({"list": {"shape": [shape(1), {"unknown_rank": True}]}}, "[[1], <unknown>]", "list"),
        ({"list": {"func": [{"name": "g", "attr": {"n": {"list": {"s": [b"y"]}}}}]}},
         '[g{n=["y"]}]', "list"),
        ({"tensor": {"dtype": 1, "tensor_shape": shape(3, 3), "tensor_content": bytes(36)}},
         "DT_FLOAT [3, 3], 36 bytes", "tensor"),
        # One value stands for all elements.
        ({"tensor": {"dtype": 2, "tensor_shape": shape(1000), "double_val": [1.0]}},
         "DT_DOUBLE [1000], 8000 bytes", "tensor"),
        ({"tensor": {"dtype": 3, "int_val": [1]}}, "DT_INT32 [], 4 bytes", "tensor"),
        ({"tensor": {"dtype": 7, "tensor_shape": shape(2), "string_val": [b"ab", b"c"]}},
         "DT_STRING [2], 3 bytes", "tensor"),
        ({"tensor": {"dtype": 20}}, "DT_RESOURCE []", "tensor"),
        ({"tensor": {"dtype": 1, "tensor_shape": shape(2**62, 0)}},
         "DT_FLOAT [4611686018427387904, 0], 0 bytes", "tensor"),
        ({"tensor": {"dtype": 1, "tensor_shape": shape(2**62, 1)}},
         "DT_FLOAT [4611686018427387904, 1]", "tensor"),
        ({"tensor": {"dtype": 1, "tensor_shape": {"unknown_rank": True}}},
         "DT_FLOAT <unknown>", "tensor"),
        ({"list": {"tensor": [{"dtype": 10, "tensor_shape": shape(4)}]}},
         "[DT_BOOL [4], 4 bytes]", "list"),
    ],
)  # fmt: skip
def test_the_text_of_a_value(value, text, kind):
    graph = graph_with({"name": "n", "attr": {"v": AttrValue(**value)}})
    assert rows(tables_of(graph), "node_attrs", "name", "attr", "value", "kind") == [
        ("n", "v", text, kind)
    ]


def test_large_values_are_formatted_as_small_ones_are():
    value = {"dtype": 1, "tensor_shape": shape(1000), "tensor_content": bytes(4000)}
    graph = GraphDef()
    graph.node.add(name="a", attr={"v": AttrValue(tensor=value)})
    graph.node.add(name="b", attr={"v": AttrValue(tensor=value | {"tensor_content": b""})})
    graph.node.add(name="c", attr={"v": AttrValue(s=b"x" * 600)})
    assert rows(tables_of(graph), "node_attrs", "name", "value", "kind") == [
        ("a", "DT_FLOAT [1000], 4000 bytes", "tensor"),
        ("b", "DT_FLOAT [1000], 4000 bytes", "tensor"),
        ("c", "x" * 600, "s"),
    ]


def test_a_shape_of_many_dimensions_takes_no_time():
    value = {"dtype": 1, "tensor_shape": shape(*[2**62] * 100_000)}
    graph = graph_with({"name": "n", "attr": {"v": AttrValue(tensor=value)}})
    ((text,),) = rows(tables_of(graph), "node_attrs", "value")
    assert text == f"DT_FLOAT [{', '.join([str(2**62)] * 100_000)}]"


def test_nesting_that_no_parser_takes_is_cut():
    """A thousand functions in each other, which protobuf's own parser refuses."""
    data = b""
    for _ in range(1000):
        entry = b"\x0a\x01g\x12" + varint(len(data)) + data
        func = b"\x0a\x01f\x12" + varint(len(entry)) + entry
        data = b"\x52" + varint(len(func)) + func
    entry = b"\x0a\x01v\x12" + varint(len(data)) + data
    node = b"\x2a" + varint(len(entry)) + entry
    (text,) = rows(tables_of(b"\x0a" + varint(len(node)) + node), "node_attrs", "value")[0]
    assert text == "f{g=" * 33 + "..." + "}" * 33


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def test_the_last_of_two_entries_with_one_key_counts():
    """Two messages one after the other merge, which is how a map comes by two entries."""
    node = (
        graph_with({"name": "n", "attr": {"a": AttrValue(i=1), "b": AttrValue(i=2)}})
        .node[0]
        .SerializeToString()
    )
    other = graph_with({"attr": {"a": AttrValue(i=3)}}).node[0].SerializeToString()
    graph = GraphDef()
    graph.node.add(name="before", attr={"a": AttrValue(i=0)})
    data = graph.SerializeToString() + b"\x0a" + varint(len(node + other)) + node + other
    assert sorted(rows(tables_of(data), "node_attrs", "name", "attr", "value")) == [
        ("before", "a", "0"), ("n", "a", "3"), ("n", "b", "2"),
    ]  # fmt: skip


def test_a_library_in_two_parts_is_one():
    first = graph_with(function={"signature": {"name": "f"}})
    second = graph_with(function={"signature": {"name": "g"}})
    second.library.gradient.add(function_name="f", gradient_func="g")
    tables = tables_of(first.SerializeToString() + second.SerializeToString())
    assert rows(tables, "functions", "name", "gradient") == [("f", "g"), ("g", None)]
    assert rows(tables, "graphs", "functions") == [(2,)]
