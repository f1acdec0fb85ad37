"""op_time: rows against the table op_stats and straight loops, of all and of one step."""

import csv
import io
import json
from collections import Counter, defaultdict

import pytest
from tests.engine.ending import DATA
from tests.tools.plain_steps import DATA_OF_STEPS
from tests.web.samples import gpu_profile

import peakline
from peakline.errors import NotFoundError

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
        found, table = answer(profile), profile.table("op_stats").to_pylist()
    keys = set(table[0]) - {"flops", "bytes_accessed"} if table else set()
    assert [{k: row[k] for k in keys} for row in found["ops"]] == [
        {k: row[k] for k in keys} for row in table
    ]
    assert found["host_ps"] == sum(row["self_ps"] for row in table if row["side"] == "host")


@pytest.mark.parametrize("name", DATA_OF_STEPS)
def test_steps_and_what_is_between_them_are_all(name):
    """Where the windows of the steps do not overlap, no run is counted twice."""
    with peakline.open(DATA / name) as profile:
        whole = {(r["side"], r["op"], r["op_type"]): r for r in answer(profile)["ops"]}
        sums, runs = Counter(), Counter()
        for step in profile.table("step_breakdown").to_pylist():
            if step["device"] not in {None, profile.table("step_breakdown")["device"][0].as_py()}:
                continue
            found = answer(profile, step=str(step["step_id"]), device=step["device"])
            assert found["steps"]["start_ps"] == step["start_ps"]
            for row in found["ops"]:
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
                found = (
                    answer(profile, plane=plane, step=step)
                    if step
                    else answer(profile, plane=plane)
                )
                window = found["steps"]
                gemms = [
                    event["duration_ps"]
                    for event in events
                    if event["name"] == "gemm"
                    and lines[event["line_id"]] == plane
                    and (not window or window["start_ps"] <= event["start_ps"] < window["end_ps"])
                ]
                (row,) = [row for row in found["ops"] if row["op"] == "gemm"]
                assert (row["occurrences"], row["total_ps"]) == (len(gemms), sum(gemms))


@pytest.mark.parametrize("name", OF_MEMORY)
def test_memory_is_that_of_a_loop_over_the_buffers(name):
    with peakline.open(DATA / name) as profile:
        found = answer(profile)
        buffers = profile.table("buffers").to_pylist()
    moments = defaultdict(list)
    for one in buffers:
        size = one["allocated_bytes"]
        size = (one["requested_bytes"] or 0) if size is None else size
        start = -(2**62) if one["start_ps"] is None else one["start_ps"]
        moments[one["op"]].append((start, size))
        if one["end_ps"] is not None:
            moments[one["op"]].append((one["end_ps"], -size))
    assert found["has_memory"]
    for row in found["ops"]:
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
        found = answer(profile)
        table = json.loads(profile.tool("roofline_model").content)[0]
    names = [column["id"] for column in table["cols"]]
    rows = [dict(zip(names, [c["v"] for c in row["c"]], strict=True)) for row in table["rows"]]
    (program,) = [r for r in rows if r["operation"] == "Program"][:1]
    intensity = program["operational_intensity"]
    flops = sum(row["flops"] or 0 for row in found["ops"])
    moved = sum(row["bytes_accessed"] or 0 for row in found["ops"])
    assert found["roofline"]["reason"] is None
    assert flops / moved == pytest.approx(intensity, rel=0.05)


def test_without_programs_the_reason_is_said():
    with peakline.open(DATA / "programs/time/slow_step.xplane.pb.gz") as profile:
        assert "no op's operations and bytes are known" in answer(profile)["roofline"]["reason"]


def test_csv_has_the_rows():
    with peakline.open(DATA / "programs/time/slow_step.xplane.pb.gz") as profile:
        content = profile.tool("op_time", format="csv", step="train 6").content.decode()
        found = answer(profile, step="train 6")["ops"]
        rows = list(csv.DictReader(io.StringIO(content)))
        assert [int(row["self_ps"]) for row in rows] == [row["self_ps"] for row in found]
        with pytest.raises(NotFoundError):
            answer(profile, step="none")
