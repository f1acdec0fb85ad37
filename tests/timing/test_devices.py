"""Devices, the links from host to device, and where they meet."""

import json
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.xspace_builder import SpaceBuilder
from tests.tables.fake import FakeReader
from tests.timing.traces import GPU, HOST_PLANE, TPU, profile_of

import peakline
from peakline.hlo.cost_rules import floor_sum, meetings
from peakline.tables import Profile
from peakline.timing.device_time import device_times
from peakline.timing.launches.summary import Spread, launch_summary, spread_of
from peakline.trace.activity import Activity, activity_of
from peakline.trace.collective_records import collective_kernels, collective_records
from peakline.trace.events import trace_of
from peakline.trace.links import causes, contexts_of, links_of, links_within

NCCL = "ncclDevKernel_AllReduce"


def table_of(profile):
    return profile.columns("device_time").to_pylist()


def test_streams_of_a_device_count_once():
    profile = profile_of({GPU: {
        "Stream #1": [("kernel", 10, 30), ("kernel", 60, 70)],
        "Stream #2": [(NCCL, 20, 40)],
        "Stream #3": [("MemcpyD2H", 25, 45), ("MemcpyH2D", 90, 95)],
        "XLA Modules": [("jit_f", 0, 200)],
    }})  # fmt: skip
    assert table_of(profile) == [{
        "plane_id": 0, "device": GPU, "start_ps": 10, "end_ps": 95, "busy_ps": 50, "idle_ps": 35,
        "compute_ps": 30, "communication_ps": 20, "copy_ps": 25, "longest_idle_ps": 20,
    }]  # fmt: skip
    (device,) = device_times(profile)
    assert (device.compute_ps, device.communication_ps, device.copy_ps, device.idle_ps) == (
        30, 10, 10, 35
    )  # fmt: skip


def test_a_device_that_waits_for_its_infeed_is_idle():
    profile = profile_of({TPU: {"XLA Ops": [
        ("%fusion.1 = x", 0, 10), ("%infeed.1 = x", 10, 80), ("%fusion.1 = x", 80, 90),
    ]}})  # fmt: skip
    (row,) = table_of(profile)
    assert (row["busy_ps"], row["idle_ps"], row["longest_idle_ps"]) == (20, 70, 70)


def test_a_collective_beside_the_ops_of_a_tpu_counts():
    profile = profile_of({TPU: {
        "XLA Ops": [("%fusion.1 = x", 0, 50)],
        "Async XLA Ops": [("%all-gather-start.1 = x", 20, 70)],
    }})  # fmt: skip
    (row,) = table_of(profile)
    assert (row["busy_ps"], row["communication_ps"], row["compute_ps"]) == (70, 50, 50)
    assert device_times(profile)[0].communication_ps == 20


def test_devices_without_work_and_hosts_have_no_row():
    profile = profile_of({GPU: {"Stream #1": []}, HOST_PLANE: {"python": [("work", 0, 9)]}})
    assert table_of(profile) == []
    assert device_times(profile) == ()


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["kernel", NCCL, "MemcpyH2D"]), st.integers(0, 50), st.integers(0, 20)
    ),
    max_size=8,
)


@given(EVENTS, EVENTS)
def test_moment_by_moment(one, other):
    lines = {
        name: [(event, start, start + length) for event, start, length in events]
        for name, events in (("Stream #1", one), ("Stream #2", other))
    }
    at = [
        {name for line in lines.values() for name, start, end in line if start <= t < end}
        for t in range(80)
    ]
    rows = table_of(profile_of({GPU: lines}))
    busy = [t for t in range(80) if at[t]]
    if not busy:
        assert rows == []
        return
    (row,) = rows
    assert (row["start_ps"], row["end_ps"]) == (busy[0], busy[-1] + 1)
    assert row["busy_ps"] == len(busy)
    assert row["idle_ps"] == busy[-1] + 1 - busy[0] - len(busy)
    for column, name in (("compute", "kernel"), ("communication", NCCL), ("copy", "MemcpyH2D")):
        assert row[f"{column}_ps"] == sum(name in names for names in at)
    gaps = [b - a - 1 for a, b in pairwise(busy)]
    assert row["longest_idle_ps"] == max(gaps, default=0)


