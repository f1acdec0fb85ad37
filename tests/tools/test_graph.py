"""The tools of graphs: neighbours and paths."""

import json
import re

import numpy as np
import pytest
from tests.each_row import each_row
from tests.graph.graphs import node, opened
from tests.shared import DATA, shared
from tests.tools.scopes import ask as ask_of_graph_paths

import peakline
from peakline.errors import NotFoundError, UsageError
from peakline.graph.index import Strings
from peakline.graph.scopes.paths import DEEPEST, split_paths, stems_of
from peakline.schema import GraphDef, HloProto
from peakline.tables.columns import Names
from peakline.tools import run_tool
from peakline.wire import Interner, utf8_of

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


NAMES = [
    "", "/", "//", "a", "a/", "/a", "a//b", "a/b/c_1", "a/b/c_2", "a/b/c_2_3", "a/b/c.1-2", "_1",
    "1", "12/3", "1/23", "a_1_", "a#/b#_1", "a_#", "a__1", "x1y22_3", "ä/ö/ü_12", "日本/語_1",
    "a\n/b_1\n", "٣/x_٣", "a/b/c_1_2_3_4", "a/b:0", "/".join("p1" for _ in range(DEEPEST)),
    "/".join(f"p_{n}" for n in range(DEEPEST + 9)), "", "a/b/c_1",
]  # fmt: skip


def numbered(texts):
    """Numbers in order of first appearance."""
    numbers = {}
    return [numbers.setdefault(text, len(numbers)) for text in texts]


def plain_stem(text):
    bare = re.sub(r"(?:[._-][0-9]+)+\Z", "", text)
    return re.sub(r"[0-9]+", "#", bare)


def interned(texts):
    strings = Interner()
    for text in texts:
        strings.add_bytes(text)
    return strings.texts()


@pytest.mark.parametrize(
    "texts",
    [
        [],
        [""],
        NAMES,
        [name for name in NAMES if name.isascii()],
        interned(name.encode() for name in NAMES),
        interned(name.encode() for name in NAMES if name.isascii()),
        # Each is no UTF-8, both together would be.
        interned([b"a/\xc3", b"\xa4/b_1", b"c"]),
    ],
    ids=["none", "empty", "all", "ascii", "interned", "interned-ascii", "undecodable"],
)
def test_texts_are_split_and_numbered_as_python_does(texts):
    paths = split_paths(texts)
    parts = [text.split("/", DEEPEST - 1) for text in texts]
    assert paths.counts.tolist() == [len(one) for one in parts]
    flat = [part for one in parts for part in one]
    assert paths.codes.tolist() == numbered(flat)
    distinct = list(dict.fromkeys(flat))
    assert list(paths.parts) == distinct
    assert paths.stems.tolist() == numbered(map(plain_stem, distinct))
    assert [paths.text(row, 0) for row in range(len(texts))] == list(texts)
    data, spans = utf8_of(texts)
    assert spans.texts(data) == list(texts)


def test_stems_of_rows_are_numbered_in_the_order_of_the_rows():
    values = list(dict.fromkeys(NAMES))
    codes = np.array([5, -1, 9, 7, 8, 0, 5, *range(len(values))], np.int32)
    texts = ["" if code < 0 else values[code] for code in codes.tolist()]
    for held in (values, interned(value.encode() for value in values)):
        assert stems_of(Names(codes, held)).tolist() == numbered(map(plain_stem, texts))


def test_a_null_column_has_the_stem_of_the_empty_text():
    assert stems_of(Names.constant(None, 3)).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "columns",
    [
        [[""], ["a", "b", "c"], ["b", "d"]],
        [[""], ["a", "", "c"]],
        [["a", "a", "b"], ["b", "c", "d", "e"]],
        [[], ["a"], ["b", "b"], ["c", "d", "e", "f"]],
    ],
)
def test_strings_of_several_columns_have_one_numbering(columns):
    strings, whole = Strings(), []
    for values in columns:
        codes = strings.codes(Names(np.array([*range(len(values)), -1], np.int32), values))
        whole += values
        assert [strings.values[code] for code in codes[:-1].tolist()] == values
        assert codes[-1] == -1
        assert strings.values == list(dict.fromkeys(whole))
    assert all(strings.code(text) == strings.values.index(text) for text in whole)
    assert strings.code("no such") == -2


