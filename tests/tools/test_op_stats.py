"""The op_stats tool: parameters, where the graph comes from, and what is written."""

import gzip
import json
import shutil
from itertools import pairwise

import pytest
from google.protobuf import json_format
from tests.amplification.cases import graph_def
from tests.each_row import each_row
from tests.profile.fake import FakeReader
from tests.tools.tfprof_cases import (
    open_runs,
    random_graph,
    random_options,
    random_run,
    random_traces,
    rows_of,
    with_traces,
)

import peakline
from peakline.errors import InputError, NotFoundError, UsageError
from peakline.schema import message
from peakline.tables import Profile
from peakline.tools import available_tools, find_tool, run_tool

RUN = "tests/data/run_metadata/tf1_cnn_2.pb.gz"
GRAPH = "tests/data/op_stats/tf1_cnn.graph.pb.gz"
KINDS = {
    "scope": "GraphNodeProto",
    "graph": "GraphNodeProto",
    "op": "MultiGraphNodeProto",
    "code": "MultiGraphNodeProto",
    "advise": "AdviceProto",
}


@pytest.fixture
def run(root):
    with peakline.open(str(root / RUN)) as profile:
        yield profile


def text_of(profile, **parameters):
    return run_tool(profile, "op_stats", parameters, "text").content.decode()


@each_row("view", KINDS)
@each_row("seed", range(3))
def test_json_and_proto_are_the_same_message(view, seed, tmp_path):
    graph = random_graph(seed)
    traces = random_traces(seed, [node.name for node in graph.node])
    path = tmp_path / "graph.pb"
    path.write_bytes(with_traces(graph, traces).SerializeToString())
    options = {} if view == "advise" else random_options(seed, view)
    parameters = {"view": view, "graph": str(path), **options}
    with open_runs([(0, random_run(seed).SerializeToString())]) as profile:
        as_json = run_tool(profile, "op_stats", parameters).content
        as_proto = run_tool(profile, "op_stats", parameters, "proto").content
    kind = message(f"tensorflow.tfprof.{KINDS[view]}")
    expected = kind.FromString(as_proto)
    assert json_format.Parse(as_json, kind()) == expected
    assert json.loads(as_json) == json_format.MessageToDict(expected)


def test_a_real_run_as_tfprof_prints_it(run, root):
    lines = text_of(run, graph=str(root / GRAPH), max_depth=2, order_by="micros").splitlines()
    assert lines[0].split(" | ") == [
        "node name",
        "requested bytes",
        "total execution time",
        "accelerator execution time",
        "cpu execution time",
    ]
    assert lines[1:4] == [
        "_TFProfRoot (--/57.59MB, --/111.06ms, --/0us, --/111.06ms)",
        "  gradients (0B/28.38MB, 0us/88.44ms, 0us/0us, 0us/88.44ms)",
        "  conv3 (0B/4.22MB, 0us/5.36ms, 0us/0us, 0us/5.36ms)",
    ]


def test_op_types_as_tfprof_prints_them(run, root):
    text = text_of(
        run, graph=str(root / GRAPH), view="op", order_by="micros", max_depth=1,
        select="micros,occurrence",
    )  # fmt: skip
    assert [line.replace(" ", "") for line in text.splitlines()[1:]] == [
        "Conv2DBackpropInput42.82ms(100.00%,38.56%),0us(0.00%,0.00%),42.82ms(100.00%,38.56%),3|4",
        "Conv2DBackpropFilter34.88ms(61.44%,31.41%),0us(0.00%,0.00%),34.88ms(61.44%,31.41%),4|4",
    ]
    assert {len(line) for line in text.splitlines()[1:]} == {131}


# Where the graph comes from.


def test_a_graph_beside_the_run_is_found(root, tmp_path):
    shutil.copy(root / RUN, tmp_path / "run.pb.gz")
    with peakline.open(str(tmp_path / "run.pb.gz")) as profile:
        alone = text_of(profile)
        (tmp_path / "graph.pb").write_bytes(gzip.decompress((root / GRAPH).read_bytes()))
        assert text_of(profile) == text_of(profile, graph=str(tmp_path / "graph.pb")) != alone


def test_a_broken_graph_beside_the_run_is_told_and_passed_over(root, tmp_path):
    shutil.copy(root / RUN, tmp_path / "run.pb.gz")
    with peakline.open(str(tmp_path / "run.pb.gz")) as profile:
        alone = text_of(profile)
        (tmp_path / "graph.pb").write_bytes(b"")
        assert text_of(profile) == alone
        assert [warning.kind for warning in profile.warnings] == ["graph_unreadable"]


def test_a_file_that_is_no_graph_is_refused(run, root):
    with pytest.raises(UsageError, match=r"tf1_cnn_2\.pb\.gz: no graph"):
        text_of(run, graph=str(root / RUN))
    with pytest.raises(NotFoundError):
        text_of(run, graph=str(root / "tests/data/none.pb"))


def test_a_graph_alone_has_views_too(root):
    with peakline.open(str(root / GRAPH)) as profile:
        assert "op_stats" in available_tools(profile)
        text = text_of(profile, view="op", select="params", show_name_regexes="VarHandleOp")
    assert text.splitlines()[1].startswith(
        "VarHandleOp              50.93k params (100.00%, 100.00%)"
    )


