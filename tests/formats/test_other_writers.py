"""Chrome traces of writers without Kineto's categories, in words of several versions."""

import json

import pytest
from click.testing import CliRunner
from tests.each_row import each_row

import peakline
from peakline.cli.main import app
from peakline.timing.ops.places import type_times

US = 10**6


def written(folder, events, **around):
    path = folder / "trace.json"
    path.write_text(json.dumps({**around, "traceEvents": events} if around else events))
    return str(path)


def self_times(events):
    """Of complete events, one thread, the time of each name without what lies within, us by us."""
    own = {}
    for at in {t for one in events for t in range(one["ts"], one["ts"] + one["dur"])}:
        around = [one for one in events if one["ts"] <= at < one["ts"] + one["dur"]]
        inner = max(around, key=lambda one: (one["ts"], -one["dur"]))
        own[inner["name"]] = own.get(inner["name"], 0) + 1
    return own


def ops(path, side):
    rows = peakline.open(path).table("op_stats").to_pylist()
    return {row["op"]: row["self_ps"] // US for row in rows if row["side"] == side}


def old(name, ts, dur, pid="CPU functions", tid=1):
    return {"name": name, "ph": "X", "ts": ts, "dur": dur, "tid": tid, "pid": pid, "args": {}}


@each_row(("prefix", "device"), [("aten::", ""), ("", "CUDA"), ("aten::", "XPU")])
def test_the_profiler_of_pytorch_before_kineto(tmp_path_factory, prefix, device):
    tree = [("conv2d", 0, 90), ("_convolution", 5, 80), ("cudnn_convolution", 10, 60),
            ("relu", 100, 30), ("clamp_min", 104, 20)]  # fmt: skip
    host = [old(prefix + name, ts, dur) for name, ts, dur in tree]
    # Of an op that calls others the device's time holds theirs, as the events around them say.
    gpu = [old(prefix + name, 40 + ts, dur, f"{device} functions", 0) for name, ts, dur in tree]
    path = written(tmp_path_factory.mktemp("old"), host + (gpu if device else []))
    assert ops(path, "host") == self_times(host)
    profile = peakline.open(path)
    times = profile.table("device_time").to_pylist()
    assert [row["busy_ps"] // US for row in times] == ([120] if device else [])
    if device:
        assert ops(path, "device") == self_times(gpu)
    assert "most self time" in CliRunner().invoke(app, [path]).output


def ort_run(at, nodes, *, provider="CPUExecutionProvider"):
    """What ONNX Runtime writes of a run: children before what is around them."""

    def one(cat, name, ts, dur, **args):
        return {"cat": cat, "pid": 9, "tid": 4, "ts": ts, "dur": dur, "ph": "X", "name": name,
                "args": args}  # fmt: skip

    ts, events = at + 20, []
    for name, op, dur in nodes:
        said = {"op_name": op}
        events.append(one("Node", f"{name}_fence_before", ts, 0, **said))
        events.append(one("Node", f"{name}_kernel_time", ts, dur, provider=provider, **said))
        events.append(one("Node", f"{name}_fence_after", ts + dur, 0, **said))
        ts += dur + 3
    events.append(one("Session", "SequentialExecutor::Execute", at + 10, ts - at))
    events.append(one("Session", "model_run", at, ts - at + 15))
    return events, ts + 30


@pytest.mark.parametrize("provider", ["CPUExecutionProvider", "ROCMExecutionProvider"])
def test_runs_and_nodes_of_onnx_runtime(tmp_path, provider):
    nodes = [("conv1/Conv", "Conv", 70), ("Relu_3", "Relu", 9), ("fc", "Gemm", 31)]
    events, at = [], 500
    for _ in range(4):
        made, at = ort_run(at, nodes, provider=provider)
        events += made
    path = written(tmp_path, events)
    assert ops(path, "host") == {name: 4 * dur for name, _, dur in nodes}
    profile = peakline.open(path)
    types = {row["op"]: row["op_type"] for row in profile.table("op_stats").to_pylist()}
    assert types == {name: op for name, op, _ in nodes}
    runs = [one for one in events if one["name"] == "model_run"]
    steps = profile.table("steps").to_pylist()
    assert [row["name"] for row in steps] == [f"model_run {n}" for n in range(4)]
    assert [(row["end_ps"] - row["start_ps"]) // US for row in steps] == [
        one["dur"] for one in runs
    ]
    assert profile.table("device_time").num_rows == 0
    said = CliRunner().invoke(app, [path]).output
    assert ("is the host's, which launches" in said) == (provider[:3] != "CPU")


def test_kernels_of_onnx_runtime_are_of_their_nodes(tmp_path):
    events, at = [], 500
    for run in range(3):
        made, at = ort_run(at, [("conv1", "Conv", 70), ("fc", "Gemm", 31)], provider="CUDA")
        events += made
        for ts, dur, said in (
            (at - 90, 40, {"op_name": "Conv", "parent_name": "conv1_kernel_time"}),
            (at - 50, 5, {"op_name": "Conv", "parent_name": "conv1_kernel_time"}),
            (at - 40, 20, {"op_name": "Gemm"}),
        ):
            events.append({
                "cat": "Kernel", "pid": -1, "tid": -1, "ts": ts, "dur": dur, "ph": "X",
                "name": f"void k<{run}>()", "args": {"stream": "0x7f", **said},
            })  # fmt: skip
    path = written(tmp_path, events)
    assert ops(path, "device") == {"conv1": 3 * 45, "Gemm": 3 * 20}
    types = {one.type: one.self_ps // US for one in type_times(peakline.open(path))
             if one.side == "device"}  # fmt: skip
    assert types == {"Conv": 3 * 45, "Gemm": 3 * 20}


@each_row(("category", "name", "pid"), [("COLL", "AllReduce", 3), ("request", "generate", "vllm")])
def test_asynchronous_operations_are_named_with_what_to_do(tmp_path_factory, category, name, pid):
    events = []
    for n in range(5):
        one = {"cat": category, "name": name, "pid": pid, "tid": 0, "id": n}
        events += [{**one, "ph": "b", "ts": 100 * n}, {**one, "ph": "e", "ts": 100 * n + 140 + n}]
    path = written(tmp_path_factory.mktemp("async"), events)
    said = CliRunner().invoke(app, [path]).output
    assert f"{name} 0.710 ms in 5 runs, 0.142 ms each (median)" in said
    assert "peakline trace shows them" in " ".join(said.split())
    assert "neither memory nor time" not in said
    assert "nothing stands out" not in said
