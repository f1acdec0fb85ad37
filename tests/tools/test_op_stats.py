"""XProf's pages of ops, the input pipeline and the overview."""

import csv
import gzip
import io
import json
import pickle
import shutil
from itertools import pairwise
from pathlib import Path

import pytest
from google.protobuf import json_format
from tests.amplification.cases import graph_def
from tests.each_row import each_row
from tests.reference.xspace_builder import SpaceBuilder
from tests.tables.fake import FakeReader
from tests.tools.tfprof_cases import (
    open_runs,
    random_graph,
    random_options,
    random_run,
    random_traces,
    rows_of,
    with_traces,
)
from tests.tools.tpus import tpu_space

import peakline
from peakline.errors import InputError, NotFoundError, UsageError
from peakline.schema import message
from peakline.tables import Profile
from peakline.tools import available_tools, find_tool, run_tool
from reference.op_spaces import random_op_space

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


def rows(table):
    return [[cell["v"] for cell in row["c"]] for row in table["rows"]]


def answer(profile, tool="framework_op_stats", **parameters):
    return json.loads(run_tool(profile, tool, parameters).content)


def host_of(*events):
    space = SpaceBuilder()
    line = space.host().line("t")
    for name, offset, duration in events:
        line.event(name, offset, duration)
    return space.space


def test_shares_ranks_and_idle(opened):
    profile = opened(host_of(("a:A", 0, 6_000_000), ("b:B", 8_000_000, 2_000_000)))
    with_idle, without = answer(profile)
    assert [row[:9] for row in rows(with_idle)] == [
        [1.0, "Host", "A", "a", 1.0, 6.0, 6.0, 6.0, 6.0],
        [2.0, "Host", "IDLE", "IDLE", 0.0, 2.0, 0.0, 2.0, 0.0],
        [3.0, "Host", "B", "b", 1.0, 2.0, 2.0, 2.0, 2.0],
    ]
    assert [row[9:13] for row in rows(with_idle)] == [
        [0.0, 0.0, 0.6, 0.6],
        [0.0, 0.0, 0.2, 0.8],
        [0.0, 0.0, 0.2, pytest.approx(1.0)],
    ]
    assert [row[11:13] for row in rows(without)] == [[0.75, 0.75], [0.25, 1.0]]
    assert with_idle["p"] == {"architecture_type": "Unknown", "task_type": "Inference"}


@each_row("name", ["gradient_tape/x:Mul", "gradients_1/y/x:Mul", "f/transpose(g)/mul:mul"])
def test_gradients_make_it_training(opened, name):
    assert answer(opened(host_of((name, 0, 5))))[0]["p"]["task_type"] == "Training"


def test_what_an_op_is_bound_by(opened):
    space = SpaceBuilder()
    stats = {"peak_teraflops_per_second": 1.0, "peak_hbm_bw_gigabytes_per_second": 100.0}
    plane = space.plane("/device:TPU:0", {"device_type_string": "TPU v5", **stats})
    line, at = plane.line("XLA Ops"), 0
    # In a microsecond: half of the operations it could do, a tenth of the bytes; and none of both.
    for number, (flops, moved) in enumerate(((500_000, 10_000), (10_000, 90_000), (0, 0))):
        metadata = plane.message.event_metadata[plane.event_id(f"op{number}")]
        output = {"program_id": 1, "symbol_id": number + 1, "flops": flops, "bytes_accessed": moved}
        plane.add_stats(metadata, output)
        line.event(f"op{number}", at := at + 2_000_000, 1_000_000)
    result = {row[3]: row for row in rows(answer(opened(space.space))[1])}
    assert [result[f"op{n}"][-2] for n in range(3)] == ["Compute", "HBM", "Unknown"]
    # GFLOP/s twice, GiB/s, FLOPs per byte.
    assert result["op0"][13:17] == [500.0, 500.0, pytest.approx(10e9 / 2**30), 50.0]


def test_nothing_is_cut_unless_it_is_to_be_as_xprof_has_it(opened):
    profile = opened(host_of(*((f"op{n}:Op", n * 1000, 10) for n in range(600))))
    assert len(answer(profile)[0]["rows"]) == 601
    assert profile.warnings == []
    assert len(answer(profile, compatible="xprof")[0]["rows"]) == 500
    assert [(w.kind, w.count) for w in profile.warnings] == [("ops_cut", 101)]


def test_csv_is_the_first_table(opened):
    profile = opened(host_of(("a:A", 0, 5_000_000)))
    text = run_tool(profile, "framework_op_stats", format="csv").content.decode()
    header, first, idle = csv.reader(io.StringIO(text))
    assert header[:4] == ["Rank", "Host/device", "Operation Type", "Operation Name"]
    assert first[:6] == ["1.0", "Host", "A", "a", "1.0", "5.0"]
    assert idle[3] == "IDLE"


