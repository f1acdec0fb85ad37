import json

import pytest
from tests.amplification.matrix import cases
from tests.graph.graphs import graph_bytes, node

BAD = node("a") + node("b", "Op", "zz") + node("c", "Op", more='device:"/job:w-x"')


@pytest.fixture
def good(root):
    return root / "tests" / "data" / "graph_def" / "frozen.pb"


@pytest.fixture
def bad(tmp_path):
    path = tmp_path / "bad.pb"
    path.write_bytes(graph_bytes(BAD))
    return path


def test_a_summary_for_a_person(peakline, good):
    run = peakline("graph", good)
    assert (run.code, run.err) == (0, "")
    lines = run.out.splitlines()
    assert lines[:2] == ["70 nodes", f"{good} (graph_def)"]
    assert lines[3:6] == [
        "  nodes     70, and 5 in one function",
        "  edges     92, and 6 in functions",
        "  versions  written by 2474, for readers from 12 on",
    ]
    assert "     21  30.0%  Const" in lines
    assert "every rule holds" not in lines


def test_versions_that_may_not_read(peakline, tmp_path):
    path = tmp_path / "graph.pb"
    text = node("a") + "versions{producer:21 min_consumer:10 bad_consumers:%s}"
    path.write_bytes(graph_bytes(text % "5 bad_consumers:2474"))
    assert "for readers from 10 on, but not 5 or 2474\n" in peakline("graph", path).out
    path.write_bytes(graph_bytes(text % "5"))
    assert "for readers from 10 on, but not 5\n" in peakline("graph", path).out


def test_of_several_graphs_the_largest_is_shown(peakline, root):
    path = root / "tests" / "data" / "run_metadata" / "tf1_grpc.pb.gz"
    graphs = json.loads(peakline("graph", path, "--json").out)["graphs"]
    assert len(graphs) > 1
    largest = max(graphs, key=lambda graph: graph["nodes"])
    lines = peakline("graph", path).out.splitlines()
    assert lines[0].endswith(f" in the largest of {len(graphs)} graphs")
    assert lines[3] == f"  graphs    {len(graphs)}"
    at = lines.index(f"ops of the largest graph, {largest['graph']}")
    counts = [int(line.split()[0]) for line in lines[at + 2 : lines.index("", at)]]
    assert sum(counts) == largest["nodes"]


def test_json_has_the_documented_shape(peakline, good):
    run = peakline("graph", good, "--json")
    document = json.loads(run.out)
    assert (run.code, run.err) == (0, "")
    assert list(document)[:6] == [
        "nodes", "edges", "functions", "ops", "producer", "min_consumer",
    ]  # fmt: skip
    assert (document["nodes"], document["edges"], document["functions"]) == (70, 92, 1)
    assert (document["producer"], document["min_consumer"]) == (2474, 12)
    assert (document["errors"], document["notes"], document["warnings"]) == ([], [], [])
    assert sum(document["ops"].values()) == 70
    assert document["ops"]["NextIteration"] == 2


def test_a_check_that_holds(peakline, good):
    run = peakline("graph", good, "--check")
    assert (run.code, run.err) == (0, "")
    assert run.out.splitlines()[-1] == "every rule holds"


def test_a_check_that_fails(peakline, bad):
    run = peakline("graph", bad, "--check")
    assert run.code == 1
    assert run.err == f"peakline: {bad}: one broken rule\n"
    lines = run.out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("error: "))
    assert lines[at:] == [
        "error: unknown_input (1): an input comes from a node or output that is not there",
        "  b: input 0 is 'zz', but the graph has no node 'zz'",
        "",
        "note: device (1): a device specification that TensorFlow does not read",
        (
            "  c: '/job:w-x' can be imported, but no node can be placed there: "
            "job 'w-x' is no * or letter followed by letters, digits and _"
        ),
    ]


def test_json_lists_what_is_broken_and_only_a_check_fails(peakline, bad):
    run = peakline("graph", bad, "--json")
    assert (run.code, run.err) == (0, "")
    errors = [
        {
            "rule": "unknown_input",
            "node": "b",
            "message": "input 0 is 'zz', but the graph has no node 'zz'",
        }
    ]
    assert json.loads(run.out)["errors"] == errors
    run = peakline("graph", bad, "--json", "--check")
    assert run.code == 1
    assert json.loads(run.out)["errors"] == errors
    assert [one["rule"] for one in json.loads(run.out)["notes"]] == ["device"]


def test_the_consumer(peakline, good):
    assert peakline("graph", good, "--check", "--consumer", 12).code == 0
    run = peakline("graph", good, "--check", "--consumer", 11)
    assert run.code == 1
    assert "the graph needs a reader of version 12; the consumer is 11" in run.out


def test_a_profile_without_a_graph(peakline, sessions):
    run = peakline("graph", sessions / "tf2_cnn")
    assert (run.code, run.err) == (0, "")
    assert run.out.endswith(": no graph in this profile\n")
    run = peakline("graph", sessions / "tf2_cnn", "--json")
    document = json.loads(run.out)
    assert (run.code, document["nodes"], document["graphs"]) == (0, 0, [])
    assert [one["kind"] for one in document["warnings"]] == ["no_graph"]
    assert peakline("graph", sessions / "tf2_cnn", "--strict").code == 3
    for words in ((), ("--json",)):
        run = peakline("graph", sessions / "tf2_cnn", "--check", *words)
        assert (run.code, run.out) == (3, "")
        assert run.err.endswith(".xplane.pb.gz: no graph in this profile, so none to check\n")


def test_names_from_files_are_never_obeyed(peakline, tmp_path):
    path = tmp_path / "graph.pb"
    path.write_bytes(graph_bytes(node("a\\033[31m", "Op\\033[0m")))
    run = peakline("graph", path, "--check")
    assert run.code == 1
    assert "\x1b" not in peakline("graph", path).out + run.out + run.err
    assert "'a\\x1b[31m' holds" in run.out


def test_many_broken_rules_are_counted(peakline, tmp_path):
    path = tmp_path / "graph.pb"
    path.write_bytes(graph_bytes("".join(node(f"a b{at}") for at in range(30))))
    run = peakline("graph", path, "--check")
    assert (run.code, run.err) == (1, f"peakline: {path}: 30 broken rules\n")
    assert run.out.splitlines()[-1] == "  and 10 more (all with --json)"
    assert len(json.loads(peakline("graph", path, "--json").out)["errors"]) == 30


def test_of_very_many_graphs_the_first_hundred_are_listed(peakline, tmp_path):
    path = tmp_path / "saved_model.pb"
    path.write_bytes(cases()["saved_model.long_tags"](8000))
    listed = peakline("graph", path).out.splitlines()
    assert len([line for line in listed if " meta_graph (" in line]) == 100
    assert any("s...s" in line for line in listed)
    assert any(line.endswith(" nodes (all with --json)") for line in listed)
