"""First uses, launches without their work, and work without its launch: said as such."""

import json

from click.testing import CliRunner
from tests.each_row import each_row

import peakline
from peakline.cli.main import app

US = 10**6


def x(cat, name, ts, dur, *, pid=7, tid=7, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur,
            "args": args}  # fmt: skip


def launched(number, name, at, *, call=8, delay=4, work=400, launch="cudaLaunchKernel"):
    """A call, and the kernel that it launches."""
    kernel = {"pid": 0, "tid": 7, "device": 0, "stream": 7, "correlation": number}
    return [
        x("cuda_runtime", launch, at, call, correlation=number),
        x("kernel", name, at + call + delay, work, **kernel),
    ]


def a_loop(begin, count, *, first=1, call=8):
    """Two kernels in turn, each launched while the one before it runs."""
    return [
        event
        for n in range(count)
        for event in launched(
            first + n, ("gemm", "relu")[n % 2], begin + 400 * n, call=call, delay=0 if n else 4
        )
    ]


def opened(folder, events):
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return peakline.open(str(path))


def kinds(profile):
    return [finding.kind for finding in profile.time().findings]


@each_row(("name", "took"), [
    ("cudaLaunchKernel", 90_000), ("cuLaunchKernelEx", 40_000), ("hipModuleLaunchKernel", 25_000),
])  # fmt: skip
def test_a_kernel_that_is_loaded_at_its_first_launch(tmp_path_factory, name, took):
    events = [
        *launched(1, "fill", 1000, launch=name),
        *launched(2, "add", 2000, call=took, launch=name),
        *a_loop(3000 + took, 100, first=3),
    ]
    profile = opened(tmp_path_factory.mktemp("first"), events)
    (finding,) = profile.time().findings
    assert (finding.kind, finding.severity) == ("first_use", "info")
    assert finding.evidence["first_use_ps"] == took * US
    assert finding.evidence["call"] == name
    assert "after a warm-up" in finding.suggestion


def test_calls_that_are_as_long_each_time_are_the_loops_fault(tmp_path):
    events = [
        one
        for n in range(12)
        for one in launched(n + 1, "gemm", 1000 + 30_000 * n, call=25_000, work=900)
    ]
    assert kinds(opened(tmp_path, events)) == ["host_bound"]


def test_a_copy_takes_as_long_as_it_has_to(tmp_path):
    events = [x("cuda_runtime", "cudaMemcpyAsync", 1000, 90_000, correlation=900)]
    events += a_loop(91_500, 100)
    assert "first_use" not in kinds(opened(tmp_path, events))


def test_the_first_run_of_ops_on_the_host(tmp_path):
    events = []
    for run, took in enumerate((60_000, 300, 310)):
        events.append(x("cpu_op", "aten::conv2d", 1000 + 70_000 * run, took))
        events.append(x("cpu_op", "aten::add", 64_000 + 70_000 * run, 4_000))
    (finding,) = opened(tmp_path, events).time().findings
    assert (finding.kind, finding.evidence["calls"]) == ("first_use", 1)
    assert finding.evidence["first_use_ps"] == 60_000 * US


@each_row(
    ("call", "how"),
    [
        ("cudaLaunchKernel", "CUPTI"),
        ("cuLaunchKernelEx", "CUPTI"),
        ("hipLaunchKernel", "/dev/kfd"),
        ("hipExtModuleLaunchKernel", "/dev/kfd"),
        ("musaLaunchKernel", "tracing library"),
        ("urEnqueueKernelLaunch", "tracing library"),
        ("zeCommandListAppendLaunchKernel", "tracing library"),
    ],
)
def test_launches_without_their_work_are_said(tmp_path_factory, call, how):
    events = [
        one
        for n in range(6)
        for one in (x("cpu_op", "aten::mm", 1000 * n, 900), x("cuda_runtime", call, 1000 * n, 30))
    ]
    path = str(opened(tmp_path_factory.mktemp("missing"), events).path)
    said = " ".join(CliRunner().invoke(app, [path]).output.split())
    assert f"the device's side is missing: launches ({call})" in said
    assert how in said


def test_work_whose_launch_lies_before_the_recording_is_counted(tmp_path):
    before = [
        x("kernel", "old", 100 + 50 * n, 45, pid=0, tid=7, device=0, stream=7, correlation=900 + n)
        for n in range(9)
    ]
    profile = opened(tmp_path, [*before, *a_loop(1000, 10)])
    (line,) = [text for text in profile.time().to_record if "before the recording" in text]
    assert line.startswith("of the first work of the devices 9 kernels or copies (0.405 ms)")
    whole = opened(tmp_path, a_loop(1000, 10))
    assert not any("before the recording" in text for text in whole.time().to_record)
