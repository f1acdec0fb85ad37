"""Where in the model the time of ops goes."""

import json

from tests.analysis import torch_jobs
from tests.sources.chrome_traces import opened

from peakline.timing.op_stats import op_times
from peakline.timing.ops.places import module_times, shape_times

US = 10**6


def of(rows, *names):
    return [tuple(getattr(row, name) for name in names) for row in rows]


def test_modules_of_both_passes(tmp_path):
    profile = opened(tmp_path, {"traceEvents": torch_jobs.training(1)})
    rows = module_times(profile)
    # linear and addmm take 6 us, the node of its gradient and the mm in it 10.
    assert of(rows, "side", "module", "self_ps", "total_ps", "occurrences") == [
        ("host", "Linear_0", 16 * US, 16 * US, 4),
        ("host", "", 12 * US, 12 * US, 6),
        ("host", "Net_0", 0, 16 * US, 0),
    ]
    assert sum(row.self_ps for row in rows) == op_times(profile).host_ps


def test_shapes_of_inputs(tmp_path):
    profile = opened(tmp_path, {"traceEvents": torch_jobs.training(2)})
    rows = shape_times(profile)
    (known,) = [row for row in rows if row.input_shape]
    assert (known.op, known.input_shape) == ("aten::addmm", "[2], [8, 4], [4, 2]")
    assert (known.occurrences, known.self_ps, known.median_ps) == (2, 8 * US, 4 * US)
    assert sum(row.self_ps for row in rows) == op_times(profile).host_ps


def test_both_are_tables_of_sql(tmp_path):
    profile = opened(tmp_path, {"traceEvents": torch_jobs.training(1)})
    modules = profile.sql("select module, self_ps from module_time").to_pylist()
    shapes = profile.sql("select op, input_shape, self_ps from shape_time").to_pylist()
    assert modules == [
        {"module": row.module or None, "self_ps": row.self_ps} for row in module_times(profile)
    ]
    assert shapes == [
        {"op": row.op, "input_shape": row.input_shape or None, "self_ps": row.self_ps}
        for row in shape_times(profile)
    ]


def test_kernels_are_of_the_module_of_the_op_that_launched_them(tmp_path):
    trace = torch_jobs.Trace()
    trace.run("nn.Module: Conv2d_0", 0, 20, torch_jobs.MODULE)
    trace.run("aten::conv2d", 1, 10, **{"Input Dims": [[4, 3, 8, 8]]})
    trace.run("cudaLaunchKernel", 2, 3, "cuda_runtime", correlation=7)
    for ts in (12, 14):
        kernel = {
            "ph": "X", "pid": 0, "tid": 7, "ts": ts, "dur": 1, "name": "gemm", "cat": "kernel",
            "args": {"correlation": 7, "device": 0, "stream": 7},
        }  # fmt: skip
        trace.events.append(kernel)
    profile = opened(tmp_path, {"traceEvents": trace.events})
    device = [row for row in module_times(profile) if row.side == "device"]
    # Two kernels of one run of the op are one run.
    assert of(device, "module", "self_ps", "occurrences") == [("Conv2d_0", 2 * US, 1)]
    device = [row for row in shape_times(profile) if row.side == "device"]
    assert of(device, "op", "input_shape") == [("aten::conv2d", "[4, 3, 8, 8]")]


def test_nothing_where_neither_is_recorded(tmp_path):
    trace = torch_jobs.training(1, stacks=False, shapes=False)
    profile = opened(tmp_path, json.dumps({"traceEvents": trace}).encode())
    assert module_times(profile) == shape_times(profile) == ()


def test_an_op_without_a_name_has_the_empty_one(tmp_path):
    trace = torch_jobs.Trace()
    trace.run("", 1, 5, **{"Input Dims": [[2]]})
    (row,) = opened(tmp_path, {"traceEvents": trace.events}).table("shape_time").to_pylist()
    assert (row["op"], row["input_shape"]) == ("", "[2]")
