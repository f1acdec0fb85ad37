"""op_stats against TensorFlow's own tfprof: every field of every node, and the printed form.

Inputs: the sample runs with their graphs, and random graphs and runs with devices that the samples
lack.
"""

import gzip
from pathlib import Path

import pytest

import peakline
from peakline.schema import message
from peakline.tools import run_tool
from tests.conformance.oracle import DATA, SEEDS
from tests.conformance.tensorflow import Profiled
from tests.tools.tfprof_cases import (
    open_runs,
    random_graph,
    random_options,
    random_run,
    random_traces,
    rows_of,
    with_traces,
)

VIEWS = ("scope", "graph", "op", "code")
EVERY = 8
"""Of so many cases one is in every test run."""


def read(path: Path) -> bytes:
    content = path.read_bytes()
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


def samples(folders) -> list[tuple[str, Path, list[tuple[int, Path]]]]:
    """Runs by step with the graph that ran, each run alone and all of one graph together."""
    graphs, runs = DATA / "op_stats", DATA / "run_metadata"
    known = {
        "cnn": (
            graphs / "tf1_cnn.graph.pb.gz",
            [graphs / "tf1_cnn_0.pb.gz", runs / "tf1_cnn_2.pb.gz"],
        ),
        "control flow": (
            graphs / "tf1_control_flow.graph.pb.gz",
            [runs / "tf1_control_flow_4.pb.gz"],
        ),
        "flops": (graphs / "flops.graph.pb.gz", []),
        "grpc": (graphs / "tf1_grpc.graph.pb.gz", [runs / "tf1_grpc.pb.gz"]),
    }
    for folder in folders[1:]:
        for graph in sorted(folder.glob("*/*graph.pb")):
            beside = sorted(graph.parent.glob("*run_metadata_*.pb"))
            if beside:
                known[f"{folder.name}/{graph.parent.name}"] = (graph, beside)
    result = []
    for name, (graph, paths) in known.items():
        if not paths:
            result.append((name, graph, []))
        result += [(f"{name} {path.name}", graph, [(0, path)]) for path in paths]
        if len(paths) > 1:
            result.append((f"{name} steps", graph, list(enumerate(paths, 3))))
    return result


def question(name, graph, runs, *, number, count, as_is=False) -> Profiled:
    """A graph and its runs with made-up traces, and ``count`` sets of options for every view."""
    definition = message("tensorflow.GraphDef").FromString(read(graph))
    steps = [step for step, _ in runs] if len(runs) > 1 else []
    cases = [("advise", {})] + [
        (view, random_options(1000 * number + variant, view, steps))
        for view in VIEWS
        for variant in range(count)
    ]
    traces = random_traces(number, [node.name for node in definition.node])
    return Profiled(name, graph, runs, traces, cases, as_is)


def check(tensorflow, request: Profiled, folder: Path):
    """Every answer of ours is that of tfprof."""
    answer = tensorflow.tfprof(request)
    graph = message("tensorflow.GraphDef").FromString(answer["shaped"])
    traced = folder / "traced.pb"
    traced.write_bytes(with_traces(graph, request.traces).SerializeToString())
    several = len(request.runs) > 1
    if several:
        opened = open_runs([(step, read(path)) for step, path in request.runs])
    else:
        opened = peakline.open(str(request.runs[0][1] if request.runs else traced))
    with opened as profile:
        for number, (view, options) in enumerate(request.cases):
            if not tensorflow.is_whole and number % EVERY:
                continue
            parameters = {"view": view, **options, "graph": str(traced)}
            described = f"{request.name}: {view} {options}"
            result = run_tool(profile, "op_stats", parameters, "proto").content
            expected = answer[f"{number}.proto"]
            if view == "advise":
                kind = message("tensorflow.tfprof.AdviceProto")
                assert kind.FromString(result) == kind.FromString(expected), described
                continue
            compare(rows_of(result, view), rows_of(expected, view), described, several)
            if not (several and "input_shapes" in options["select"]):
                text = run_tool(profile, "op_stats", parameters, "text").content.decode()
                _, _, printed = answer[f"{number}.text"].decode().partition("\nProfile:\n")
                assert text == printed, described


def test_every_sample(tensorflow, tmp_path):
    result = samples(tensorflow.folders)
    assert len(result) > 5
    for number, (name, graph, runs) in enumerate(result):
        check(tensorflow, question(name, graph, runs, number=number, count=12), tmp_path)


@pytest.mark.conformance
def test_random_runs(live_tensorflow, tmp_path):
    for seed in range(SEEDS):
        graph = tmp_path / f"{seed}.graph.pb"
        graph.write_bytes(random_graph(seed).SerializeToString())
        runs = []
        for number in range(1 + seed % 3):
            path = tmp_path / f"{seed}.{number}.pb"
            path.write_bytes(random_run(seed * 3 + number).SerializeToString())
            runs.append((0 if seed % 3 == 0 else 2 * number, path))
        request = question(f"seed {seed}", graph, runs, number=100 + seed, count=2, as_is=True)
        check(live_tensorflow, request, tmp_path)


def compare(result, expected, described, several):
    """Equal row by row; of several steps tfprof does not fill in shapes that the runs tell."""
    for (depth, row), (expected_depth, expected_row) in zip(result, expected, strict=False):
        if several:
            for node in (row, expected_row):
                without_shapes(node)
        assert (depth, row) == (expected_depth, expected_row), described
    assert len(result) == len(expected), described


def without_shapes(node):
    for one in getattr(node, "graph_nodes", [node]):
        one.ClearField("input_shapes")
