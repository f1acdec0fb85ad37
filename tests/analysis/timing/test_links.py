"""Links from launches to the work they launched, and how launches fared."""

import json

import numpy as np
from tests.profile.fake import FakeReader
from tests.reference.xspace_builder import SpaceBuilder

import peakline
from peakline.tables import Profile
from peakline.timing.launches.summary import Spread, launch_summary, spread_of
from peakline.trace.events import trace_of
from peakline.trace.links import causes, contexts_of, links_of, links_within

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
