"""Tables of graphs: one graph per question, damage, and the slow reference."""

import gzip
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.formats.graph_reference import random_graph
from tests.formats.graph_reference import tables_of as tables_of_of_graph_def_reference

import peakline
from peakline import schema
from peakline.errors import DamagedError, StrictError
from peakline.formats.graph_def.source import GraphSpan
from peakline.formats.graph_def.tables import GRAPH_TABLES, GraphTables
from peakline.schema import AttrValue, GraphDef, MetaGraphDef, SavedModel
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
    result = check_columns(table, tables.read(table)).to_pylist()
    return [tuple(row[column] for column in columns) for row in result]


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


@pytest.fixture
def opened(tmp_path):
    """Open bytes as a file; every profile is closed in the end."""
    profiles = []

    def open_bytes(data, **options):
        path = tmp_path / f"graph{len(profiles)}.pb"
        path.write_bytes(data)
        profiles.append(peakline.open(str(path), **options))
        return profiles[-1]

    yield open_bytes
    for profile in profiles:
        profile.close()


def graph_of(nodes, functions=0):
    """A graph of ``nodes`` nodes ``n0``, ``n1``... in a chain, and of functions ``f0``..."""
    graph = GraphDef()
    graph.versions.producer = 2474
    for number in range(nodes):
        node = graph.node.add(name=f"n{number}", op="Identity")
        node.attr["T"].type = 1
        if number:
            node.input.append(f"n{number - 1}")
    for number in range(functions):
        graph.library.function.add().signature.name = f"f{number}"
    return graph


def meta_graph_of(nodes):
    """A meta graph with the fields that TensorFlow always writes first."""
    meta = MetaGraphDef(graph_def=graph_of(nodes))
    meta.meta_info_def.tags.append("serve")
    meta.meta_info_def.tensorflow_version = "2.21.0"
    meta.meta_info_def.stripped_op_list.op.add(name="Identity")
    return meta


def names(profile, table="nodes"):
    return profile.columns(table).names("name").to_list()


def test_a_graph_def_file(opened):
    profile = opened(graph_of(3, 1).SerializeToString())
    assert profile.format == "graph_def"
    assert set(profile.tables) == {*GRAPH_TABLES, "warnings"}
    assert names(profile) == ["n0", "n1", "n2"]
    assert profile.duration_ps == 0
    assert profile.host == ""
    assert profile.warnings == []


def test_a_meta_graph_file(opened):
    meta = MetaGraphDef(graph_def=graph_of(2))
    meta.meta_info_def.tags.extend(["serve", "gpu"])
    meta.meta_info_def.tensorflow_version = "2.21.0"
    profile = opened(meta.SerializeToString())
    assert profile.format == "meta_graph"
    assert profile.sql("select graph, kind, tags, nodes from graphs").to_pylist() == [
        {"graph": "", "kind": "meta_graph", "tags": "serve,gpu", "nodes": 2}
    ]
    assert names(profile) == ["n0", "n1"]


def test_a_saved_model_of_two_meta_graphs(opened):
    saved = SavedModel(saved_model_schema_version=1)
    for nodes, tag in ((1, "train"), (2, "serve")):
        saved.meta_graphs.add(graph_def=graph_of(nodes)).meta_info_def.tags.append(tag)
    profile = opened(saved.SerializeToString())
    assert profile.format == "saved_model"
    assert profile.sql("select graph, tags, nodes from graphs").to_pylist() == [
        {"graph": "meta_graph 0", "tags": "train", "nodes": 1},
        {"graph": "meta_graph 1", "tags": "serve", "nodes": 2},
    ]
    assert profile.sql("select graph, name from nodes").to_pylist() == [
        {"graph": "meta_graph 0", "name": "n0"},
        {"graph": "meta_graph 1", "name": "n0"},
        {"graph": "meta_graph 1", "name": "n1"},
    ]


def test_a_saved_model_of_one_meta_graph_needs_no_name(root):
    path = root / "tests" / "data" / "graph_def" / "saved_model.pb.gz"
    with peakline.open(str(path)) as profile:
        assert profile.sql(
            "select graph, tags, producer, nodes, functions from graphs"
        ).to_pylist() == [
            {"graph": "", "tags": "serve", "producer": 2474, "nodes": 431, "functions": 1}
        ]
        query = "select count(*) as n from edges where source like '%/NextIteration'"
        assert profile.sql(query).to_pylist() == [{"n": 5}]