def test_only_local_callers_may_name_a_graph():
    schema = find_tool("op_stats").schema()["properties"]
    assert [name for name, field in schema.items() if field.get("local_only")] == ["graph"]


@each_row(
    ("view", "format_", "content"),
    [
        *((view, "json", b"{}") for view in KINDS),
        *((view, "proto", b"") for view in KINDS),
        *((view, "text", b"") for view in KINDS),
    ],
)
def test_nothing_to_show_is_an_empty_message(view, format_, content):
    profile = Profile(FakeReader({"steps": []}))
    assert run_tool(profile, "op_stats", {"view": view}, format_).content == content
    assert [tuple(warning) for warning in profile.warnings] == [
        ("no_op_stats", 1, "neither a traced run nor a graph in this profile")
    ]


def test_a_run_without_executions_is_told(tmp_path):
    run = message("tensorflow.RunMetadata")()
    run.step_stats.dev_stats.add(device="/cpu:0")
    (tmp_path / "run.pb").write_bytes(run.SerializeToString())
    with peakline.open(str(tmp_path / "run.pb")) as profile:
        assert json.loads(run_tool(profile, "op_stats").content) == {"name": "_TFProfRoot"}
        assert [warning.kind for warning in profile.warnings] == ["no_op_stats"]


def test_a_bad_parameter_is_told_even_where_there_is_nothing_to_show(root):
    profile = Profile(FakeReader({}))
    with pytest.raises(NotFoundError, match="no step 7 in the profile; there is: none"):
        run_tool(profile, "op_stats", {"step": 7})
    with pytest.raises(UsageError, match="no graph in it"):
        run_tool(profile, "op_stats", {"graph": str(root / RUN)})


# Parameters.


@each_row(
    ("parameters", "reason"),
    [
        ({"view": "tree"}, "parameter view"),
        ({"order_by": "depth"}, "parameter order_by"),
        ({"select": "bytes,colour"}, "no column 'colour'"),
        ({"show_name_regexes": "("}, "show_name_regexes: .* is no RE2 expression"),
        ({"min_bytes": "-1"}, "parameter min_bytes"),
        ({"max_bytes": 1}, "no parameter 'max_bytes'"),
    ],
)
def test_a_bad_parameter_is_refused(run, parameters, reason):
    with pytest.raises(UsageError, match=reason):
        text_of(run, **parameters)


def test_a_step_that_is_not_there_is_refused(run):
    with pytest.raises(NotFoundError, match="no step 7 in the profile; there is: 0"):
        text_of(run, step=7)


def test_values_may_be_text(run, root):
    given = {"graph": str(root / GRAPH), "max_depth": 2, "account_displayed_op_only": True}
    listed = text_of(run, show_name_regexes=["a.*", "b.*"], **given)
    assert text_of(
        run, show_name_regexes="a.*,b.*", graph=given["graph"], max_depth="2",
        account_displayed_op_only="true",
    ) == listed  # fmt: skip


def test_what_is_missing_is_told(run, root):
    assert run_tool(run, "op_stats", {"view": "code", "graph": str(root / GRAPH)}).content == b"{}"
    assert [warning.kind for warning in run.warnings] == ["no_code_traces"]
    gpu = {"op_run_id": 0, "device": "/gpu:0", "name": "a", "all_start_micros": 1}
    reader = FakeReader({"op_runs": [gpu], "op_times": [gpu]})
    with Profile(reader) as profile:
        text_of(profile)
        assert [warning.kind for warning in profile.warnings] == ["no_accelerator_time"]


def chain(count):
    """A profile of nodes that each take the next one's output."""
    names = [f"n{number}" for number in range(count)]
    tables = {
        "nodes": [{"name": name, "op": "Op"} for name in names],
        "edges": [{"source": source, "target": target} for target, source in pairwise(names)],
    }
    return Profile(FakeReader(tables))


def test_messages_nest_deeper_than_a_parser_goes():
    with chain(500) as profile:
        content = run_tool(profile, "op_stats", {"view": "graph"}, "proto").content
    assert [(depth, row.name) for depth, row in rows_of(content, "graph")] == [
        (0, "_TFProfRoot"), *((number + 1, f"n{number}") for number in range(500)),
    ]  # fmt: skip


def test_a_view_too_deep_for_text_is_refused():
    with chain(20_000) as profile:
        content = run_tool(profile, "op_stats", {"view": "graph"}).content
        assert content.count(b'"children":[') == 20_000
        with pytest.raises(UsageError, match="MiB of indentation, being 20000 levels deep"):
            text_of(profile, view="graph")
        assert text_of(profile, view="graph", max_depth=2).count("\n") == 3


def test_inputs_of_very_many_dimensions_are_refused(tmp_path):
    path = tmp_path / "graph.pb"
    path.write_bytes(graph_def.shape_of_every_input(20_000))
    with peakline.open(str(path)) as profile:
        for output_format in ("json", "proto"):
            with pytest.raises(InputError, match="dimensions: too many to list"):
                run_tool(profile, "op_stats", {}, output_format)
        with pytest.raises(InputError, match="dimensions: too many to list"):
            text_of(profile, view="op", select="input_shapes")
        assert "b (" in text_of(profile)