def written(tmp_path, graph):
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.SerializeToString())
    return path


def test_nodes_of_odd_names_stand_in_scopes_and_their_edges_lead_to_them(tmp_path):
    names = [name for name in dict.fromkeys(NAMES) if name]
    graph = GraphDef()
    for place, name in enumerate(names):
        inputs = names[max(place - 2, 0) : place]
        # What only orders comes last.
        graph.node.add(
            name=name, op="NoOp",
            input=[*inputs[:1], *(f"^{one}" for one in inputs[1:] if ":" not in one)],
        )  # fmt: skip
    with peakline.open(written(tmp_path, graph)) as profile:
        edges = profile.table("edges").to_pylist()
        result = ask_of_graph_paths(profile, opened="none")
        for name in names[:8]:
            assert name in [
                row["name"]
                for row in ask_of_graph_paths(profile, view="search", search=name)["rows"]
            ]
    assert sum(result["items"]["nodes"]) == len(names)
    expected = [
        (text.removeprefix("^").removesuffix(":0"), node.name, text.startswith("^"))
        for node in graph.node for text in node.input
    ]  # fmt: skip
    assert [(one["source"], one["target"], one["is_control"]) for one in edges] == expected


def test_whether_there_are_nodes_needs_no_decoding(tmp_path):
    graph = GraphDef()
    graph.node.add(name="a", op="NoOp")
    inner = graph.library.function.add()
    inner.signature.name = "f"
    only = GraphDef(library=graph.library)
    for one, has in ((graph, True), (only, False)):
        with peakline.open(written(tmp_path, one)) as profile:
            assert profile.has_rows("nodes") is has
            assert profile.has_rows("functions")
            assert bool(profile.table("nodes").num_rows) is has


def test_a_function_with_nodes_is_enough_for_a_table_of_nodes(tmp_path):
    graph = GraphDef()
    inner = graph.library.function.add()
    inner.signature.name = "f"
    inner.node_def.add(name="a", op="NoOp")
    with peakline.open(written(tmp_path, graph)) as profile:
        assert profile.has_rows("nodes")


TOOL = "graph_viewer"
CAPTURED = next((DATA / "sessions" / "jax_captured").rglob("*.xplane.pb*"))


def ask_of_graph_viewer(chosen=None, **parameters):
    return run_tool(shared(CAPTURED), TOOL, {"module_name": "jit_f", **parameters}, chosen)


def graph_of_graph_viewer(**parameters):
    return json.loads(ask_of_graph_viewer(**parameters).content)


def test_the_neighbourhood_of_a_fusion():
    result = graph_of_graph_viewer(node_name="add_add_fusion", graph_width="1")
    names = [node["name"] for node in result["nodes"]]
    assert (result["module"], result["program_id"], result["left_out"]) == ("jit_f(8)", "8", 0)
    # Its operands, the root of what it calls, and nothing else.
    assert sorted(names) == ["add_add_fusion", "add_any.14", "dot", "dot.1", "dot.2", "dot.3"]
    kinds = {(edge["from"], edge["to"]): edge["kind"] for edge in result["edges"]}
    assert kinds["add_any.14", "add_add_fusion"] == "result"
    assert kinds["dot.3", "add_add_fusion"] == "operand"
    root = next(node for node in result["nodes"] if node["name"] == "add_any.14")
    assert root["computation"] == "fused_computation.7"
    assert root["shape"] == "f32[512,512]{1,0}"
    assert root["source"].endswith("jaxsrv.py:5")
    assert root["op_name"] == "jit(f)/transpose(jvp(jit(f)))/add_any"
    # One addition of 512 x 512 numbers, which reads two and writes one array of 1 MiB.
    assert (root["flops"], root["bytes_accessed"]) == (262144.0, 3 * 2**20)


