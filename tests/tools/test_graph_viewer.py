"""The tool graph_viewer: which program and node are meant, and what is around a node."""

import json

import pytest
from tests.each_row import each_row
from tests.shared import DATA, shared

from peakline.errors import NotFoundError, UsageError
from peakline.schema import HloProto
from peakline.tools import run_tool

TOOL = "graph_viewer"
CAPTURED = next((DATA / "sessions" / "jax_captured").rglob("*.xplane.pb*"))


def ask(chosen=None, **parameters):
    return run_tool(shared(CAPTURED), TOOL, {"module_name": "jit_f", **parameters}, chosen)


def graph(**parameters):
    return json.loads(ask(**parameters).content)


def test_the_neighbourhood_of_a_fusion():
    found = graph(node_name="add_add_fusion", graph_width="1")
    names = [node["name"] for node in found["nodes"]]
    assert (found["module"], found["program_id"], found["left_out"]) == ("jit_f(8)", "8", 0)
    # Its operands, the root of what it calls, and nothing else.
    assert sorted(names) == ["add_add_fusion", "add_any.14", "dot", "dot.1", "dot.2", "dot.3"]
    kinds = {(edge["from"], edge["to"]): edge["kind"] for edge in found["edges"]}
    assert kinds["add_any.14", "add_add_fusion"] == "result"
    assert kinds["dot.3", "add_add_fusion"] == "operand"
    root = next(node for node in found["nodes"] if node["name"] == "add_any.14")
    assert root["computation"] == "fused_computation.7"
    assert root["shape"] == "f32[512,512]{1,0}"
    assert root["source"].endswith("jaxsrv.py:5")
    assert root["op_name"] == "jit(f)/transpose(jvp(jit(f)))/add_any"
    # One addition of 512 x 512 numbers, which reads two and writes one array of 1 MiB.
    assert (root["flops"], root["bytes_accessed"]) == (262144.0, 3 * 2**20)


def test_a_graph_leads_into_fusions_and_out_of_them():
    inner = graph(node_name="add_any.14", graph_width="2")
    assert {"add_add_fusion", "dot.1"} <= {node["name"] for node in inner["nodes"]} or any(
        edge["kind"] == "result" for edge in inner["edges"]
    )
    parameter = graph(node_name="param_0.6", graph_width="1")
    assert ("x.1", "param_0.6", "argument") in [
        (edge["from"], edge["to"], edge["kind"]) for edge in parameter["edges"]
    ]


def test_width_zero_is_the_node_alone():
    found = graph(node_name="%add_add_fusion", graph_width="0")
    assert [node["name"] for node in found["nodes"]] == ["add_add_fusion"]
    assert found["edges"] == []


def test_a_computation_and_the_whole_program():
    inside = graph(node_name="fused_computation.7")
    assert {node["computation"] for node in inside["nodes"]} == {"fused_computation.7"}
    whole = graph(type="json")
    message = HloProto.FromString(ask(type="pb").content).hlo_module
    assert [node["name"] for node in whole["nodes"]] == [
        made.name for one in message.computations for made in one.instructions
    ]
    operands = sum(
        len(made.operand_ids) for one in message.computations for made in one.instructions
    )
    assert sum(edge["kind"] == "operand" for edge in whole["edges"]) == operands


def test_the_names_beside_a_node():
    found = graph(type="adj_nodes", node_name="add_add_fusion")
    assert found == {"operand_names": ["dot.3", "dot.2", "dot", "dot.1"], "consumer_names": []}


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
    answer = ask(type=kind, node_name="add_add_fusion")
    assert answer.format == written
    assert answer.content.startswith(begin)


def test_a_drawing_holds_no_address_and_merges_fusions():
    drawn = ask("dot", node_name="add_add_fusion", graph_width="1").content.decode()
    assert "fused_computation.7" in drawn
    assert "http" not in drawn
    merged = ask("dot", node_name="add_add_fusion", merge_fusion="true").content.decode()
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
        ask(**parameters)
