"""What a GPU did by the rows of TensorFlow's tracer: each thing once, and no launch of the host."""

import pytest
from click.testing import CliRunner
from tests.each_row import each_row
from tests.timing import traced_devices
from tests.timing.traced_devices import NEW, OLD, WORKER, Run, copy, gpu, kernel, union

import peakline
from peakline.cli.main import app
from peakline.document import ops_rows

US = 10**6
WRITERS = {"timeline.json": traced_devices.timeline, "step_stats.pbtxt": traced_devices.step_stats}


def a_step(names, gpus=2):
    """Kernels on two streams that overlap, copies of two directions, and one without a word."""
    runs = [Run("/job:localhost/replica:0/task:0/cpu:0", "feed", "Const", 5, 90, "feed = Const()")]
    for number in range(gpus):
        on, at = gpu(names, number), 1000 + 37 * number
        runs += kernel(on, 12, "a/MatMul", "MatMul", at, 40)
        runs += kernel(on, 13, "b/MatMul", "MatMul", at + 20, 50 * (number + 1))
        runs += kernel(on, 12, "loss/Add", "Add", at + 400, 8)
        runs += copy(on, 14, "edge_3_feed", "MEMCPYHtoD", at - 30, 25)
        runs += copy(on, 15, "loss/Add", "Add", at + 380, 2)
    return runs


def once(runs, on, *, copies):
    """The runs that the tracer saved of a GPU, each once; it says of each what it is by a row."""
    row = "memcpy" if copies else "stream:all"
    return [run for run in runs if run.device == f"{on.tracer}/{row}"]


@pytest.fixture(params=WRITERS)
def opened(request, tmp_path):
    def open_(runs):
        path = tmp_path / request.param
        path.write_text(WRITERS[request.param](runs))
        return peakline.open(str(path))

    return open_


@pytest.mark.parametrize("names", [OLD, NEW, WORKER], ids=["old", "new", "worker"])
def test_a_gpu_is_busy_for_what_its_tracer_saw_of_it(opened, names):
    runs = a_step(names)
    profile = opened(runs)
    devices = profile.table("device_time").to_pylist()
    assert [row["device"].rpartition("/")[2].lower()[-5:] for row in devices] == ["gpu:0", "gpu:1"]
    for number, row in enumerate(devices):
        on = gpu(names, number)
        kernels, copies = (once(runs, on, copies=which) for which in (False, True))
        assert row["busy_ps"] == union([*kernels, *copies]) * US
        assert row["compute_ps"] == union(kernels) * US
        assert row["copy_ps"] == union(copies) * US


def test_ops_of_a_device_are_not_what_the_host_launched(opened):
    runs = a_step(NEW)
    rows = opened(runs).table("op_stats").to_pylist()
    traced = [run for n in (0, 1) for c in (0, 1) for run in once(runs, gpu(NEW, n), copies=c)]
    launched = [run for run in runs if "stream" not in run.device and "memcpy" not in run.device]
    for side, expected in (("device", traced), ("host", launched)):
        own = {}
        for run in expected:
            name = run.name.partition(":")[0]
            own[name] = own.get(name, 0) + run.length * US
        result = {}
        for row in rows:
            if row["side"] == side and row["op"] != "IDLE":
                result[row["op"]] = result.get(row["op"], 0) + row["self_ps"]
        assert result == own


@pytest.mark.parametrize("names", [OLD, NEW, WORKER], ids=["old", "new", "worker"])
def test_kernels_of_one_name_are_of_the_run_on_their_own_gpu(opened, names):
    runs = []
    for number in range(3):
        launch, *ran = kernel(gpu(names, number), 12, "a/MatMul", "MatMul", 500, 40 + number)
        # All are launched before any begins.
        runs += [launch._replace(start=100 + number), *ran]
    (row,) = (row for row in opened(runs).table("op_stats").to_pylist() if row["side"] == "device")
    assert (row["occurrences"], row["total_ps"], row["max_ps"]) == (3, 123 * US, 42 * US)


def test_a_copy_that_is_in_three_rows_is_one(opened):
    runs = a_step(NEW)
    again = [run._replace(device=run.device.replace("memcpy", "stream:all")) for run in runs
             if "memcpy" in run.device]  # fmt: skip
    assert opened([*runs, *again]).table("op_stats") == opened(runs).table("op_stats")


@each_row("writer", WRITERS.values())
def test_types_of_ops_add_up(writer, tmp_path):
    runs = a_step(OLD, gpus=1)
    path = tmp_path / ("x.json" if writer is traced_devices.timeline else "x.pbtxt")
    path.write_text(writer(runs))
    rows = ops_rows(peakline.open(str(path)), "type")
    device = {row["type"]: row for row in rows if row["side"] == "device"}
    assert device["MatMul"]["self_ps"] == (40 + 50) * US
    assert device["MatMul"]["occurrences"] == 2
    host = {row["type"]: row["self_ps"] for row in rows if row["side"] == "host"}
    assert host["MatMul"] == 2 * 15 * US


def test_rows_without_numbered_streams_are_the_device(opened):
    runs = [run for run in a_step(OLD, gpus=1) if "stream:1" not in run.device]
    (row,) = opened(runs).table("device_time").to_pylist()
    on = gpu(OLD, 0)
    both = [*once(runs, on, copies=False), *once(runs, on, copies=True)]
    assert row["busy_ps"] == union(both) * US


def test_the_headline_is_of_the_busiest_gpu(tmp_path):
    path = tmp_path / "timeline.json"
    path.write_text(traced_devices.timeline(a_step(OLD)))
    profile = peakline.open(str(path))
    busiest = max(profile.table("device_time").to_pylist(), key=lambda row: row["busy_ps"])
    share = busiest["busy_ps"] / (busiest["end_ps"] - busiest["start_ps"])
    assert busiest["device"].lower().endswith("gpu:1")
    shown = CliRunner().invoke(app, [str(profile.path)]).output
    assert f"busiest of 2 devices busy {share:.0%}" in shown.splitlines()[0]


def test_without_a_tracer_the_timeline_answers_as_it_did(tmp_path):
    runs = [
        Run("/job:localhost/replica:0/task:0/cpu:0", f"op_{n}", "Add", 10 * n, 6, f"op_{n} = Add()")
        for n in range(4)
    ]
    path = tmp_path / "cpu.json"
    path.write_text(traced_devices.timeline(runs))
    profile = peakline.open(str(path))
    assert profile.table("device_time").num_rows == 0
    assert {row["side"] for row in profile.table("op_stats").to_pylist()} == {"host"}
