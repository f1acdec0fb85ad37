"""Time by op and on the critical path."""

import csv
import io
import json
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from tests.each_row import each_row
from tests.engine.ending import DATA
from tests.reference.xspace_builder import SpaceBuilder
from tests.shared import shared
from tests.tables.fake import FakeReader
from tests.tools.plain_steps import DATA_OF_STEPS
from tests.web.samples import gpu_profile

import peakline
from peakline.api import Profile
from peakline.errors import NotFoundError, UsageError
from peakline.timing.critical_path.path import critical_path_of

OF_MEMORY = (
    "programs/busy_pipeline.xplane.pb.gz",
    "programs/leak_list.xplane.pb.gz",
    "programs/time/slow_step.xplane.pb.gz",
    "chrome_trace/noleak.pt.trace.json.gz",
)


def answer(profile, **parameters):
    return json.loads(profile.tool("op_time", **parameters).content)


@pytest.mark.parametrize("name", [*DATA_OF_STEPS, *OF_MEMORY])
def test_all_is_the_table(name):
    with peakline.open(DATA / name) as profile:
        result, table = answer(profile), profile.table("op_stats").to_pylist()
    keys = set(table[0]) - {"flops", "bytes_accessed"} if table else set()
    assert [{k: row[k] for k in keys} for row in result["ops"]] == [
        {k: row[k] for k in keys} for row in table
    ]
    assert result["host_ps"] == sum(row["self_ps"] for row in table if row["side"] == "host")


@pytest.mark.parametrize("name", DATA_OF_STEPS)
def test_steps_and_what_is_between_them_are_all(name):
    """Where the windows of the steps do not overlap, no run is counted twice."""
    with peakline.open(DATA / name) as profile:
        whole = {(r["side"], r["op"], r["op_type"]): r for r in answer(profile)["ops"]}
        sums, runs = Counter(), Counter()
        for step in profile.table("step_breakdown").to_pylist():
            if step["device"] not in {None, profile.table("step_breakdown")["device"][0].as_py()}:
                continue
            result = answer(profile, step=str(step["step_id"]), device=step["device"])
            assert result["steps"]["start_ps"] == step["start_ps"]
            for row in result["ops"]:
                key = row["side"], row["op"], row["op_type"]
                sums[key] += row["total_ps"]
                runs[key] += row["occurrences"]
                assert row["min_ps"] >= whole[key]["min_ps"]
                assert row["max_ps"] <= whole[key]["max_ps"]
        for key, row in whole.items():
            assert runs[key] <= row["occurrences"]
            assert sums[key] <= row["total_ps"]
        assert sum(runs.values()) > 0


@pytest.mark.parametrize("name", [*DATA_OF_STEPS, *OF_MEMORY])
def test_planes_are_together_all(name):
    with peakline.open(DATA / name) as profile:
        whole = answer(profile)
        parts = [answer(profile, plane=plane) for plane in whole["planes"]]
        for kind in ("host_ps", "device_ps"):
            assert sum(part[kind] for part in parts) == whole[kind]
        sums, runs = Counter(), Counter()
        for part in parts:
            for row in part["ops"]:
                key = row["side"], row["op"], row["op_type"]
                sums[key] += row["total_ps"]
                runs[key] += row["occurrences"]
        assert {key: value for key, value in sums.items() if value} == {
            (row["side"], row["op"], row["op_type"]): row["total_ps"]
            for row in whole["ops"]
            if row["total_ps"]
        }
        for row in whole["ops"]:
            assert runs[row["side"], row["op"], row["op_type"]] >= row["occurrences"]
        with pytest.raises(NotFoundError, match="no ops on a plane 'x'"):
            answer(profile, plane="x")


def test_a_plane_has_the_runs_of_its_lines(tmp_path):
    """Against the table of events: kernels of one of three devices, all and in one step."""
    path = tmp_path / "gpus.xplane.pb"
    path.write_bytes(gpu_profile())
    with peakline.open(path) as profile:
        names = {row["plane_id"]: row["name"] for row in profile.table("planes").to_pylist()}
        lines = {
            row["line_id"]: names[row["plane_id"]] for row in profile.table("lines").to_pylist()
        }
        events = profile.table("events").to_pylist()
        for plane in ("/device:GPU:0", "/device:GPU:1"):
            for step in (None, "1"):
                result = (
                    answer(profile, plane=plane, step=step)
                    if step
                    else answer(profile, plane=plane)
                )
                window = result["steps"]
                gemms = [
                    event["duration_ps"]
                    for event in events
                    if event["name"] == "gemm"
                    and lines[event["line_id"]] == plane
                    and (not window or window["start_ps"] <= event["start_ps"] < window["end_ps"])
                ]
                (row,) = [row for row in result["ops"] if row["op"] == "gemm"]
                assert (row["occurrences"], row["total_ps"]) == (len(gemms), sum(gemms))


