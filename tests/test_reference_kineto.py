"""The plain reader of PyTorch's traces: every rule on a few records, and 200 odd traces."""

import json

import pytest

from reference.kineto import Step, Trace, union
from reference.odd_traces import ODDITIES, odd_trace
from tests.each_row import each_row

_US = 10**6


def event(name, cat, ts, dur, *, pid=1, tid=5, **args):
    return {
        "ph": "X", "name": name, "cat": cat, "pid": pid, "tid": tid, "ts": ts, "dur": dur,
        "args": args,
    }  # fmt: skip


def trace_of(*records):
    return Trace(json.dumps({"traceEvents": records}))


def busy_of(*records):
    return {device: work.busy_ps for device, work in trace_of(*records).devices().items()}


def steps_of(*records):
    return [(step.name, step.number, step.is_cut_off) for step in trace_of(*records).steps()]


@each_row(
    "spans, length",
    [
        ([], 0),
        ([(3, 5)], 2),
        ([(3, 5), (5, 6)], 3),
        ([(8, 9), (1, 7), (2, 4), (6, 8)], 8),
        ([(4, 4)], 0),
    ],
)
def test_union(spans, length):
    assert union(spans) == length


def test_the_category_says_what_is_work_and_not_the_pid():
    found = busy_of(
        event("k", "kernel", 10, 5, pid=0, tid=7, device=0, stream=7),
        event("c", "gpu_memcpy", 12, 5, pid=0, tid=20, device=0, stream=20),
        event("bootstrap", "python_function", 0, 100, pid=0, tid=0),
        event("hipFree", "cuda_runtime", 0, 100, pid=0, tid=3, device=0, stream="0x0"),
        event("ProfilerStep#1", "gpu_user_annotation", 9, 50, pid=0, tid=7),
        event("Stream Sync", "cuda_sync", 9, 50, pid=0, tid=7, device=0, stream=7),
    )
    assert found == {("0", "0"): 7 * _US}


@each_row("cat", ["kernel", "Kernel", "gpu_memset", "Memcpy", "mtia_ccp_events", "hpu_op"])
def test_without_a_device_it_is_the_pid(cat):
    assert busy_of(event("k", cat, 1, 2, pid=17, tid=108, stream=108)) == {("17", "17"): 2 * _US}


def test_what_waits_for_another_stream_of_an_mtia_is_no_work():
    assert busy_of(
        event("merge", "mtia_ccp_events", 1, 2, pid=17, stream=108),
        event("event_wait", "mtia_ccp_events", 5, 9, pid=17, stream=108, wait_on_stream=104),
    ) == {("17", "17"): 2 * _US}


def test_an_unknown_category_is_work_where_device_and_stream_are_named():
    assert busy_of(
        event("a", "npu_activity", 1, 2, pid=3, device=0, stream=7),
        event("b", "npu_runtime", 1, 9, pid=3, device=0),
        event("c", "", 1, 9, pid=3, device=0, stream=7),
    ) == {("3", "0"): 2 * _US}


def test_devices_of_merged_ranks_are_several():
    one, other = ({"pid": pid, "device": 0, "stream": 7} for pid in (0, 1000))
    found = busy_of(event("k", "kernel", 1, 2, **one), event("k", "kernel", 2, 5, **other))
    assert found == {("0", "0"): 2 * _US, ("1000", "0"): 5 * _US}


def test_what_a_device_did():
    at = {"pid": 0, "tid": 7, "device": 0}
    trace = trace_of(
        event("k", "kernel", 10, 5, **at),
        event("ncclDevKernel_AllReduce", "kernel", 12, 8, **at),
        event("k2", "kernel", 30, 0.5, **{"Collective name": "allreduce"}, **at),
        event("Memcpy HtoD (Pageable -> Device)", "gpu_memcpy", 40, 3, **at),
        event("CopyBuffer", "gpu_memcpy", 42, 3, kind="DtoH", **at),
        event("Memset (Device)", "gpu_memset", 50, 1, **at),
    )
    (work,) = trace.devices().values()
    assert (work.start_ps, work.end_ps, work.idle_ps) == (10 * _US, 51 * _US, 24_500_000)
    assert (work.busy_ps, work.communication_ps) == (16_500_000, 8_500_000)
    assert (work.copy_ps, work.copies_ps) == (5 * _US, {"HtoD": 3 * _US, "DtoH": 3 * _US})
    assert trace.kernels() == {
        "k": (1, 5 * _US), "ncclDevKernel_AllReduce": (1, 8 * _US), "k2": (1, 500_000),
    }  # fmt: skip


