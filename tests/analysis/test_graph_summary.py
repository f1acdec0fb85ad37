"""What graphs hold."""

from tests.analysis.graphs import node, opened
from tests.profile.fake import FakeReader

from peakline.graph.summary import LargestGraph, summarize_graphs
from peakline.tables import Profile

TEXT = (
    node("a", "Const", more='device:"/cpu:0"')
    + node("b", "Neg", "a", "^a")
    + node("c", "Neg", "b")
    + "versions{producer:2474 min_consumer:12 bad_consumers:3 bad_consumers:5} library{function{"
    + 'signature{name:"F" input_arg{name:"x" type:DT_FLOAT}} '
    + node("i", "Abs", "x", field="node_def")
    + "}}"
)


def test_counts(tmp_path):
    with opened(tmp_path, TEXT) as profile:
        assert summarize_graphs(profile).as_json() == {
            "nodes": 3,
            "edges": 3,
            "functions": 1,
            "ops": {"Neg": 2, "Const": 1},
            "producer": 2474,
            "min_consumer": 12,
            "devices": {"": 2, "/cpu:0": 1},
            "function_nodes": 1,
            "function_edges": 1,
            "function_ops": {"Abs": 1},
            "graphs": [
                {
                    "graph": "",
                    "kind": "graph_def",
                    "tags": [],
                    "nodes": 3,
                    "edges": 3,
                    "functions": 1,
                    "producer": 2474,
                    "min_consumer": 12,
                    "bad_consumers": [3, 5],
                }
            ],
        }


def test_what_the_largest_graph_holds(tmp_path):
    with opened(tmp_path, TEXT) as profile:
        assert summarize_graphs(profile).largest == LargestGraph(
            graph="",
            ops={"Neg": 2, "Const": 1},
            devices={"": 2, "/cpu:0": 1},
            function_ops={"Abs": 1},
        )
    nodes = [("a", "X"), ("b", "X"), ("b", "Y"), ("c", "Z"), ("c", "Z")]
    rows = [
        {"node_id": at, "graph": graph, "op": op, "name": str(at), "device": ""}
        for at, (graph, op) in enumerate(nodes)
    ]
    profile = Profile(FakeReader({"nodes": rows}))
    assert summarize_graphs(profile).largest == LargestGraph("b", {"X": 1, "Y": 1}, {"": 2}, {})
    assert summarize_graphs(Profile(FakeReader({}))).largest is None
