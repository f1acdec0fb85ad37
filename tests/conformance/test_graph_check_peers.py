"""The graph check against TensorFlow itself: what it refuses, and which node it names.

Inputs: every named case, and PEAKLINE_CONFORMANCE_SEEDS (60) random changes of each sample graph
(tests/data, and folders named in PEAKLINE_SAMPLES). Where Peakline says more or less than
TensorFlow on purpose is listed in docs/graph-check.md and below.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

import peakline
from peakline.analysis.graph.check import check_graphs
from peakline.schema import message
from tests.conformance.graph_mutations import CASES, DEVICES, GraphDef, mutated, parse

pytestmark = pytest.mark.conformance

RUNNER = Path(__file__).parent / "peers" / "import_graphs.py"
DATA = Path(__file__).parent.parent / "data"
ROOTS = [DATA, *map(Path, filter(None, os.environ.get("PEAKLINE_SAMPLES", "").split(":")))]
SEEDS = int(os.environ.get("PEAKLINE_CONFORMANCE_SEEDS", "60"))
LARGEST = 100_000
CRASHED = "crashed"

# TensorFlow's message, our rules for it, and whether it names the node.
REFUSALS = [
    (r"Node name contains invalid characters", {"node_name"}, True),
    (r"is not unique", {"duplicate_node"}, True),
    (r"Duplicated ret name", {"duplicate_node"}, False),
    (r"does not specify an operation", {"missing_op"}, True),
    (r"Op type not registered ''", {"missing_op"}, False),
    (r"Op type not registered '__", {"absent_function"}, False),
    (r"Unknown input node", {"unknown_input", "input_syntax"}, True),
    (r"Control dependencies must come after", {"input_order"}, True),
    (r"input .* is not found", {"unknown_input", "input_syntax", "input_order"}, True),
    (r"Return \S* ->.* is not found|Return \S* missing", {"function_return"}, False),
    (r"nodes in a cycle", {"cycle"}, False),
    (r"colocated with unknown node", {"colocation"}, True),
    (r"not iterable|Expected binary or unicode|Unsupported field", {"attribute_kind"}, False),
    (r"Unknown attribute|invalid literal for int|Multiple device types", {"device"}, False),
    (r"producer version", {"producer"}, False),
    (r"min consumer", {"min_consumer"}, False),
    (r"disallows consumer", {"bad_consumers"}, False),
    (r"because a different function", {"duplicate_function", "duplicate_node"}, False),
    (r"missing '\w*' FunctionDef", {"absent_function"}, False),
    (r"cyclic gradient", {"gradient_cycle"}, False),
    (r"Connecting to invalid output \d+ of source node call", {"unknown_input"}, True),
]  # fmt: skip
# An output that the op of an existing node lacks: ops are not known to Peakline.
OUTPUT = re.compile(r"(?:input|->) ([^ :^]+):[A-Za-z]\w*(?::\d+)? is not found")
CONTROL = re.compile(r"input \^([^ :]+)\S* is not found: \{\{node ([^}]*)\}\}")
NAMED = re.compile(r"Node '([^']*)'|\{\{node ([^}]*)\}\}")

# What TensorFlow leaves alone and Peakline reports: see docs/graph-check.md.
STRICTER = {"attribute_key", "absent_function", "function_control_return", "duplicate_function"}


@pytest.fixture(scope="module")
def python():
    interpreter = os.environ.get("PEAKLINE_PEERS_PYTHON")
    if not interpreter:
        pytest.skip("PEAKLINE_PEERS_PYTHON does not name the peers' interpreter")
    return interpreter


def samples():
    """Small graphs by name."""
    found = {}
    for root in ROOTS:
        for path in sorted([*root.rglob("*.pb"), *root.rglob("*.pb.gz"), *root.rglob("*.meta")]):
            if path.stat().st_size > LARGEST or "graph" not in str(path) + path.name:
                continue
            content = path.read_bytes()
            content = gzip.decompress(content) if path.suffix == ".gz" else content
            with peakline.open(str(path)) as profile:
                kind = profile.format
            if kind == "graph_def":
                graph = GraphDef.FromString(content)
            elif kind == "meta_graph":
                graph = message("tensorflow.MetaGraphDef").FromString(content).graph_def
            elif kind == "saved_model":
                model = message("tensorflow.SavedModel").FromString(content)
                graph = model.meta_graphs[0].graph_def
            else:
                continue
            if any(one == graph for one in found.values()):
                continue
            found[f"{root.name}/{path.relative_to(root)}"] = graph
    return found


def ask(python, folder, graphs, *options):
    """TensorFlow's answers by name: None or an error, which is CRASHED where it crashed."""
    answers = {}
    names = list(graphs)
    for number, name in enumerate(names):
        (folder / f"{number}.pb").write_bytes(graphs[name].SerializeToString())
    results = folder / "results"
    while len(answers) < len(names):
        requests = [str(folder / f"{number}.pb") for number in range(len(answers), len(names))]
        (folder / "requests").write_text(json.dumps(requests))
        results.write_text("")
        done = subprocess.run(
            [python, RUNNER, folder / "requests", results, *options],
            check=False,
            capture_output=True,
            text=True,
        )
        lines = results.read_text().splitlines()
        for line in lines:
            answers[names[len(answers)]] = json.loads(line)
        if len(answers) < len(names):
            assert done.returncode < 0, done.stderr[-2000:]
            answers[names[len(answers)]] = CRASHED
    return answers


