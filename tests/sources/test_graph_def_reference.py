"""Any graph: the tables are those that protobuf's own message objects give."""

import gzip
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.each_row import each_row
from tests.sources.graph_random import random_graph
from tests.sources.graph_reference import tables_of

from peakline import schema
from peakline.formats.graph_def.source import GraphSpan
from peakline.formats.graph_def.tables import GRAPH_TABLES, GraphTables
from peakline.tables.tables import check_columns
from peakline.wire import Damage, as_buffer

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
    expected = tables_of(graphs)
    assert set(expected) == GRAPH_TABLES
    for table, rows in expected.items():
        found = check_columns(table, tables.read(table)).to_pylist()
        if table not in _FILE_ORDER:
            found.sort(key=repr)
            rows.sort(key=repr)
        assert found == rows, table
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