def communicating(profile):
    """The names of all that communicates, and of what records say does."""
    trace, activity = trace_of(profile), activity_of(profile)
    said = [trace.name[place] for place in collective_kernels(profile).tolist()]
    return [trace.name[k] for k in range(trace.size) if activity[k] == Activity.COMMUNICATION], said


def test_a_kernel_that_nobody_knows_communicates_where_a_record_says_so():
    """PyTorch runs ``record_param_comms`` around what launches a collective."""
    host = [
        ("record_param_comms", 0, 10, None, "cpu_op"),
        ("cudaLaunchKernelExC", 2, 4, None, "cuda_runtime"),
        ("record_param_comms", 10, 20, None, "cpu_op"),
        ("cudaLaunchKernelExC", 12, 14, None, "cuda_runtime"),
        ("cudaLaunchKernelExC", 32, 34, None, "cuda_runtime"),
    ]
    device = [
        ("vendor_a2a", 5, 9, None, "kernel"),
        ("vendor_thing", 15, 19, None, "kernel"),
        ("gemm", 35, 39, None, "kernel"),
    ]
    stats = [
        (0, "Collective name", "all_to_allv"),
        *((row, "correlation", str(number)) for row, number in ((1, 1), (3, 2), (4, 3))),
        *((row, "correlation", str(number)) for row, number in ((5, 1), (6, 2), (7, 3))),
    ]
    profile = profile_of(
        {"python": {"thread 1": host}, "python (GPU 0)": {"stream 4": device}},
        kind="chrome_trace", stats=stats,
    )  # fmt: skip
    result, said = communicating(profile)
    assert said == ["vendor_a2a", "vendor_thing"]
    assert set(said) <= set(result)
    assert "gemm" not in result


def test_a_record_s_label_is_on_the_kernel_itself():
    name = "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"
    events = [(name, 0, 10, None, "kernel"), ("other", 20, 25, None, "kernel"),
              ("gemm", 30, 31, None, "kernel")]  # fmt: skip
    stats = [(0, "Collective name", "allreduce"), (1, "Collective name", "_allgather_base")]
    profile = profile_of({"python (GPU 0)": {"stream 4": events}}, kind="chrome_trace", stats=stats)
    assert communicating(profile) == ([name, "other"], [name, "other"])


def test_which_group_did_which_collective_is_what_pytorch_records_of_it():
    """Names of groups may be numbers; what is not recorded is not known."""
    host = [("record_param_comms", 10 * k, 10 * k + 5, None, "cpu_op") for k in range(3)]
    first = {
        "Collective name": "allreduce", "dtype": "BFloat16", "In msg nelems": 100, "Seq": 7,
        "Out msg nelems": 200, "Process Group Name": 0, "Process Group Ranks": "[0, 3]",
    }  # fmt: skip
    second = {
        "Collective name": "barrier", "dtype": "Opaque", "In msg nelems": 1,
        "Process Group Name": "default_pg", "Process Group Ranks": "[0, 1, ...]",
    }  # fmt: skip
    stats = [
        (row, key, value) for row, one in ((0, first), (2, second)) for key, value in one.items()
    ]
    profile = profile_of({"python": {"thread 1": host}}, kind="chrome_trace", stats=stats)
    result = collective_records(profile)
    assert result.event.tolist() == [0, 2]
    assert result.name.to_list() == ["allreduce", "barrier"]
    assert result.group.to_list() == ["0", "default_pg"]
    assert [result.ranks_of(row) for row in (0, 1)] == [[0, 3], []]
    assert result.sequence.tolist() == [7, -1]
    assert result.input_bytes.tolist() == [200, -1]
    assert result.output_bytes.tolist() == [400, -1]
    assert collective_records(profile_of({GPU: {"Stream #1": [(NCCL, 0, 9)]}})).event.size == 0


US = 10**6


def pairs(profile, links):
    """Names of cause and target of each link."""
    names = trace_of(profile).name.to_list()
    return [
        (names[cause], names[target])
        for cause, target in zip(links.cause.tolist(), links.target.tolist(), strict=True)
    ]


def a_gpu(launches, kernels):
    """A host thread and a stream; events are (name, at, duration, correlation id) in us."""
    space = SpaceBuilder()
    stream = space.plane("/device:GPU:0").line("Stream #1(Compute)")
    thread = space.host().line("python")
    for line, events in ((stream, kernels), (thread, launches)):
        for name, at, duration, number in events:
            line.event(name, int(at * US), int(duration * US), {"correlation_id": number})
    return space


