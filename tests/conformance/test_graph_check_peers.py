"""The graph check against TensorFlow itself: what it refuses, and which node it names.

Inputs: every named case, and random changes of each sample graph. Where Peakline says more or less
than TensorFlow on purpose is listed in docs/graph-check.md and below.
"""

import gzip
import re

import pytest

import peakline
from peakline.graph.check import check_graphs
from peakline.schema import message
from tests.conformance.graph_mutations import CASES, DEVICES, GraphDef, mutated, parse
from tests.conformance.oracle import SEEDS
from tests.conformance.tensorflow import CRASHED

LARGEST = 100_000

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


def samples(folders):
    """Small graphs by name."""
    result = {}
    for root in folders:
        for path in sorted([*root.rglob("*.pb"), *root.rglob("*.pb.gz"), *root.rglob("*.meta")]):
            inside = path.relative_to(root.parent)
            if path.stat().st_size > LARGEST or "graph" not in str(inside):
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
            if any(one == graph for one in result.values()):
                continue
            result[f"{root.name}/{path.relative_to(root)}"] = graph
    return result


def ours(graph, folder):
    """What the check says of a graph, or None of an empty one, which is no file of one."""
    path = folder / "graph.pb"
    path.write_bytes(graph.SerializeToString())
    if not path.stat().st_size:
        return None
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
    result = []
    for one in errors:
        function = next((name for name in every if one.node.startswith(f"{name}/")), None)
        function = one.node if one.node in every and function is None else function
        if one.rule in STRICTER or (function is not None and function not in inside):
            continue
        if function is not None and one.rule == "device":
            continue
        result.append(f"Peakline: {one}")
    return result


def refusals(tensorflow, subject, graphs):
    """TensorFlow's errors by name, None where it imports the graph."""
    serialized = {name: graph.SerializeToString() for name, graph in graphs.items()}
    return tensorflow.import_errors(subject, serialized)


def compare(graphs, answers, folder):
    bad, refused = [], 0
    for name, graph in graphs.items():
        result = ours(graph, folder)
        if answers[name] != CRASHED and result is not None:
            refused += answers[name] is not None
            bad += [f"{name}: {one}" for one in differences(graph, answers[name], result)]
    assert not bad, "\n".join(bad)
    assert 0 < refused < len(graphs)


def test_what_tensorflow_refuses(tensorflow, tmp_path):
    graphs = {name: parse(text) for name, text in CASES.items()}
    compare(graphs, refusals(tensorflow, "cases", graphs), tmp_path)


@pytest.mark.conformance
def test_random_changes_of_sample_graphs(live_tensorflow, tmp_path):
    graphs = {
        f"{name} seed {seed}": mutated(graph, seed)
        for name, graph in samples(live_tensorflow.folders).items()
        for seed in range(SEEDS)
    }
    compare(graphs, refusals(live_tensorflow, "seeds", graphs), tmp_path)


@pytest.mark.conformance
def test_devices_that_are_imported_but_never_placed(live_tensorflow, tmp_path):
    graphs = {device: parse(f'node{{name:"n" op:"NoOp" device:"{device}"}}') for device in DEVICES}
    serialized = {device: graph.SerializeToString() for device, graph in graphs.items()}
    malformed = {
        device
        for device, answer in live_tensorflow.import_errors("run", serialized, run=True).items()
        if "Malformed device specification" in (answer or "")
    }
    noted = {
        device
        for device, graph in graphs.items()
        for one in ours(graph, tmp_path)
        if not one.is_error
    }
    assert noted == malformed
    assert "/job:w-x" in noted


def test_sample_graphs_are_whole(tensorflow, tmp_path):
    graphs = samples(tensorflow.folders)
    assert graphs
    assert set(refusals(tensorflow, "samples", graphs).values()) == {None}
    assert [ours(graph, tmp_path) for graph in graphs.values()] == [[] for _ in graphs]
