"""The graph tool: what it shows of a graph, and what each node cost."""

import json

import pytest
from tests.analysis.graphs import node, opened
from tests.each_row import each_row

import peakline
from peakline.errors import NotFoundError, UsageError

TEXT = (
    node("a", "Const")
    + node("b", "Neg", "a", "^c")
    + node("c", "Split", "a")
    + node("d", "Add", "b", "c:1")
    + "library{function{signature{name:'F' input_arg{name:'x' type:DT_FLOAT}} "
    + node("i", "Abs", "x", field="node_def")
    + node("j", "Neg", "i:y:0", field="node_def")
    + "}}"
)


@pytest.fixture
def graph(tmp_path):
    with opened(tmp_path, TEXT) as profile:
        yield profile


@pytest.fixture(scope="module")
def steps(root):
    path = root / "tests" / "data" / "run_metadata" / "tf1_grpc.pb.gz"
    with peakline.open(str(path)) as profile:
        yield profile


def ask(profile, **parameters):
    return json.loads(profile.tool("graph", **parameters).content)


def names(document):
    return [one["name"] for one in document["nodes"]]


def test_the_whole_graph(graph):
    assert ask(graph) == {
        "nodes": [
            {"graph": "", "name": name, "op": op, "device": "", "cost": None}
            for name, op in (("a", "Const"), ("b", "Neg"), ("c", "Split"), ("d", "Add"))
        ],
        "edges": [
            {"source": source, "target": target, "source_output": output, "target_input": place,
             "is_control": output < 0}
            for source, target, output, place in (
                (0, 1, 0, 0), (2, 1, -1, 1), (0, 2, 0, 0), (1, 3, 0, 0), (2, 3, 1, 1),
            )
        ],
        "nodes_left_out": 0,
        "critical_path": None,
    }  # fmt: skip


@each_row(
    ("parameters", "shown"),
    [
        ({"function": "F"}, ["i", "j"]),
        ({"name": "[ac]"}, ["a", "c"]),
        ({"node": "d", "depth": 0}, ["d"]),
        ({"node": "d"}, ["b", "c", "d"]),
        ({"node": "d", "depth": "2"}, ["a", "b", "c", "d"]),
        ({"node": "d", "name": "b"}, ["b"]),
        ({"max_nodes": 2}, ["a", "b"]),
        ({"graph": ""}, ["a", "b", "c", "d"]),
        ({"name": "nothing"}, []),
    ],
)
def test_parts(graph, parameters, shown):
    assert names(ask(graph, **parameters)) == shown


def test_what_is_left_out_is_counted(graph):
    document = ask(graph, max_nodes=3)
    assert document["nodes_left_out"] == 1
    assert len(document["edges"]) == 3
    assert (
        b"// 1 more nodes were left out" in graph.tool("graph", format="dot", max_nodes=3).content
    )


@each_row(
    ("parameters", "error", "message"),
    [
        ({"graph": "g"}, NotFoundError, "no graph 'g' in .*; there is: \"\""),
        ({"function": "G"}, NotFoundError, "no function 'G'"),
        ({"node": "z"}, NotFoundError, "no node 'z'"),
        ({"node": "i"}, NotFoundError, "no node 'i'"),
        ({"host": "h"}, NotFoundError, "no host 'h'"),
        ({"step": "1"}, NotFoundError, "no step '1' with executions"),
        ({"name": "("}, UsageError, "parameter name: .* missing \\)"),
        ({"depth": -1}, UsageError, "parameter depth"),
        ({"max_nodes": 0}, UsageError, "parameter max_nodes"),
    ],
)
def test_errors(graph, parameters, error, message):
    with pytest.raises(error, match=message):
        graph.tool("graph", **parameters)


def test_dot(graph):
    assert graph.tool("graph", format="dot", node="b").content.decode().splitlines() == [
        "digraph graph_def {", "  node [shape=box, fontname=sans];", r'  n0 [label="a\nConst"];',
        r'  n1 [label="b\nNeg"];', r'  n2 [label="c\nSplit"];', r'  n3 [label="d\nAdd"];',
        "  n0 -> n1;", "  n2 -> n1 [style=dashed];", "  n0 -> n2;", "  n1 -> n3;",
        '  n2 -> n3 [taillabel="1"];', "}",
    ]  # fmt: skip