def test_the_cause_is_the_last_that_began_by_then_else_the_first():
    key, start = np.array([1, 1, 2, 1]), np.array([10, 20, 5, 30])
    of_key, at = np.array([1, 1, 1, 2, 3, 1]), np.array([25, 20, 3, 9, 9, 99])
    assert causes(key, start, of_key, at).tolist() == [1, 1, 0, 2, -1, 3]


def test_correlation_ids(opened):
    profile = opened(
        a_gpu(
            [("launch a", 0, 2, 7), ("launch b", 5, 2, 8), ("memset", 8, 1, 0)],
            [("b", 10, 5, 8), ("a", 3, 4, 7), ("graph a", 20, 1, 7), ("lost", 30, 1, 99)],
        )
    )
    links = links_of(profile)
    assert (links.source, links.unlinked) == ("correlation", 1)
    assert pairs(profile, links) == [("launch a", "a"), ("launch b", "b"), ("launch a", "graph a")]


def test_contexts_of_a_tpu_and_of_threads(opened):
    space = SpaceBuilder()
    modules = space.plane("/device:TPU:0").line("XLA Modules")
    host = space.host()
    main, worker = host.line("main"), host.line("worker")
    main.event("Enqueue", US, US, {"_pt": 12, "_p": 2**63 - 5})
    main.event("Schedule", 3 * US, US, {"_pt": 5, "_p": 77})
    modules.event("jit_f(3)", 9 * US, US, {"_ct": 12, "_c": 2**63 - 5})
    worker.event("Run", 6 * US, US, {"_ct": 5, "_c": 77})
    worker.event("Other kind", 7 * US, US, {"_ct": 6, "_c": 77})
    profile = opened(space)
    assert pairs(profile, links_of(profile)) == [("Enqueue", "jit_f(3)")]
    assert pairs(profile, contexts_of(profile)) == [("Enqueue", "jit_f(3)"), ("Schedule", "Run")]


def test_runs_of_a_tpu_without_contexts(opened):
    space = SpaceBuilder()
    for number in range(2):
        line = space.plane(f"/device:TPU:{number}").line("XLA Modules")
        line.event(f"jit_{number}(3)", 9 * US, US, {"run_id": 4, "queue_id": 0, "core_type": 1})
    main = space.host().line("main")
    for number in range(2):
        stats = {"run_id": 4, "queue_id": 0, "core_type": 1, "device_ordinal": 1 - number}
        main.event(f"Enqueue {1 - number}", number * US, US, stats)
    profile = opened(space)
    assert links_of(profile).source == "run"
    assert pairs(profile, links_of(profile)) == [
        ("Enqueue 0", "jit_0(3)"),
        ("Enqueue 1", "jit_1(3)"),
    ]


def test_arrows_of_a_chrome_trace(tmp_path):
    def event(name, pid, tid, ts, dur):
        return {"ph": "X", "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "cat": "x"}

    def arrow(phase, pid, tid, ts):
        return {"ph": phase, "id": 5, "name": "ac2g", "cat": "ac2g", "pid": pid, "tid": tid,
                "ts": ts, "bp": "e"}  # fmt: skip

    labels = [
        {"ph": "M", "name": "process_labels", "pid": 1, "tid": 0, "args": {"labels": "CPU"}},
        {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "python"}},
        {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "args": {"labels": "GPU 0"}},
        {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {"name": "python"}},
    ]
    events = [
        event("op", 1, 1, 0, 100), event("launch", 1, 1, 10, 5), event("later", 1, 1, 40, 5),
        event("kernel", 0, 7, 30, 9), arrow("s", 1, 1, 12), arrow("f", 0, 7, 30),
    ]  # fmt: skip
    path = tmp_path / "a.pt.trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [*labels, *events]}))
    with peakline.open(path) as profile:
        assert links_of(profile).source == "flow"
        assert pairs(profile, links_of(profile)) == [("launch", "kernel")]


def test_kernels_of_step_stats_by_the_name_of_their_node():
    def run(number, device, name, start, kind):
        return {"op_run_id": number, "device": device, "name": name, "start_ps": start,
                "duration_ps": 5, "kind": kind, "step_id": 0}  # fmt: skip

    runs = [
        run(0, "/device:CPU:0", "mul", 0, "executor"),
        run(1, "/device:CPU:0", "mul", 50, "executor"),
        run(2, "/device:GPU:0/stream:all", "mul:MatMul", 20, "gpu"),
        run(3, "/device:GPU:0/stream:all", "mul:MatMul", 60, "gpu"),
    ]
    profile = Profile(FakeReader({"op_runs": runs}))
    links = links_of(profile)
    start = trace_of(profile).start
    assert links.source == "name"
    assert [start[links.cause].tolist(), start[links.target].tolist()] == [[0, 50], [20, 60]]