@pytest.mark.parametrize("name", OF_MEMORY)
def test_memory_is_that_of_a_loop_over_the_buffers(name):
    with peakline.open(DATA / name) as profile:
        result = answer(profile)
        buffers = profile.table("buffers").to_pylist()
    moments = defaultdict(list)
    for one in buffers:
        size = one["allocated_bytes"]
        size = (one["requested_bytes"] or 0) if size is None else size
        start = -(2**62) if one["start_ps"] is None else one["start_ps"]
        moments[one["op"]].append((start, size))
        if one["end_ps"] is not None:
            moments[one["op"]].append((one["end_ps"], -size))
    assert result["has_memory"]
    for row in result["ops"]:
        if row["allocated_bytes"] is None:
            continue
        own = sorted(moments[row["op"]])
        live = peak = 0
        for _, change in own:
            live += change
            peak = max(peak, live)
        assert row["allocated_bytes"] == sum(change for _, change in own if change > 0)
        assert row["peak_live_bytes"] == peak


def test_costs_are_those_of_the_programs():
    """Of a CPU the sums over all ops are those of the instructions that roofline_model has."""
    with peakline.open(DATA / "programs/time/recompiling.xplane.pb.gz") as profile:
        result = answer(profile)
        table = json.loads(profile.tool("roofline_model").content)[0]
    names = [column["id"] for column in table["cols"]]
    rows = [dict(zip(names, [c["v"] for c in row["c"]], strict=True)) for row in table["rows"]]
    (program,) = [r for r in rows if r["operation"] == "Program"][:1]
    intensity = program["operational_intensity"]
    flops = sum(row["flops"] or 0 for row in result["ops"])
    moved = sum(row["bytes_accessed"] or 0 for row in result["ops"])
    assert result["roofline"]["reason"] is None
    assert flops / moved == pytest.approx(intensity, rel=0.05)


def test_without_programs_the_reason_is_said():
    with peakline.open(DATA / "programs/time/slow_step.xplane.pb.gz") as profile:
        assert "no op's operations and bytes are known" in answer(profile)["roofline"]["reason"]


def test_csv_has_the_rows():
    with peakline.open(DATA / "programs/time/slow_step.xplane.pb.gz") as profile:
        content = profile.tool("op_time", format="csv", step="train 6").content.decode()
        result = answer(profile, step="train 6")["ops"]
        rows = list(csv.DictReader(io.StringIO(content)))
        assert [int(row["self_ps"]) for row in rows] == [row["self_ps"] for row in result]
        with pytest.raises(NotFoundError):
            answer(profile, step="none")


SAMPLES = [
    *sorted((DATA / "sessions").glob("*/plugins/profile/*/*.xplane.pb*")),
    *sorted((DATA / "programs" / "time").glob("*.xplane.pb*")),
    *sorted((DATA / "run_metadata").glob("*.pb.gz")),
]
US = 10**6


def ask(profile, **parameters):
    return json.loads(profile.tool("critical_path", **parameters).content)


def details(profile, event):
    answer = profile.tool("timeline", view="event", event=event, with_step=False)
    return json.loads(answer.content)["details"]


@pytest.fixture
def gpu(opened):
    """A step of 100 us whose only kernel is launched at 10 us and runs from 30 to 100."""
    space = SpaceBuilder()
    space.plane("/device:GPU:0").line("Stream #1(Compute)").event(
        "gemm", 30 * US, 70 * US, {"correlation_id": 1}
    )
    thread = space.host().line("python")
    thread.event("train", 0, 90 * US, {"step_num": 7, "_r": 1})
    thread.event("cudaLaunchKernel", 10 * US, 5 * US, {"correlation_id": 1})
    return opened(space)


def test_the_document_of_a_step(gpu):
    thread = {"device": "/host:CPU", "line": 1, "line_name": "python"}
    stream = {"device": "/device:GPU:0", "line": 0, "line_name": "Stream #1(Compute)"}
    assert ask(gpu) == {
        "step_id": 0,
        "step_name": "train 7",
        "device": "/device:GPU:0",
        "source": "links",
        "start_ps": 0,
        "end_ps": 100 * US,
        "explained": 1.0,
        "busy_ps": 100 * US,
        "wait_ps": 0,
        "guesses": 0,
        "is_cut": False,
        "segments": [
            {
                "op": "train", "kind": "host", "why": "start", **thread, "event": 1,
                "start_ps": 0, "end_ps": 10 * US, "own_ps": 10 * US, "wait_ps": 0,
                "slack_ps": None,
            },
            {
                "op": "cudaLaunchKernel", "kind": "launch", "why": "thread", **thread, "event": 2,
                "start_ps": 10 * US, "end_ps": 30 * US, "own_ps": 20 * US, "wait_ps": 0,
                "slack_ps": None,
            },
            {
                "op": "gemm", "kind": "op", "why": "launch", **stream, "event": 0,
                "start_ps": 30 * US, "end_ps": 100 * US, "own_ps": 70 * US, "wait_ps": 0,
                "slack_ps": 0,
            },
        ],
        "ops": [
            {"op": "gemm", "kind": "op", "own_ps": 70 * US, "count": 1},
            {"op": "cudaLaunchKernel", "kind": "launch", "own_ps": 20 * US, "count": 1},
            {"op": "train", "kind": "host", "own_ps": 10 * US, "count": 1},
        ],
        "kinds": {"host": 10 * US, "launch": 20 * US, "op": 70 * US},
        "near": [],
    }  # fmt: skip