def ours(path):
    with peakline.open(str(path)) as profile:
        return check_graphs(profile)


def called(graph):
    """The functions that importing looks into: those called from the graph, and so on."""
    bodies = {function.signature.name: function.node_def for function in graph.library.function}
    seen, front = set(), [graph.node]
    while front:
        for node in front.pop():
            if node.op in bodies and node.op not in seen:
                seen.add(node.op)
                front.append(bodies[node.op])
    return seen


def about_ops(graph, text):
    """Whether a refusal can only be told by who knows the ops: their outputs and inputs."""
    functions = graph.library.function
    bodies = {function.signature.name: function.node_def for function in functions}
    nodes = [node for body in bodies.values() for node in body]
    if match := OUTPUT.search(text):
        return any(node.name == match[1] and node.op not in bodies for node in nodes)
    if match := CONTROL.search(text):
        # A data input was expected; whoever is named is there, and stands in order.
        there = {node.name for node in nodes}
        there.update(one.name for function in functions for one in function.signature.input_arg)
        ordered = [
            node
            for node in nodes
            if node.name == match[2] and sorted(node.input, key=is_control) == list(node.input)
        ]
        return match[1] in there and bool(ordered)
    return False


def is_control(text):
    return text.startswith("^")


def differences(graph, answer, broken):
    """Where we differ from TensorFlow without a reason."""
    errors = [one for one in broken if one.is_error]
    text = answer
    if text is not None:
        if about_ops(graph, text):
            return []
        for pattern, rules, names_node in REFUSALS:
            if not re.search(pattern, text):
                continue
            match = NAMED.search(text) if names_node else None
            node = None if match is None else match[1] or match[2] or ""
            if not any(
                one.rule in rules and (node is None or one.node.rpartition("/")[2] == node
                                       or one.node == node or one.node.endswith("/" + node))
                for one in errors
            ):  # fmt: skip
                return [f"TensorFlow: {text}"]
            break
        return []
    inside = called(graph)
    every = {function.signature.name for function in graph.library.function}
    found = []
    for one in errors:
        function = next((name for name in every if one.node.startswith(f"{name}/")), None)
        function = one.node if one.node in every and function is None else function
        if one.rule in STRICTER or (function is not None and function not in inside):
            continue
        if function is not None and one.rule == "device":
            continue
        found.append(f"Peakline: {one}")
    return found


def graphs_of_seeds():
    return {
        f"{name} seed {seed}": mutated(graph, seed)
        for name, graph in samples().items()
        for seed in range(SEEDS)
    }


@pytest.mark.parametrize("make", [lambda: {n: parse(t) for n, t in CASES.items()}, graphs_of_seeds])
def test_what_tensorflow_refuses(python, tmp_path, make):
    graphs = make()
    answers = ask(python, tmp_path, graphs)
    bad, refused = [], 0
    for number, (name, graph) in enumerate(graphs.items()):
        answer = answers[name]
        if answer == CRASHED:
            continue
        refused += answer is not None
        path = tmp_path / f"{number}.pb"
        if not path.stat().st_size:
            continue
        bad += [f"{name}: {one}" for one in differences(graph, answer, ours(path))]
    assert not bad, "\n".join(bad)
    assert 0 < refused < len(graphs)


def test_devices_that_are_imported_but_never_placed(python, tmp_path):
    graphs = {device: parse(f'node{{name:"n" op:"NoOp" device:"{device}"}}') for device in DEVICES}
    malformed = {
        device
        for device, answer in ask(python, tmp_path, graphs, "run").items()
        if "Malformed device specification" in (answer or "")
    }
    noted = {
        device
        for number, device in enumerate(graphs)
        for one in ours(tmp_path / f"{number}.pb")
        if not one.is_error
    }
    assert noted == malformed
    assert "/job:w-x" in noted


def test_sample_graphs_are_whole(python, tmp_path):
    graphs = samples()
    assert graphs
    for name, answer in ask(python, tmp_path, graphs).items():
        assert answer is None, name
    assert [ours(path) for path in sorted(tmp_path.glob("*.pb"))] == [[] for _ in graphs]