def test_dot_quotes_names(tmp_path):
    with opened(tmp_path, r'node{name:"a\"]\\\n" op:"Op"}') as profile:
        lines = profile.tool("graph", format="dot").content.decode().splitlines()
    assert lines[2] == r'  n0 [label="a\"]\\\\n\nOp"];'


def test_text_without_executions(graph):
    assert graph.tool("graph", format="text", function="F").content.decode().splitlines() == [
        "2 nodes, 1 edges among them", "", "OP   NAME", "Abs  i", "Neg  j",
    ]  # fmt: skip


def test_costs_of_the_step(steps):
    by_name = {one["name"]: one for one in ask(steps)["nodes"]}
    assert len(by_name) == 52
    assert by_name["MatMul_2"] == {
        "graph": "partition 0",
        "name": "MatMul_2",
        "op": "MatMul",
        "device": "/job:worker/replica:0/task:1/device:CPU:0",
        "cost": {
            "runs": 1, "compute_ps": 134_481_000, "duration_ps": 137_716_000, "accelerator_ps": 0,
            "allocated_bytes": 65536, "output_bytes": 65536, "flops": None, "bytes_accessed": None,
        },
    }  # fmt: skip
    assert by_name["w0/read_S3"]["cost"] is None


def test_costs_add_up_to_what_was_recorded(root):
    path = root / "tests" / "data" / "run_metadata" / "tf1_control_flow_4.pb.gz"
    with peakline.open(str(path)) as profile:
        costs = [one["cost"] for one in ask(profile)["nodes"] if one["cost"]]
        (total,) = profile.sql(
            "select count(*) runs, sum(compute_ps)::bigint compute_ps from op_runs "
            "join (select distinct name from nodes) using (name)"
        ).to_pylist()
    assert sum(cost["runs"] for cost in costs) == total["runs"] > 1000
    assert sum(cost["compute_ps"] for cost in costs) == total["compute_ps"]


def test_the_limit_keeps_what_took_longest(steps):
    document = ask(steps, max_nodes=2)
    assert names(document) == ["x1/RandomStandardNormal", "gradients/MatMul_2_grad/MatMul_1"]
    assert document["nodes_left_out"] == 50


def test_the_critical_path_is_part_of_every_format(steps):
    path = ask(steps)["critical_path"]
    assert path["end_ps"] - path["start_ps"] == path["busy_ps"] + path["wait_ps"] == 1_534_229_000
    assert [one["name"] for one in path["pieces"]][-3:] == [
        "gradients/AddN_1",
        "GradientDescent/update_w0/ApplyGradientDescent",
        "GradientDescent",
    ]
    text = steps.tool("graph", format="text").content.decode()
    assert (
        "critical path of step 0: 1.534 ms, 0.846 ms (55.1%) of it busy, 0.688 ms waiting" in text
    )
    dot = steps.tool("graph", format="dot", node="MatMul_2", depth=0).content.decode()
    assert r'[label="MatMul_2\nMatMul\n134.48 us in one run", color=red, penwidth=2];' in dot


def test_a_profile_without_graph_and_executions(sessions):
    with peakline.open(str(sessions / "tf2_cnn")) as profile:
        assert ask(profile) == {
            "nodes": [],
            "edges": [],
            "nodes_left_out": 0,
            "critical_path": None,
        }
        assert [tuple(warning) for warning in profile.warnings] == [
            ("no_graph", 1, "no graph and no executions in this profile")
        ]
        assert profile.tool("graph", format="text").content == b"no nodes\n"
        assert profile.tool("graph", format="dot").content == (
            b"digraph graph_def {\n  node [shape=box, fontname=sans];\n}\n"
        )
        for name in ("graph", "function", "node", "step"):
            with pytest.raises(NotFoundError, match="no "):
                profile.tool("graph", **{name: "x"})