@each_row("tool", ["framework_op_stats", "kernel_stats"])
@each_row("compatible", ["", "xprof"])
def test_hosts_together(opened, tool, compatible):
    result = find_tool(tool)
    parameters = result.validated({"compatible": compatible})
    profiles = [opened(random_op_space(seed)) for seed in (5, 11)]
    sent = [pickle.dumps(result.partial(profile, parameters)) for profile in profiles]
    parts = [
        (profile.host, pickle.loads(part))  # noqa: S301 (our own)
        for profile, part in zip(profiles, sent, strict=True)
    ]
    for part, profile in zip(parts, profiles, strict=True):
        alone = result.answer(profile, parameters, "json")
        assert result.combine([part], parameters, "json") == alone
    both = json.loads(result.combine(parts, parameters, "json"))
    counted = 4 if tool == "framework_op_stats" else 10

    def runs(tables):
        table = tables[1] if isinstance(tables, list) else tables
        return sum(row[counted] for row in rows(table) if row[1] != "Device")

    alone = [json.loads(result.combine([part], parameters, "json")) for part in parts]
    assert runs(both) == sum(map(runs, alone)) > 0


def test_another_host_is_not_found(opened):
    profile = opened(host_of(("a:A", 0, 5)))
    for tool in ("framework_op_stats", "kernel_stats"):
        assert run_tool(profile, tool, {"host": "host0"}).content
        with pytest.raises(NotFoundError, match="no host 'other'"):
            run_tool(profile, tool, {"host": "other"})


MS = 10**9
TOOL = "input_pipeline_analyzer"


@pytest.fixture
def waiting(opened):
    """Opens steps of ``length`` ms that wait ``waits`` ms for input and then compute."""

    def build(*waits, host="host", length=10):
        builder = SpaceBuilder()
        line = builder.host().line("python")
        for step, wait in enumerate(waits):
            at = step * 20 * MS
            line.event("train", at, length * MS, {"_r": 1, "step_num": step})
            line.event("IteratorGetNext", at, wait * MS)
            line.event("Iterator::Root::TFRecord", at, wait * MS)
            line.event("work", at + wait * MS, (length - wait) * MS)
        return opened(builder, f"{host}.xplane.pb")

    return build


def tables(profile, **parameters):
    """The answer as JSON values."""
    return json.loads(profile.tool(TOOL, **parameters).content)


def column(table, name):
    """The values of one column."""
    place = [one["id"] for one in table["cols"]].index(name)
    return [row["c"][place]["v"] for row in table["rows"]]


@each_row(
    ("wait", "conclusion"),
    [
        (3, "Your program is HIGHLY input-bound because 30.0%"),
        (1, "Your program is MODERATELY input-bound because 10.0%"),
        (0, "Your program is NOT input-bound because only 0.0%"),
    ],
)
def test_how_much_the_steps_wait(waiting, wait, conclusion):
    _, steps, *_ = tables(waiting(wait, wait))
    assert column(steps, "infeedTimeMs") == [wait, wait]
    assert column(steps, "stepTimeMs") == [10, 10]
    assert steps["p"]["input_conclusion"].startswith(conclusion)


def test_ops_that_bring_data_are_classified(waiting):
    ops = tables(waiting(4, 2))[2]
    assert column(ops, "opName") == ["Iterator::Root::TFRecord"]
    assert column(ops, "category") == ["Demanded file read"]
    assert column(ops, "timeInMs") == [6.0]
    assert ops["p"]["demanded_file_read_us"] == "6000.000"


def test_of_several_hosts_the_slowest_counts(waiting):
    tool = find_tool(TOOL)
    hosts = [waiting(1, 1, host="a"), waiting(5, 2, host="b", length=12)]
    shown = {}
    for compatible in ("", "xprof"):
        request = tool.validated({"compatible": compatible})
        parts = [(profile.host, tool.partial(profile, request)) for profile in hosts]
        shown[compatible] = json.loads(tool.combine(parts, request, "json"))[1]
    assert column(shown["xprof"], "infeedTimeMs") == [1, 1]
    assert column(shown[""], "infeedTimeMs") == [5, 2]
    assert shown["xprof"]["p"]["steptime_ms_average"] == "12.0"


def test_levels_and_statements_of_bottlenecks(waiting):
    request = {key: tables(waiting(1, 1), compatible=key)[1]["p"] for key in ("", "xprof")}
    assert request[""]["kernel_launch_bottleneck"] == "no"
    assert request["xprof"]["kernel_launch_bottleneck"] == ""