def test_a_cut_graph_keeps_what_is_whole(opened):
    data = graph_of(10).SerializeToString()
    profile = opened(data[: len(data) // 2])
    result = names(profile)
    assert result == [f"n{number}" for number in range(len(result))]
    assert 3 <= len(result) <= 7
    assert [(w.kind, w.count) for w in profile.warnings] == [("truncated", 1)]
    for table in GRAPH_TABLES:
        profile.columns(table)
    assert [(w.kind, w.count) for w in profile.warnings] == [("truncated", 1)]


def test_a_cut_library_keeps_its_whole_functions(opened):
    graph = graph_of(1)
    for number in range(3):
        function = graph.library.function.add()
        function.signature.name = f"f{number}"
        function.node_def.add(name="inner", op="Add")
    data = graph.SerializeToString()
    # The versions stand behind the library.
    profile = opened(data[: data.index(b"f2") + 4])
    assert names(profile, "functions")[:2] == ["f0", "f1"]
    assert [(w.kind, w.count) for w in profile.warnings] == [("truncated", 1)]


@each_row("carrier", ["meta_graph", "saved_model"])
def test_a_cut_carrier_keeps_whole_nodes(opened, carrier):
    whole = meta = meta_graph_of(50)
    if carrier == "saved_model":
        whole = SavedModel(saved_model_schema_version=1, meta_graphs=[meta])
    data = whole.SerializeToString()
    profile = opened(data[: data.index(b"n41")])
    assert profile.format == carrier
    assert names(profile) == [f"n{number}" for number in range(41)]
    assert [(w.kind, w.count) for w in profile.warnings] == [("truncated", 1)]


def test_a_cut_between_two_nodes_of_a_meta_graph_is_told(opened):
    data = meta_graph_of(50).SerializeToString()
    end = data.index(b"n41") - 4
    assert data[end] == 0x0A
    profile = opened(data[:end])
    assert len(names(profile)) == 41
    assert [(w.kind, w.count) for w in profile.warnings] == [("truncated", 1)]


def test_a_broken_node_is_lost_alone(opened):
    data = bytearray(graph_of(10).SerializeToString())
    # A tag of wire type 7 inside the fourth node.
    data[data.index(b"n3") + 2] = 0x17
    profile = opened(bytes(data))
    assert names(profile) == [f"n{number}" for number in range(10) if number != 3]
    assert [(w.kind, w.count) for w in profile.warnings] == [("damaged", 1)]
    profile.columns("edges")
    assert [(w.kind, w.count) for w in profile.warnings] == [("damaged", 1)]
    with pytest.raises(StrictError, match="damaged"):
        names(opened(bytes(data), strict=True))


def test_a_broken_value_is_told_where_it_lies(opened):
    graph = graph_of(2)
    graph.node[1].attr["s"].s = b"string"
    data = bytearray(graph.SerializeToString())
    at = data.index(b"\x12\x06string")
    data[at + 1] = 0x7F
    profile = opened(bytes(data))
    assert profile.sql("select value from node_attrs where attr = 's'").to_pylist() == [
        {"value": ""}
    ]
    assert [(w.kind, w.count) for w in profile.warnings] == [("damaged", 1)]
    assert f"first at offset {at};" in profile.warnings[0].detail


def test_nothing_whole_is_an_error(opened):
    data = graph_of(1).SerializeToString()
    with pytest.raises(DamagedError, match="nothing whole is left"):
        opened(data[:10])


def test_a_file_without_nodes_says_so(opened):
    profile = opened(meta_graph_of(0).SerializeToString())
    assert names(profile) == []
    assert [(w.kind, w.count) for w in profile.warnings] == [("no_content", 1)]


def mutated(rng, data):
    """Some bytes replaced, removed, doubled, or the end cut off."""
    data = bytearray(data)
    for _ in range(rng.randrange(1, 6)):
        at, size = rng.randrange(len(data) + 1), rng.randrange(1, 9)
        data[at : at + rng.choice((0, size))] = rng.choice(
            (b"", rng.randbytes(size), b"\xff" * size, bytes(data[at : at + size]))
        )
    return bytes(data[: rng.randrange(len(data) + 1)] if rng.random() < 0.3 else data)


def test_no_bytes_crash_a_table(root):
    """Spans of any place and any bytes give tables that fit their definition."""
    rng = Random(0)
    frozen = (root / "tests" / "data" / "graph_def" / "frozen.pb").read_bytes()[-3000:]
    for round_ in range(150):
        data = mutated(rng, (frozen if round_ % 5 == 0 else random_graph(rng).SerializeToString()))
        start = rng.randrange(len(data) + 1) if rng.random() < 0.2 else 0
        tables = GraphTables(
            as_buffer(data), [GraphSpan("", "graph_def", start, len(data) - start)] * 2
        )
        for table in GRAPH_TABLES:
            check_columns(table, tables.read(table)).to_pylist()


_FILE_ORDER = ("graphs", "nodes", "edges", "functions", "function_arguments")
"""Tables without rows from maps, whose entries have no order."""


def check(graphs, gap=b""):
    """Compare all tables of ``(name, kind, tags, GraphDef)`` graphs laid out in one buffer."""
    buffer, spans = bytearray(gap), []
    for name, kind, tags, graph in graphs:
        data = graph.SerializeToString()
        spans.append(GraphSpan(name, kind, len(buffer), len(data), tags))
        buffer += data + gap
    tables = GraphTables(as_buffer(bytes(buffer)), spans)
    expected = tables_of_of_graph_def_reference(graphs)
    assert set(expected) == GRAPH_TABLES
    for table, rows in expected.items():
        result = check_columns(table, tables.read(table)).to_pylist()
        if table not in _FILE_ORDER:
            result.sort(key=repr)
            rows.sort(key=repr)
        assert result == rows, table
    assert tables.damage == Damage()


@settings(max_examples=150)
@given(st.integers(0, 2**32))
def test_any_graph(seed):
    check([("", "graph_def", "", random_graph(Random(seed)))])


@settings(max_examples=50)
@given(st.integers(0, 2**32))
def test_several_graphs_of_one_buffer(seed):
    rng = Random(seed)
    graphs = [
        (f"partition {n}", "partition", "", random_graph(rng)) for n in range(rng.randrange(4))
    ]
    check(graphs, gap=b"\x07\xff" * rng.randrange(2))


@each_row("name", ["frozen.pb", "saved_model.pb.gz"])
def test_graphs_that_tensorflow_wrote(root, name):
    data = (root / "tests" / "data" / "graph_def" / name).read_bytes()
    if name.endswith(".gz"):
        saved = schema.SavedModel.FromString(gzip.decompress(data))
        graphs = [("", "meta_graph", "serve", meta.graph_def) for meta in saved.meta_graphs]
    else:
        graphs = [("", "graph_def", "", schema.GraphDef.FromString(data))]
    check(graphs)