def test_links_of_a_part_are_those_of_the_whole(opened):
    count = 200
    profile = opened(
        a_gpu(
            [("launch", 10 * n, 2, n + 1) for n in range(count)],
            [("kernel", 10 * n + 4, 5, n + 1) for n in range(count)],
        )
    )
    part, _ = links_within(profile, 500 * US, 560 * US)
    whole = links_of(profile)
    inside = (trace_of(profile).start[whole.target] >= 500 * US) & (
        trace_of(profile).start[whole.target] < 560 * US
    )
    assert part.target.tolist() == whole.target[inside].tolist()
    assert part.cause.tolist() == whole.cause[inside].tolist()


def test_delays_queue_and_what_a_device_was_idle_for(opened):
    profile = opened(
        a_gpu(
            [("launch a", 0, 2, 1), ("launch b", 3, 2, 2), ("launch c", 40, 2, 3)],
            [("a", 5, 10, 1), ("b", 17, 3, 2), ("c", 44, 6, 3)],
        )
    )
    (device,) = launch_summary(profile).devices
    assert (device.work, device.linked, device.launches, device.early) == (3, 3, 3, 0)
    assert device.delay == Spread(4 * US, 5 * US, 14 * US, 14 * US)
    assert device.gap == Spread(3 * US, 3 * US, 37 * US, 37 * US)
    assert device.queue == Spread(1, 1, 2, 2)
    # Between a and b the work had been launched; c was launched 20 us after b ended.
    assert (device.blocked_ps, device.starved_ps, device.latency_ps) == (2 * US, 20 * US, 4 * US)
    assert device.idle_ps == 26 * US


def test_work_before_its_launch_is_told_and_left_out(opened):
    profile = opened(a_gpu([("launch a", 10, 2, 1)], [("a", 5, 1, 1), ("b", 8, 1, 2)]))
    (device,) = launch_summary(profile).devices
    assert (device.early, device.delay) == (1, None)
    assert [(w.kind, w.count) for w in profile.warnings] == [("early_device_work", 1)]


def test_a_profile_without_links(opened):
    space = SpaceBuilder()
    space.host().line("python").event("f", 0, US)
    summary = launch_summary(opened(space))
    assert (summary.source, summary.devices) == ("", ())


def test_the_spread_of_twenty():
    assert spread_of(np.arange(20)[::-1] + 1) == Spread(1, 10, 19, 20)
    assert spread_of(np.zeros(0, np.int64)) is None


def one_by_one(size, kernel, output, stride, padding, spread, dilation):
    read = (o * stride + k * spread - padding for o in range(max(output, 0)) for k in range(kernel))
    return sum(at % dilation == 0 and 0 <= at // dilation < size for at in read)


def test_windows_of_all_kinds():
    choose = random.Random(5)
    met = 0
    for most in [3, 8, 20] * 700:
        sizes = choose.randint(-1, most), choose.randint(0, most), choose.randint(-1, most)
        steps = [choose.randint(1, choose.choice([1, 3, most])) for _ in range(3)]
        window = *sizes, steps[0], choose.randint(-most, 2 * most), *steps[1:]
        assert meetings(*window) == one_by_one(*window), window
        met += meetings(*window) > 0
    assert met > 700


def test_a_wide_one():
    wide = 2**20
    # Without padding every place of the kernel meets the input at every place of the output.
    assert meetings(2 * wide - 1, wide, wide, 1, 0, 1, 1) == wide * wide
    with pytest.raises(ValueError, match=str(wide + 1)):
        meetings(wide, wide + 1, wide, 1, 0, 1, 1)


def test_sums_of_quotients():
    choose = random.Random(6)
    for _ in range(500):
        count, divisor = choose.randint(0, 30), choose.randint(1, 12)
        slope, start = (choose.randint(-40, 40) for _ in range(2))
        plain = sum((slope * n + start) // divisor for n in range(count))
        assert floor_sum(count, divisor, slope, start) == plain