def test_a_graph_leads_into_fusions_and_out_of_them():
    inner = graph_of_graph_viewer(node_name="add_any.14", graph_width="2")
    assert {"add_add_fusion", "dot.1"} <= {node["name"] for node in inner["nodes"]} or any(
        edge["kind"] == "result" for edge in inner["edges"]
    )
    parameter = graph_of_graph_viewer(node_name="param_0.6", graph_width="1")
    assert ("x.1", "param_0.6", "argument") in [
        (edge["from"], edge["to"], edge["kind"]) for edge in parameter["edges"]
    ]


def test_width_zero_is_the_node_alone():
    result = graph_of_graph_viewer(node_name="%add_add_fusion", graph_width="0")
    assert [node["name"] for node in result["nodes"]] == ["add_add_fusion"]
    assert result["edges"] == []


def test_a_computation_and_the_whole_program():
    inside = graph_of_graph_viewer(node_name="fused_computation.7")
    assert {node["computation"] for node in inside["nodes"]} == {"fused_computation.7"}
    whole = graph_of_graph_viewer(type="json")
    message = HloProto.FromString(ask_of_graph_viewer(type="pb").content).hlo_module
    assert [node["name"] for node in whole["nodes"]] == [
        made.name for one in message.computations for made in one.instructions
    ]
    operands = sum(
        len(made.operand_ids) for one in message.computations for made in one.instructions
    )
    assert sum(edge["kind"] == "operand" for edge in whole["edges"]) == operands


def test_the_names_beside_a_node():
    result = graph_of_graph_viewer(type="adj_nodes", node_name="add_add_fusion")
    assert result == {"operand_names": ["dot.3", "dot.2", "dot", "dot.1"], "consumer_names": []}


@each_row(
    ("kind", "written", "begin"),
    [
        ("short_txt", "text", b"HloModule jit_f, is_scheduled=true"),
        ("long_txt", "text", b"HloModule jit_f, is_scheduled=true"),
        ("pbtxt", "text", b'hlo_module {\n  name: "jit_f"\n'),
        ("pb", "proto", b"\n"),
        ("adj_nodes", "json", b"{"),
    ],
)
def test_the_type_decides_the_format(kind, written, begin):
    answer = ask_of_graph_viewer(type=kind, node_name="add_add_fusion")
    assert answer.format == written
    assert answer.content.startswith(begin)


def test_a_drawing_holds_no_address_and_merges_fusions():
    drawn = ask_of_graph_viewer("dot", node_name="add_add_fusion", graph_width="1").content.decode()
    assert "fused_computation.7" in drawn
    assert "http" not in drawn
    merged = ask_of_graph_viewer(
        "dot", node_name="add_add_fusion", merge_fusion="true"
    ).content.decode()
    assert "fused_computation.7" not in merged
    assert "add_add_fusion" in merged


@each_row(
    ("parameters", "error", "words"),
    [
        ({"module_name": "jit"}, NotFoundError, "no program 'jit'.* there is: .*jit_f"),
        ({"module_name": "jit_multiply"}, UsageError, r"jit_multiply\(6\), jit_multiply\(10\)"),
        ({"node_name": "ADD_ADD_FUSION"}, NotFoundError, "no instruction and no computation"),
        ({}, UsageError, "say node_name"),
        ({"type": "adj_nodes"}, UsageError, "say node_name"),
        ({"type": "custom_call", "node_name": "dot"}, UsageError, "no custom call"),
        ({"compatible": "xprof", "type": "json", "program_id": "8"}, NotFoundError, "no program"),
    ],
)
def test_what_cannot_be_answered(parameters, error, words):
    with pytest.raises(error, match=words):
        ask_of_graph_viewer(**parameters)