def test_the_deviation_of_one_step(waiting):
    request = {key: tables(waiting(1), compatible=key)[1]["p"] for key in ("", "xprof")}
    assert request[""]["outfeed_time_ms_sdv"] == "0.0"
    assert request["xprof"]["outfeed_time_ms_sdv"] == "-nan"


def test_a_profile_without_steps_says_so(waiting):
    first, steps, _, advice, diagnostics = tables(waiting())
    assert first == {"cols": [], "rows": []}
    assert steps["rows"] == []
    assert len(advice["rows"]) == 5
    assert column(diagnostics, "severity") == ["WARNING"]
    assert column(diagnostics, "message")[0].startswith("No step marker observed")


def test_csv_gives_the_steps(waiting):
    lines = waiting(1, 2).tool(TOOL, format="csv").content.decode().splitlines()
    assert lines[0].startswith('"Step number","Device compute"')
    assert any(line.startswith('"train 1"') for line in lines)


def test_another_host_than_the_file_has(waiting):
    with pytest.raises(NotFoundError, match="no host 'other'"):
        waiting(1).tool(TOOL, host="other")


# TPUs: the core that waits longest for input decides, and the one that computes least.

CORES = (
    [("loop fusion", 4), ("infeed", 3), ("outfeed", 1)],
    [("convolution", 5), ("infeed", 1), ("sparsecorev0 infeed", 2), ("host send", 1)],
)


def averages(table):
    return {
        name.removesuffix("_ms_average"): float(value)
        for name, value in table["p"].items()
        if name.endswith("_ms_average")
    }


@each_row("compatible", ["", "xprof"])
def test_steps_of_tpus(opened, compatible):
    slowest, steps, *_ = tables(opened(tpu_space(*CORES), "host.xplane.pb"), compatible=compatible)
    assert [[cell["v"] for cell in row["c"]] for row in slowest["rows"]] == [
        ["Step number", "0", "1"],
        ["Core name", "host:0", "host:0"],
    ]
    assert column(steps, "stepnum") == ["0", "1"]
    first = {one["id"]: cell["v"] for one, cell in
             zip(steps["cols"], steps["rows"][0]["c"], strict=True)}  # fmt: skip
    assert first.pop("tooltip").endswith("input data = 3.000 ms, Step time = 10.000 ms")
    assert first == {
        "stepnum": "0", "tcComputeTimeMs": 4, "scv0ComputeTimeMs": 2, "scv0InfeedTimeMs": 0,
        "tcInfeedTimeMs": 3, "tcOutfeedTimeMs": 0.5, "tcIdleTimeMs": 0.5, "hostTransferTimeMs": 1,
        "infeedPercentAverage": 20, "infeedPercentMin": 10, "infeedPercentMax": 30,
    }  # fmt: skip
    assert averages(steps) == {
        "active_steptime": 4.5, "host_transfer": 1, "scv0_compute": 2, "scv0_infeed": 0,
        "steptime": 10, "tc_active": 4.5, "tc_compute": 4, "tc_idle": 0.5, "tc_infeed": 3,
        "tc_outfeed": 0.5,
    }  # fmt: skip
    assert "HIGHLY input-bound because 30.0%" in steps["p"]["input_conclusion"]
    assert "MODERATELY output-bound because 5.0%" in steps["p"]["output_conclusion"]
    assert steps["p"]["summary_nextstep"].startswith("Consider using ")


def test_sparse_cores_have_numbers_of_their_own(opened):
    sparse = [("loop fusion", 3), ("convolution", 2)]
    _, steps, *_ = tables(opened(tpu_space(*CORES, sparse=[sparse])))
    assert not {one["id"] for one in steps["cols"]} & {"scv0ComputeTimeMs", "scv0InfeedTimeMs"}
    result = averages(steps)
    assert {name: value for name, value in result.items() if name.startswith("sc")} == {
        "sc_active": 5, "sc_compute": 5, "sc_idle": 5, "sc_infeed": 0, "sc_outfeed": 0,
        "sc_step_time": 10,
    }  # fmt: skip
    # The busier of the two kinds of cores.
    assert (result["tc_active"], result["active_steptime"]) == (4.5, 5)


DATA = Path(__file__).parents[1] / "data"


def overview(path, **parameters):
    with peakline.open(path) as profile:
        return json.loads(profile.tool("overview_page", **parameters).content)


