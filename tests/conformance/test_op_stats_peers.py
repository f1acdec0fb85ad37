"""op_stats against TensorFlow's own tfprof: every field of every node, and the printed form.

Inputs: the sample runs with their graphs, more folders of them named in PEAKLINE_SAMPLES, and
PEAKLINE_CONFORMANCE_SEEDS (30) random graphs and runs with devices that the samples lack.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import peakline
from peakline.schema import message
from peakline.tools import run_tool
from tests.tools.tfprof_cases import (
    open_runs,
    random_graph,
    random_options,
    random_run,
    random_traces,
    rows_of,
    with_traces,
)

pytestmark = pytest.mark.conformance

DATA = Path(__file__).parent.parent / "data"
SEEDS = range(int(os.environ.get("PEAKLINE_CONFORMANCE_SEEDS", "30")))
VIEWS = ("scope", "graph", "op", "code")
OPTION_SETS = 12


@dataclass
class Input:
    """A graph and its runs by step; ``as_is`` keeps TensorFlow from building the graph again."""

    name: str
    graph: Path
    runs: list[tuple[int, Path]]
    as_is: bool = False
    traced: Path | None = None
    shaped: Path | None = None
    cases: list[dict] = field(default_factory=list)

    def profile(self):
        if not self.runs:
            return peakline.open(str(self.traced))
        if len(self.runs) == 1:
            return peakline.open(str(self.runs[0][1]))
        return open_runs([(step, read(path)) for step, path in self.runs])


def read(path: Path) -> bytes:
    import gzip

    content = path.read_bytes()
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


def samples() -> list[Input]:
    """Runs with the graph that ran, each run alone and all of one graph together."""
    graphs, runs = DATA / "op_stats", DATA / "run_metadata"
    found = {
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
    for root in map(Path, filter(None, os.environ.get("PEAKLINE_SAMPLES", "").split(":"))):
        for graph in sorted(root.glob("*/*graph.pb")):
            beside = sorted(graph.parent.glob("*run_metadata_*.pb"))
            if beside:
                found[f"{root.name}/{graph.parent.name}"] = (graph, beside)
    inputs = []
    for name, (graph, paths) in found.items():
        if not paths:
            inputs.append(Input(name, graph, []))
        inputs += [Input(f"{name} {path.name}", graph, [(0, path)]) for path in paths]
        if len(paths) > 1:
            inputs.append(Input(f"{name} steps", graph, list(enumerate(paths, 3))))
    return inputs


def random_input(folder: Path, seed: int) -> Input:
    graph = folder / f"{seed}.graph.pb"
    graph.write_bytes(random_graph(seed).SerializeToString())
    runs = []
    for number in range(1 + seed % 3):
        path = folder / f"{seed}.{number}.pb"
        path.write_bytes(random_run(seed * 3 + number).SerializeToString())
        runs.append((0 if seed % 3 == 0 else 2 * number, path))
    return Input(f"seed {seed}", graph, runs, as_is=True)


def prepare(folder: Path, number: int, given: Input, count: int) -> dict:
    """The request for the peer; notes in ``given`` where its answers will be."""
    definition = message("tensorflow.GraphDef").FromString(read(given.graph))
    traces = random_traces(number, [node.name for node in definition.node])
    traces_file = folder / f"{number}.traces.json"
    traces_file.write_text(json.dumps(traces))
    given.shaped = folder / f"{number}.shaped.pb"
    given.traced = folder / f"{number}.traced.pb"
    steps = [step for step, _ in given.runs] if len(given.runs) > 1 else []
    given.cases = [{"view": "advise", "options": {}}] + [
        {"view": view, "options": random_options(1000 * number + variant, view, steps)}
        for view in VIEWS
        for variant in range(count)
    ]
    for place, case in enumerate(given.cases):
        case["proto"] = str(folder / f"{number}.{place}.proto")
        case["text"] = None if case["view"] == "advise" else str(folder / f"{number}.{place}.txt")
    return {
        "graph": str(given.graph),
        "as_is": given.as_is,
        "runs": [[step, str(path)] for step, path in given.runs],
        "traces": str(traces_file),
        "shaped": str(given.shaped),
        "cases": given.cases,
    }


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """Every input, after the peer answered all its cases."""
    python = os.environ.get("PEAKLINE_PEERS_PYTHON")
    if not python:
        pytest.skip("PEAKLINE_PEERS_PYTHON does not name the peers' interpreter")
    folder = tmp_path_factory.mktemp("tfprof")
    known = samples()
    inputs = [*known, *(random_input(folder, seed) for seed in SEEDS)]
    requests = [
        prepare(folder, number, given, OPTION_SETS if number < len(known) else 2)
        for number, given in enumerate(inputs)
    ]
    (folder / "requests.json").write_text(json.dumps(requests))
    results = folder / "results"
    script = Path(__file__).parent / "peers" / "run_tfprof.py"
    process = subprocess.run(
        [python, str(script), str(folder / "requests.json"), str(results)],
        check=False,
        capture_output=True,
    )
    errors = [json.loads(line) for line in results.read_text().splitlines()]
    assert errors == [None] * len(inputs), process.stderr[-2000:]
    for number, given in enumerate(inputs):
        graph = message("tensorflow.GraphDef").FromString(given.shaped.read_bytes())
        traces = json.loads((folder / f"{number}.traces.json").read_text())
        given.traced.write_bytes(with_traces(graph, traces).SerializeToString())
    return {given.name: given for given in inputs}


NAMES = [*(given.name for given in samples()), *(f"seed {seed}" for seed in SEEDS)]


@pytest.mark.parametrize("name", NAMES)
def test_views_and_advice_are_those_of_tfprof(answered, name):
    given = answered[name]
    with given.profile() as profile:
        for case in given.cases:
            parameters = {"view": case["view"], **case["options"], "graph": str(given.traced)}
            described = f"{case['view']} {case['options']}"
            found = run_tool(profile, "op_stats", parameters, "proto").content
            expected = Path(case["proto"]).read_bytes()
            if case["view"] == "advise":
                kind = message("tensorflow.tfprof.AdviceProto")
                assert kind.FromString(found) == kind.FromString(expected), described
                continue
            several = len(given.runs) > 1
            compare(
                rows_of(found, case["view"]), rows_of(expected, case["view"]), described, several
            )
            if not (several and "input_shapes" in case["options"]["select"]):
                text = run_tool(profile, "op_stats", parameters, "text").content.decode()
                _, _, printed = Path(case["text"]).read_text().partition("\nProfile:\n")
                assert text == printed, described


def compare(found, expected, described, several):
    """Equal row by row; of several steps tfprof does not fill in shapes that the runs tell."""
    for (depth, row), (expected_depth, expected_row) in zip(found, expected, strict=False):
        if several:
            for node in (row, expected_row):
                without_shapes(node)
        assert (depth, row) == (expected_depth, expected_row), described
    assert len(found) == len(expected), described


def without_shapes(node):
    for one in getattr(node, "graph_nodes", [node]):
        one.ClearField("input_shapes")
