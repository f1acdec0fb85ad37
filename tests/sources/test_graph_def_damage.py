"""Graph files as a user meets them: carriers, cut and broken files."""

from random import Random

import pytest
from tests.each_row import each_row
from tests.sources.graph_random import random_graph

import peakline
from peakline.errors import DamagedError, StrictError
from peakline.formats.graph_def.source import GraphSpan
from peakline.formats.graph_def.tables import GRAPH_TABLES, GraphTables
from peakline.schema import GraphDef, MetaGraphDef, SavedModel
from peakline.tables.tables import check_columns
from peakline.wire import as_buffer


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
    found = names(profile)
    assert found == [f"n{number}" for number in range(len(found))]
    assert 3 <= len(found) <= 7
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