def test_the_self_time_of_ops():
    trace = trace_of(
        event("aten::mm", "cpu_op", 12, 3),
        event("aten::linear", "cpu_op", 10, 10),
        event("aten::t", "cpu_op", 16, 1),
        event("cudaLaunchKernel", "cuda_runtime", 12, 1),
        event("aten::mm", "cpu_op", 12, 2, tid=6),
        event("ProfilerStep#1", "Operator", 0, 100),
    )
    assert trace.ops() == {
        "aten::linear": (1, 10 * _US, 6 * _US),
        "aten::mm": (2, 5 * _US, 5 * _US),
        "aten::t": (1, _US, _US),
    }


def test_pytorch_s_own_marks():
    op = event("aten::mm", "cpu_op", 12, 3)
    marks = [event(f"ProfilerStep#{n}", "user_annotation", 10 * n, 10) for n in (2, 1)]
    copy = event("ProfilerStep#1", "gpu_user_annotation", 12, 3, pid=0, tid=7)
    by_hand = [event("train", "user_annotation", 10 * n, 9) for n in (1, 2)]
    found = trace_of(op, *marks, copy, *by_hand).steps()
    thread = ("1", "5")
    assert found == [
        Step("ProfilerStep#1", 1, thread, 10 * _US, 20 * _US),
        Step("ProfilerStep#2", 2, thread, 20 * _US, 30 * _US),
    ]


def test_marks_with_a_number():
    marks = [event("train", "", 10 * n, 8, step_num=n) for n in (7, 8)]
    assert [step.shown for step in trace_of(*marks).steps()] == ["train 7", "train 8"]


def test_marks_by_hand():
    ops = [event("aten::mm", "cpu_op", 10 * n + 3, 3) for n in range(4)]
    train = [event("train", "user_annotation", 10 * n, 9) for n in range(3)]
    inner = [event("forward", "user_annotation", 10 * n + 2, 5) for n in range(3)]
    library = [event("Optimizer.step#SGD.step", "user_annotation", 10 * n, 9.5) for n in range(3)]
    once = event("evaluate", "user_annotation", 30, 9)
    empty = [event("log", "user_annotation", 50 + n, 1) for n in (0, 2)]
    found = steps_of(*ops, *train, *inner, *library, once, *empty)
    assert found == [("train", None, False)] * 3


@pytest.mark.parametrize(
    ("names", "cut_off"),
    [
        (["ab", "ab", "ab"], False),
        (["ab", "ab", "a"], True),
        (["ab", "ab", ""], True),
        (["ab", "ac", "a"], False),
        (["ab", "a"], False),
        (["ab", ""], True),
        (["", ""], False),
        (["a", "a", "ab"], False),
    ],
)
def test_a_last_step_is_cut_off_that_lacks_what_all_have(names, cut_off):
    records = []
    for number, inside in enumerate(names):
        records.append(event(f"ProfilerStep#{number}", "user_annotation", 10 * number, 9))
        records += [
            event(f"aten::{name}", "cpu_op", 10 * number + 1 + place, 1)
            for place, name in enumerate(inside)
        ]
    *before, last = steps_of(*records)
    assert [step[2] for step in before] == [False] * len(before)
    assert last[2] is cut_off


def test_begins_and_ends_and_the_digits_of_times():
    content = """[
        {"ph": "E", "pid": 1, "tid": 5, "ts": 1763000000123456.790},
        {"ph": "B", "pid": 1, "tid": 5, "ts": "1763000000123456.789", "name": "a", "cat": "cpu_op"},
        {"ph": "X", "pid": 1, "tid": 5, "ts": "never", "dur": 4, "name": "b", "cat": "cpu_op"},
        {"ph": "X", "pid": 1, "tid": 5, "ts": -2, "name": "c", "cat": "cpu_op"}"""
    assert Trace(content).ops() == {"a": (1, 1000, 1000), "c": (1, 0, 0)}


@each_row("seed", range(200))
def test_odd_traces_are_read_as_they_were_made(seed):
    made = odd_trace(seed)
    trace = Trace(made.text)
    devices = trace.devices()
    assert {key: work.busy_ps for key, work in devices.items()} == made.busy_ps
    assert {key: (work.start_ps, work.end_ps) for key, work in devices.items()} == made.spans_ps
    assert {key: work.communication_ps for key, work in devices.items()} == made.communication_ps
    assert {key: work.copies_ps for key, work in devices.items()} == made.copies_ps
    assert trace.first_ps == made.first_ps
    assert (trace.kernels(), trace.ops()) == (made.kernels, made.ops)
    found = [(step.shown, step.start_ps, step.end_ps, step.is_cut_off) for step in trace.steps()]
    assert sorted(found) == made.steps


def test_every_oddity_occurs():
    drawn = [odd_trace(seed) for seed in range(200)]
    assert all(sum(name in made.oddities for made in drawn) > 20 for name in ODDITIES)
    assert {made.flavour for made in drawn} == {"cuda", "mtia", "hpu", "old", "unknown"}
    assert {made.marks for made in drawn} == {"ProfilerStep", "step_num", "by_hand", "none"}
    assert odd_trace(3).text == odd_trace(3).text