@each_row("profiled", SAMPLES)
def test_it_is_the_path_of_the_library_with_the_events_of_the_timeline(profiled):
    profile = shared(profiled)
    result = ask(profile)
    path = critical_path_of(profile, str(result["step_id"]))
    lanes = json.loads(profile.tool("timeline", view="lanes").content)
    segments = result["segments"]
    assert [(own["op"], own["kind"], own["start_ps"], own["end_ps"]) for own in segments] == [
        (piece.name, piece.kind, piece.begin_ps, piece.end_ps) for piece in path.pieces
    ]
    free = result["start_ps"]
    for own in segments:
        assert own["start_ps"] - own["wait_ps"] == free
        assert own["wait_ps"] >= 0
        assert lanes["line_name"][own["line"]] == own["line_name"]
        assert lanes["plane_name"][lanes["line_plane"][own["line"]]] == own["device"]
        free = own["end_ps"]
    assert result["busy_ps"] + result["wait_ps"] == result["end_ps"] - result["start_ps"]
    assert sum(own["own_ps"] for own in result["ops"]) == result["busy_ps"]
    assert sum(result["kinds"].values()) == result["busy_ps"]
    assert {(own["kind"], own["op"]): own["count"] for own in result["ops"]} == Counter(
        (own["kind"], own["op"]) for own in segments
    )
    for own in segments[:40]:
        if own["event"] is None:
            assert own["op"] == "(going on)"
            continue
        event = details(profile, own["event"])
        assert (event["name"], event["line"]) == (own["op"], own["line"])
        assert event["start_ps"] <= own["start_ps"] < own["end_ps"] <= event["end_ps"]


@each_row("name", ["tf1_cnn_2", "tf1_control_flow_4", "tf1_grpc"])
def test_of_a_graph_it_is_the_path_of_the_graph_tool(name):
    with peakline.open(DATA / "run_metadata" / f"{name}.pb.gz") as profile:
        result = ask(profile)
        graph = json.loads(profile.tool("graph").content)["critical_path"]
    assert result["source"] == "graph"
    for own in ("step_id", "start_ps", "end_ps", "busy_ps", "wait_ps"):
        assert result[own] == graph[own], own
    assert [
        (own["op"], own["device"], own["start_ps"], own["own_ps"], own["why"])
        for own in result["segments"]
    ] == [
        (own["name"], own["device"], own["begin_ps"], own["busy_ps"], own["why"])
        for own in graph["pieces"]
    ]


def test_work_beside_the_path_is_told_with_its_event(gpu, opened):
    space = SpaceBuilder()
    space.space.CopyFrom(type(space.space).FromString(Path(gpu.path).read_bytes()))
    other = space.space.planes[0].lines.add(name="Stream #2(Compute)", id=9)
    copied = other.events.add()
    copied.CopyFrom(space.space.planes[0].lines[0].events[0])
    copied.offset_ps, copied.duration_ps = 30 * US, 20 * US
    profile = opened(space)
    assert ask(profile)["near"] == [
        {
            "op": "gemm", "device": "/device:GPU:0", "line": 1,
            "line_name": "Stream #2(Compute)", "event": 1,
            "start_ps": 30 * US, "end_ps": 50 * US, "slack_ps": 50 * US,
        }
    ]  # fmt: skip


def test_by_default_it_is_the_median_step():
    with peakline.open(DATA / "programs/time/slow_step.xplane.pb.gz") as profile:
        steps = json.loads(profile.tool("step_breakdown").content)["steps"]
        walls = sorted(step["wall_ps"] for step in steps)
        result = ask(profile)
        assert result["end_ps"] - result["start_ps"] == walls[(len(walls) - 1) // 2]
        assert ask(profile, step="train 3")["step_id"] == 3


def test_where_nothing_ran_there_is_no_path():
    result = ask(Profile(FakeReader({})))
    assert (result["source"], result["step_id"], result["segments"]) == (None, None, [])


def test_steps_and_devices_that_are_not_there(gpu):
    with pytest.raises(NotFoundError, match="no step 'x'"):
        ask(gpu, step="x")
    with pytest.raises(NotFoundError, match="no device 'x' with work"):
        ask(gpu, device="x")
    with pytest.raises(UsageError, match="no parameter 'steps'"):
        ask(gpu, steps="x")
