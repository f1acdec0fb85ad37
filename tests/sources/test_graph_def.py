"""Tables of graphs: tiny graphs, exact rows."""

from tests.each_row import each_row

from peakline.formats.graph_def.source import GraphSpan
from peakline.formats.graph_def.tables import GraphTables
from peakline.schema import AttrValue, GraphDef
from peakline.tables.tables import check_columns
from peakline.wire import Damage, as_buffer


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


def test_inputs_are_numbered_by_node():
    graph = GraphDef()
    graph.node.add(name="a", input=["x", "y"])
    graph.node.add(name="b")
    graph.node.add(name="c", input=["a", "b:1", "^a"])
    assert rows(tables_of(graph), "edges", "source", "target", "target_input") == [
        ("x", "a", 0), ("y", "a", 1), ("a", "c", 0), ("b", "c", 1), ("a", "c", 2),
    ]  # fmt: skip


def test_nodes_come_graph_by_graph_and_functions_last():
    first = graph_with({"name": "a", "op": "Add"}, {"signature": {"name": "f"},
                                                    "node_def": [{"name": "inner"}]})  # fmt: skip
    second = graph_with({"name": "b", "device": "/cpu:0"})
    assert rows(tables_of(first, second), "nodes", "graph", "name", "op", "device", "function") == [
        ("g0", "a", "Add", "", None),
        ("g0", "inner", "", "", "f"),
        ("g1", "b", "", "/cpu:0", None),
    ]


def test_a_graph_without_nodes():
    tables = tables_of(GraphDef())
    assert rows(tables, "graphs", "graph", "kind", "nodes") == [("", "graph_def", 0)]
    assert rows(tables, "nodes", "name") == []
    assert rows(tables, "node_attrs", "name") == []


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


def test_functions_within_functions_end_somewhere():
    value = AttrValue()
    inner = value
    for _ in range(30):
        inner.func.name = "f"
        inner = inner.func.attr["g"]
    inner.i = 1
    graph = graph_with({"name": "n", "attr": {"v": value}})
    expected = "f{g=" * 30 + "1" + "}" * 30
    assert rows(tables_of(graph), "node_attrs", "value") == [(expected,)]


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


def test_gradients_belong_to_their_graph():
    graphs = [graph_with(function={"signature": {"name": "f"}}) for _ in range(2)]
    graphs[0].library.gradient.add(function_name="f", gradient_func="df")
    graphs[1].library.registered_gradients.add(gradient_func="f", registered_op_type="Relu")
    graphs[1].library.registered_gradients.add(gradient_func="f", registered_op_type="Elu")
    assert rows(tables_of(*graphs), "functions", "graph", "gradient", "gradient_of") == [
        ("g0", "df", None), ("g1", None, "Relu,Elu"),
    ]  # fmt: skip


def test_the_rest_of_a_signature_is_text():
    signature = {
        "name": "f", "description": "adds", "is_stateful": True, "is_commutative": True,
        "attr": [{"name": "T", "type": "type", "default_value": {"type": 1}}],
    }  # fmt: skip
    text = 'attr { name: "T" type: "type" default_value { type: DT_FLOAT } } is_commutative: true'
    tables = tables_of(graph_with(function={"signature": signature}))
    assert rows(tables, "functions", "description", "is_stateful", "signature") == [
        ("adds", True, text)
    ]


def test_arguments_and_where_results_come_from():
    function = {
        "signature": {
            "name": "f",
            "input_arg": [
                {"name": "x", "type": 20, "handle_data": [{"dtype": 1}], "description": "state"},
                {"name": "y", "type_attr": "T", "number_attr": "N", "is_ref": True},
            ],
            "output_arg": [{"name": "z", "type_list_attr": "L"}, {"name": "lost", "type": 1}],
            "control_output": ["done"],
        },
        "ret": {"z": "n:out:0", "done": "wrong map"},
        "control_ret": {"done": "n"},
    }
    tables = tables_of(graph_with(function=function))
    columns = ("role", "position", "name", "data_type", "source")
    assert rows(tables, "function_arguments", *columns) == [
        ("input", 0, "x", "DT_RESOURCE", None),
        ("input", 1, "y", None, None),
        ("output", 0, "z", None, "n:out:0"),
        ("output", 1, "lost", "DT_FLOAT", None),
        ("control_output", 0, "done", None, "n"),
    ]
    columns = ("name", "type_attr", "number_attr", "type_list_attr", "is_ref", "handle")
    assert rows(tables, "function_arguments", *columns)[:3] == [
        ("x", None, None, None, False, "handle_data { dtype: DT_FLOAT }"),
        ("y", "T", "N", None, True, None),
        ("z", None, None, "L", False, None),
    ]


