"""What graphs hold, and device specifications as TensorFlow 2.21 reads them (tried with
import_graph_def and a run).
"""

from tests.analysis.graphs import node, opened
from tests.each_row import each_row
from tests.profile.fake import FakeReader

from peakline.graph.rules_devices import device_problem
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
                    "nodes": 3, "edges": 3, "functions": 1, "producer": 2474, "min_consumer": 12,
                    "bad_consumers": [3, 5],
                }
            ],
        }  # fmt: skip


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


GOOD = [
    "", "/", "/cpu:0", "/CPU:0", "/gpu:*", "/cpu", "cpu:0", "gpu:0", "/tpu:1", "/custom:0",
    "/device:CPU:0", "/device:CPU:*", "/device:*:*", "/device:*:0", "/device:XLA_CPU_JIT:0",
    "/job:localhost/replica:0/task:0/device:CPU:0", "/job:*", "/job:a_1", "/job:a/job:b",
    "//cpu:0", "/cpu:0/", "/:", "/:x:y", "/task:01", "/cpu: 0", "/replica:+1", "/cpu:99999999999",
]  # fmt: skip
BAD = [
    "@node", "junk", "/junk:0", "/device:CPU", "/device:*", "/device:CPU:0:1", "/device:", "/job",
    "/task:*", "/replica:*", "/task:x", "/cpu:", "/cpu:a", "/cpu:0/gpu:1", "/cpu:0:1",
    "/device:GPU:0/stream:all", " /cpu:0", "/xla_cpu:0", "/partition:0", "/job:a:b",
]  # fmt: skip
NOWHERE = ["/job:w-x", "/job:1a", "/job:", "/job:a*", "/replica:-1", "/device:a-b:0", "/device::0"]


@each_row("device", GOOD)
def test_good(device):
    assert device_problem(device) is None


@each_row("device", BAD)
def test_refused_by_import(device):
    problem = device_problem(device)
    assert problem is not None
    assert problem.is_error is True
    assert repr(device) in problem.message


@each_row("device", NOWHERE)
def test_imported_but_never_placed(device):
    problem = device_problem(device)
    assert problem is not None
    assert problem.is_error is False
