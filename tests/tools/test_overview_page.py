"""The overview of a session; that its numbers are XProf's is shown in tests/conformance."""

import json
from pathlib import Path

import pytest
from tests.each_row import each_row
from tests.reference.xspace_builder import SpaceBuilder
from tests.tools.tpus import tpu_space

import peakline

DATA = Path(__file__).parents[1] / "data"
MS = 10**9


def overview(path, **parameters):
    with peakline.open(path) as profile:
        return json.loads(profile.tool("overview_page", **parameters).content)


def rows(table):
    return [[cell["v"] for cell in row["c"]] for row in table["rows"]]


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


def test_csv_is_the_first_table(gpu):
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
    found = {how: overview(path, compatible=how) for how in ("", "xprof")}
    for top, steps, environment, *_ in found.values():
        times = {name: value for name, value in top["p"].items() if name.startswith(("tc_", "sc_"))}
        times["active_steptime_ms_average"] = top["p"]["active_steptime_ms_average"]
        assert times == {"tc_active_ms_average": "4.00"} | more
        assert [row[0] for row in rows(steps)] == ["0", "1"]
        assert environment["p"]["device_type"] == "TPU v4"
    assert found[""][3]["p"]["bottleneck"] == "host"
    assert found[""][3]["p"]["statement"].startswith("Your program is HIGHLY input-bound")
    # XProf's words about TPUs do not reach its advice.
    assert found["xprof"][3]["p"]["bottleneck"] == found["xprof"][3]["p"]["statement"] == ""