@pytest.fixture
def gpu(tmp_path):
    """Two steps of 10 ms; the GPU computes half of each, and the host waits for input before."""
    space = SpaceBuilder()
    line = space.host().line("main", 1)
    stream = space.plane("/device:GPU:0", {"device_vendor": "Nvidia", "compute_cap_major": 9})
    kernels = stream.line("Stream #1", 1)
    for number in range(2):
        begin = 10 * MS * number
        line.event("train", begin, 10 * MS, {"_r": 1, "step_num": number})
        line.event("IteratorGetNext", begin, 4 * MS)
        line.event("launch", begin + 4 * MS, MS, {"correlation_id": number + 1})
        kernels.event(
            "kernel", begin + 5 * MS, 5 * MS,
            {"correlation_id": number + 1, "tf_op": "dense/MatMul:MatMul",
             "kernel_details": "regs:8 grid:1,1,1 block:32,1,1"},
        )  # fmt: skip
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(space.space.SerializeToString())
    return path


def test_a_step_holds_what_the_host_did(gpu):
    top, steps, environment, advice, latency, nothing, diagnostics = overview(gpu)
    assert [row[2:4] for row in rows(top)] == [["MatMul", "dense/MatMul"]]
    first = dict(zip([column["id"] for column in steps["cols"]], rows(steps)[0], strict=True))
    assert first["stepTimeMs"] == 10.0
    assert (first["deviceComputeTimeMs"], first["infeedTimeMs"]) == (5.0, 4.0)
    assert first["kernelLaunchTimeMs"] == 1.0
    assert environment["p"]["device_type"] == "Nvidia GPU (Hopper)"
    assert advice["p"]["bottleneck"] == "host"
    assert (latency["rows"], nothing, diagnostics["rows"]) == ([], {}, [])


def test_as_xprof_it_leaves_the_host_out(gpu):
    _, steps, _, advice, *_ = overview(gpu, compatible="xprof")
    first = dict(zip([column["id"] for column in steps["cols"]], rows(steps)[0], strict=True))
    assert (first["infeedTimeMs"], first["kernelLaunchTimeMs"]) == (0.0, 0.0)
    assert advice["p"]["bottleneck"] == "device"


def test_what_the_profiler_reported_is_a_diagnosis(tmp_path):
    space = SpaceBuilder()
    space.host().line("a").event("x", 0, 1)
    space.space.errors.extend(["b", "a", "b"])
    space.space.warnings.append("w")
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(space.space.SerializeToString())
    *_, diagnostics = overview(path)
    severities = rows(diagnostics)
    assert [row for row in severities if row[0] == "ERROR"] == [["ERROR", "a"], ["ERROR", "b"]]
    assert severities[0] == ["WARNING", "w"]
    assert severities[1][1].startswith("No step marker observed")


def test_two_hosts_are_one_overview():
    session = next(DATA.glob("sessions/tf2_multihost/plugins/profile/*"))
    repository = peakline.Repository(DATA / "sessions" / "tf2_multihost")
    environment = json.loads(repository.session(session.name).tool("overview_page").content)[2]
    assert environment["p"]["host_count"] == "2"
    assert environment["p"]["task_count"] == "2 (num tasks per host = 1)"


def test_csv_is_the_first_table_of_overview_page(gpu):
    with peakline.open(gpu) as profile:
        content = profile.tool("overview_page", format="csv").content.decode()
    assert content.splitlines()[0].startswith('"Time (%)","Cumulative time (%)","Category"')
    assert len(content.splitlines()) == 2


@each_row(
    ("sparse", "more"),
    [
        ([], {"active_steptime_ms_average": "4.00"}),
        (
            [[("convolution", 6)]],
            {"active_steptime_ms_average": "6.00", "sc_active_ms_average": "6.00",
             "sc_idle_time_avg": "4.0", "sc_infeed_time_avg": "0.0", "sc_outfeed_time_avg": "0.0",
             "sc_steptime_average": "10.0"},
        ),
    ],
)  # fmt: skip
def test_tpus_tell_the_times_of_their_steps_beside_the_top_ops(tmp_path, sparse, more):
    path = tmp_path / "host.xplane.pb"
    core = [("loop fusion", 4), ("infeed", 3), ("outfeed", 1)]
    path.write_bytes(tpu_space(core, sparse=sparse).SerializeToString())
    result = {how: overview(path, compatible=how) for how in ("", "xprof")}
    for top, steps, environment, *_ in result.values():
        times = {name: value for name, value in top["p"].items() if name.startswith(("tc_", "sc_"))}
        times["active_steptime_ms_average"] = top["p"]["active_steptime_ms_average"]
        assert times == {"tc_active_ms_average": "4.00"} | more
        assert [row[0] for row in rows(steps)] == ["0", "1"]
        assert environment["p"]["device_type"] == "TPU v4"
    assert result[""][3]["p"]["bottleneck"] == "host"
    assert result[""][3]["p"]["statement"].startswith("Your program is HIGHLY input-bound")
    # XProf's words about TPUs do not reach its advice.
    assert result["xprof"][3]["p"]["bottleneck"] == result["xprof"][3]["p"]["statement"] == ""