def test_attributes_of_functions_and_of_their_arguments():
    function = {
        "signature": {"name": "f"},
        "attr": {"noinline": AttrValue(b=True)},
        "arg_attr": {1: {"attr": {"_user": AttrValue(s=b"u")}}, 4_000_000_000: {}},
        "resource_arg_unique_id": {1: 7, 2: 8},
    }
    tables = tables_of(graph_with(function=function))
    assert rows(tables, "function_attrs", "argument", "attr", "value", "unique_id") == [
        (None, "noinline", "true", None),
        (1, "_user", "u", 7),
        (2, "", "", 8),
    ]


def test_what_a_node_was_made_from():
    node = {
        "name": "fused",
        "experimental_debug_info": {
            "original_node_names": ["a", "b"], "original_func_names": ["f"],
        },
        "experimental_type": {"type_id": 1000, "args": [{"type_id": 210}]},
    }  # fmt: skip
    graph = graph_with(node)
    graph.node.add(name="plain")
    columns = ("name", "original_nodes", "original_functions", "full_type")
    assert rows(tables_of(graph), "nodes", *columns) == [
        ("fused", "a,b", "f", "type_id: TFT_TENSOR args { type_id: TFT_FLOAT }"),
        ("plain", None, None, None),
    ]


_FRAME = ("node", "depth", "file", "line", "column", "function", "code")


def test_inline_frames_are_in_the_order_of_the_file():
    graph = GraphDef()
    graph.debug_info.files.extend(["a.py", "b.py"])
    trace = graph.debug_info.traces["n@f"]
    trace.file_line_cols.add(file_index=1, line=10, col=2, func="inner", code="x = 1")
    trace.file_line_cols.add(file_index=0, line=20, func="outer")
    assert rows(tables_of(graph), "node_frames", *_FRAME) == [
        ("n@f", 0, "b.py", 10, 2, "inner", "x = 1"),
        ("n@f", 1, "a.py", 20, 0, "outer", ""),
    ]


def test_frames_by_id_are_written_outermost_first():
    graph = GraphDef()
    info = graph.debug_info
    info.files.append("a.py")
    info.frames_by_id[2**64 - 1].line = 1
    info.frames_by_id[5].line = 2
    info.traces_by_id[9].frame_id.extend([2**64 - 1, 5])
    info.name_to_trace_id["n"] = info.name_to_trace_id["m"] = 9
    info.name_to_trace_id["nowhere"] = 10
    found = sorted(rows(tables_of(graph), "node_frames", "node", "depth", "line", "file"))
    assert found == [
        ("m", 0, 2, "a.py"), ("m", 1, 1, "a.py"), ("n", 0, 2, "a.py"), ("n", 1, 1, "a.py"),
    ]  # fmt: skip


def test_a_trace_by_name_wins_and_missing_files_and_frames_are_empty():
    graph = GraphDef()
    info = graph.debug_info
    info.traces["n"].file_line_cols.add(file_index=3, line=7)
    info.traces_by_id[1].frame_id.append(77)
    info.name_to_trace_id["n"] = info.name_to_trace_id["m"] = 1
    assert rows(tables_of(graph), "node_frames", "node", "depth", "line", "file") == [
        ("n", 0, 7, ""), ("m", 0, 0, ""),
    ]  # fmt: skip


def test_versions_of_a_graph():
    graph = GraphDef(version=7)
    graph.versions.producer, graph.versions.min_consumer = 2474, 12
    graph.versions.bad_consumers.extend([21, 22])
    columns = ("producer", "min_consumer", "bad_consumers", "version")
    tables = tables_of(graph, GraphDef())
    assert rows(tables, "graphs", *columns) == [(2474, 12, "21,22", 7), (0, 0, "", 0)]
    assert tables.damage == Damage()
