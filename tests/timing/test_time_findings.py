"""Findings of time on tables, programs and jobs made by hand."""

import gzip
import json
import re
from pathlib import Path

from tests.each_row import each_row
from tests.formats.chrome_traces import event, opened
from tests.shared import shared
from tests.tables.fake import FakeReader
from tests.timing.gpu_jobs import COLLECTIVES, COPIES, Job, Work, healthy, write
from tests.timing.kineto_jobs import job as job_of_anomaly_checks
from tests.timing.kineto_jobs import of_kind as of_kind_of_anomaly_checks
from tests.timing.traces import HOST_PLANE, profile_of

import peakline
from peakline.api import Profile
from peakline.findings.finding import Finding
from peakline.findings.kinds import input_bound
from peakline.findings.ranking import priorities
from peakline.findings.time_answer import answer_time
from peakline.schema import XSpace
from peakline.timing.steps.facts import PARTS

DATA = Path(__file__).resolve().parents[1] / "data"
PROGRAMS = DATA / "programs" / "time"
MS = 10**9
GPU = "/device:GPU:0"


def steps(*rows, device=None, gap_ms=0, name="train {}", found_by="mark"):
    """A profile with these steps: parts in ms, one after the other on each device."""
    result, ends = [], {}
    for step, given in enumerate(rows):
        parts = dict(given)
        lane = parts.pop("device", device)
        number = parts.pop("step", step)
        gap = gap_ms * MS if lane in ends else 0
        wall = sum(parts.values()) * MS
        begin = ends.get(lane, 0) + gap
        ends[lane] = begin + wall
        result.append(
            {
                "step_id": number,
                "name": name.format(number),
                "found_by": found_by,
                "device": lane,
                "start_ps": begin,
                "end_ps": begin + wall,
                "wall_ps": wall,
                "gap_before_ps": gap,
                "communication_total_ps": parts.get("communication", 0) * MS,
            }
            | {f"{part}_ps": length * MS for part, length in parts.items()}
        )
    return Profile(FakeReader({"step_breakdown": result}))


def kinds(profile):
    return [finding.kind for finding in profile.time().findings]


def only(profile):
    (finding,) = profile.time().findings
    return finding


def test_a_step_that_computes_all_the_time_is_healthy():
    assert kinds(steps(*[{"compute": 10}] * 8, device=GPU)) == []
    assert kinds(steps(*[{"host_compute": 10}] * 8)) == []


@each_row(
    ("part", "kind"),
    [
        ("input_wait", "input_bound"),
        ("host_compute", "host_bound"),
        ("idle", "host_bound"),
        ("launch", "launch_bound"),
        ("communication", "communication_not_overlapped"),
        ("host_to_device", "time_in_copies"),
        ("device_to_host", "time_in_copies"),
        ("device_to_device", "time_in_copies"),
    ],
)
def test_what_a_device_waits_for(part, kind):
    finding = only(steps(*[{"compute": 60, part: 40}] * 4, device=GPU))
    assert (finding.kind, finding.severity) == (kind, "warning")
    assert finding.title.startswith("40% of the ")
    assert finding.evidence["share"] == finding.evidence["gain_share"] == 0.4
    assert finding.evidence["gain_ps"] == 160 * MS
    assert only(steps(*[{"compute": 88, part: 12}] * 4, device=GPU)).severity == "info"
    assert kinds(steps(*[{"compute": 96, part: 4}] * 4, device=GPU)) == []


def test_a_copy_to_the_device_within_a_cast_is_no_cast(tmp_path):
    """Of each step of 100 us ``aten::to`` takes 30; 28 of it are a call that copies, or none."""

    def trace(call):
        rows = []
        for step in range(6):
            at = 100 * step
            rows += [event("X", at, f"ProfilerStep#{step}", dur=100, cat="user_annotation"),
                     event("X", at + 1, "aten::mm", dur=60, cat="cpu_op"),
                     event("X", at + 65, "aten::to", dur=30, cat="cpu_op"),
                     event("X", at + 66, "aten::copy_", dur=29, cat="cpu_op"),
                     event("X", at + 67, call, dur=28, cat="cuda_runtime")]  # fmt: skip
        return rows

    with opened(tmp_path, trace("cudaMemcpyAsync")) as profile:
        (finding,) = profile.time().findings
        assert (finding.kind, finding.severity) == ("time_in_copies", "warning")
        assert finding.evidence["op"] == "aten::to"
        assert finding.evidence["share"] == 0.3
        assert not profile.columns("step_breakdown").array("launch_ps").any()
    with opened(tmp_path, trace("cudaLaunchKernel")) as profile:
        assert "casts between types" in [
            one.evidence.get("work") for one in profile.time().findings
        ]


def test_without_a_device_nothing_waits_for_the_host():
    assert kinds(steps(*[{"host_compute": 50, "launch": 20, "unknown": 30}] * 4)) == []


def test_input_is_waited_for_on_a_host_too():
    finding = only(steps(*[{"host_compute": 50, "input_wait": 50}] * 4))
    assert (finding.kind, finding.evidence["input_wait_ps"]) == ("input_bound", 200 * MS)


def test_the_first_steps_fill_the_buffers_of_the_input():
    filling = [{"host_compute": 10, "input_wait": 90}] * 2
    assert kinds(steps(*filling, *[{"host_compute": 10}] * 6)) == []
    finding = only(steps(*filling, *[{"host_compute": 50, "input_wait": 50}] * 6))
    assert finding.title.startswith("50% of the time")
    assert (finding.evidence["steps"], finding.evidence["input_wait_ps"]) == (6, 300 * MS)


@each_row(
    ("stage", "words"),
    [
        ("Iterator::Root::Prefetch::Map", "Run Map in parallel"),
        ("Iterator::Root::MapAndBatch", "MapAndBatch runs in parallel already"),
        ("Iterator::Root::ParallelMapV2", "ParallelMapV2 runs in parallel already"),
        ("Iterator::Root::ParallelInterleaveV4::Map", "Run ParallelInterleaveV4::Map in parallel"),
        ("Iterator::Root::Interleave", "Run Interleave in parallel"),
    ],
)
def test_what_is_parallel_already_is_not_made_so(stage, words):
    assert input_bound.advice(stage).startswith(words)


def test_the_copies_that_take_most_are_named():
    finding = only(
        steps(*[{"compute": 70, "host_to_device": 10, "device_to_host": 20}] * 3, device=GPU)
    )
    assert finding.evidence["most"] == "device_to_host"
    assert finding.title == "30% of the step time goes to copies, most of it to copies to the host"
    assert finding.rows[0] == {
        "step": "train 0",
        "device": GPU,
        "wall_ps": 100 * MS,
        "device_to_device_ps": 0,
        "device_to_host_ps": 20 * MS,
        "host_to_device_ps": 10 * MS,
    }


def test_a_device_idle_between_steps():
    finding = only(steps(*[{"compute": 80}] * 5, device=GPU, gap_ms=20))
    assert (finding.kind, finding.severity) == ("idle_between_steps", "warning")
    assert finding.title == (
        "the device is idle between the steps for 17% of the time: 20.000 ms each (median), "
        "20.000 ms at most"
    )
    assert finding.evidence["share"] == 80 / 480
    assert kinds(steps(*[{"compute": 98}] * 5, device=GPU, gap_ms=2)) == []
    # Between the marks of a host's steps there may be anything.
    assert kinds(steps(*[{"host_compute": 80}] * 5, gap_ms=20)) == []
    assert only(steps(*[{"host_compute": 10}] * 5, gap_ms=20)).severity == "info"


def test_compilation_after_the_first_steps():
    first = [{"host_compute": 10, "compile": 500}] * 2
    assert kinds(steps(*first, *[{"host_compute": 10}] * 6)) == []
    again = [{"host_compute": 10, "compile": 90}, {"host_compute": 10}]
    finding = only(steps(*first, *again * 3))
    assert (finding.kind, finding.evidence["compiling_steps"]) == ("recompilation", 3)
    assert finding.title == ("3 of 6 steps after the first 2 compile a program: 82% of their time")
    assert [row["step"] for row in finding.rows] == ["train 2", "train 4", "train 6"]


def test_slow_steps_and_what_they_spend_it_on():
    usual, slow = {"host_compute": 10}, {"host_compute": 10, "unknown": 90}
    finding = only(steps(*([usual] * 2 + [usual, usual, slow] * 4)))
    assert (finding.kind, finding.severity) == ("step_variation", "warning")
    assert finding.title == (
        "4 of 12 steps take 10.0 times the median (10.000 ms), every 3rd: 75% of the time"
    )
    assert finding.evidence["period_steps"] == 3
    assert (finding.evidence["most"], finding.evidence["most_share"]) == ("unknown", 1.0)
    assert finding.evidence["gain_ps"] == 4 * 90 * MS


def test_a_slow_step_of_the_warm_up_and_steps_a_half_longer_are_no_finding():
    usual = {"host_compute": 10}
    assert kinds(steps({"host_compute": 500}, *[usual] * 9)) == []
    assert kinds(steps(*[usual, {"host_compute": 15}] * 6)) == []
    assert kinds(steps(usual, usual, usual, {"host_compute": 50})) == []
    # The system may give the core to somebody else for a while.
    assert kinds(steps(*[{"host_compute": 2}] * 9, {"host_compute": 10})) == []


def test_steps_that_took_no_time_are_not_compared():
    """As a damaged file may have them."""
    assert kinds(steps(*[{"host_compute": 0}] * 9, {"host_compute": 90})) == []


def test_runs_of_programs_that_nobody_marked_are_not_compared():
    rows = [{"host_compute": 10}] * 2 + [*[{"host_compute": 10}] * 2, {"host_compute": 90}] * 6
    assert kinds(steps(*rows)) == ["step_variation"]
    assert kinds(steps(*rows, found_by="function")) == []


def test_findings_stand_in_order_of_what_would_be_gained():
    result = kinds(
        steps(*[{"compute": 30, "launch": 40, "host_to_device": 20, "device_to_host": 10}] * 4,
              device=GPU)
    )  # fmt: skip
    assert result == ["launch_bound", "time_in_copies"]


def test_memory_and_time_in_one_order():
    def finding(kind, severity, **evidence):
        return Finding(kind, severity, kind, evidence, "do it")

    memory = [
        finding("leak", "warning", kept_bytes=10, peak_bytes=100),
        finding("out_of_memory", "error"),
        finding("cache", "info", kept_bytes=90, peak_bytes=100),
        finding("near_capacity", "warning", peak_bytes=100),
    ]
    time = [finding("input_bound", "warning", gain_share=0.3)]
    assert [(one.about, one.finding.kind, one.gain_share) for one in priorities(memory, time)] == [
        ("memory", "out_of_memory", 0),
        ("time", "input_bound", 0.3),
        ("memory", "leak", 0.1),
        ("memory", "near_capacity", 0),
        ("memory", "cache", 0.9),
    ]


def gains(*memory):
    """Per kind what is gained, in order, beside a loss of 5 % of the time."""
    result = [
        Finding(kind, "warning", kind, evidence | {"allocator": name}, "do it")
        for kind, name, evidence in memory
    ]
    time = [Finding("launch_bound", "warning", "launches", {"gain_share": 0.05}, "do it")]
    return [(one.finding.kind, one.gain_share) for one in priorities(result, time)]


def test_memory_far_from_the_capacity_is_no_gain():
    leak = ("leak", "gpu", {"kept_bytes": 90, "peak_bytes": 100, "capacity_bytes": 1000})
    full = ("near_capacity", "gpu", {"peak_bytes": 100, "capacity_bytes": 100})
    elsewhere = ("near_capacity", "cpu", {"peak_bytes": 100, "capacity_bytes": 100})
    assert gains(leak) == [("launch_bound", 0.05), ("leak", 0)]
    assert gains(leak, full) == [("leak", 0.9), ("launch_bound", 0.05), ("near_capacity", 0)]
    assert gains(leak, elsewhere)[:2] == [("launch_bound", 0.05), ("leak", 0)]


def test_memory_is_a_gain_by_the_capacity_and_not_by_the_peak():
    huge = ("huge_temporary", "gpu", {"saved_bytes": 40, "peak_bytes": 50})
    failed = ("out_of_memory", "gpu", {"limit_bytes": 1000})
    assert gains(huge, failed)[:2] == [("launch_bound", 0.05), ("huge_temporary", 0.04)]
    unknown = ("out_of_memory", "gpu", {})
    assert gains(huge, unknown)[:2] == [("huge_temporary", 0.8), ("launch_bound", 0.05)]


def test_no_steps():
    answer = Profile(FakeReader({"allocator_events": []})).time()
    assert (answer.times, answer.findings) == (None, ())
    assert answer.nothing == "no time in this file"
    assert answer.as_json() == {
        "number_of_steps": 0,
        "times": None, "times_by_device": [], "times_by_name": [], "found_by": None, "parts": [],
        "devices": [], "to_record": [], "utilisation": None, "steps": [], "findings": [],
        "input": None,
    }  # fmt: skip


def test_a_few_long_stalls_between_steps_are_named():
    rows = [{"compute": 100} for _ in range(12)]
    table = steps(*rows, device=GPU, gap_ms=1).columns("step_breakdown").to_pylist()
    for row in table[5:]:
        row["start_ps"] += 399 * MS
        row["end_ps"] += 399 * MS
    table[5]["gap_before_ps"] = 400 * MS
    result = only(Profile(FakeReader({"step_breakdown": table})))
    assert result.title == (
        "the device is idle between the steps for 25% of the time: "
        "1 long stall (400.000 ms at 504.000 ms), else 1.000 ms each (median)"
    )
    assert result.evidence["stalls"] == 1


def test_the_median_of_slow_steps_says_that_it_leaves_out_the_first():
    slow = [{"host_compute": 100 if n == 7 else 10 + n} for n in range(12)]
    assert (
        "(17.000 ms without the first 2)"
        in only(steps(*[{"host_compute": 80}] * 2, *slow[2:])).title
    )


def test_the_program_that_is_compiled_again_is_named():
    with peakline.open(PROGRAMS / "recompiling.xplane.pb.gz") as profile:
        (result,) = profile.time().findings
    assert result.evidence["programs"] == ["train"]
    assert "10 of 10 steps after the first 2 compile train: " in result.title


def test_parts_and_times():
    answer = steps({"host_compute": 10}, {"host_compute": 20, "unknown": 10}).time()
    assert vars(answer.times) == {
        "count": 2,
        "mean_ps": 20 * MS,
        "deviation_ps": 10 * MS,
        "min_ps": 10 * MS,
        "median_ps": 20 * MS,
        "p95_ps": 30 * MS,
        "max_ps": 30 * MS,
    }
    assert answer.parts() == [
        ("host_compute_ps", PARTS["host_compute_ps"], 15 * MS, 0.75),
        ("unknown_ps", PARTS["unknown_ps"], 5 * MS, 0.25),
    ]


# Jobs on GPUs, from the events on.


TRUTH = json.loads((DATA.parent / "programs" / "time_truth.json").read_text())


@each_row("name", TRUTH)
def test_a_recorded_program_has_its_fault_and_no_other(name):
    answer = shared(PROGRAMS / TRUTH[name]["file"]).time()
    assert answer.times.count == TRUTH[name]["steps"]
    assert [f.kind for f in answer.findings] == [f["kind"] for f in TRUTH[name]["faults"]]


@each_row("name", TRUTH)
def test_a_recording_is_small_and_names_no_machine(name):
    packed = (PROGRAMS / TRUTH[name]["file"]).read_bytes()
    content = gzip.decompress(packed)
    assert len(packed) <= 150_000
    assert XSpace.FromString(content).hostnames == ["host"]
    assert not re.search(rb"/(?:root|home|tmp|usr|var|mnt|work)/", content)
    assert f"`{name.removesuffix('_healthy')}`" in (PROGRAMS / "README.md").read_text()


# What the other samples' owners would be told.

BETWEEN = {"tf2_multihost": ["idle_between_steps"]}
"""Its programs sleep for 20 and 40 ms after each step of 1 ms."""
TELLING = {
    # Slow reads, the first evaluation is traced in step 5, and step 24 was held up by others.
    "busy_pipeline": {"step_variation", "input_bound", "recompilation"},
    # A function is traced in step 9, and in step 7.
    "huge_temporary_once": {"recompilation"},
    "late_slot": {"recompilation"},
}
MEMORY = sorted((DATA / "programs").glob("*.xplane.pb.gz"))


def test_sessions(sample):
    result = shared(sample).time().findings
    session = sample.parts[sample.parts.index("sessions") + 1]
    assert [finding.kind for finding in result] == BETWEEN.get(session, [])
    assert {finding.severity for finding in result} <= {"info"}


@each_row("path", MEMORY)
def test_programs_with_faults_of_memory_are_healthy_in_time(path):
    result = {finding.kind for finding in shared(path).time().findings}
    assert result == TELLING.get(path.name.partition(".")[0], set())


def launched_one_by_one(_step, _device):
    return [Work("tiny", 100 + 40 * n, 5, launched=90 + 40 * n) for n in range(200)]


def exposed(_step, _device):
    work = [Work(f"gemm_{n}", 100 + 1500 * n, 1490, launched=50 + 5 * n) for n in range(4)]
    return [
        *work,
        Work("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", 6100, 3800,
             COLLECTIVES, 120),
    ]  # fmt: skip


def hidden(_step, _device):
    work = healthy(0, 0)
    return [
        *work,
        Work("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", 4000, 3800,
             COLLECTIVES, 120),
    ]  # fmt: skip


def copying(_step, _device):
    return [
        Work("MemcpyH2D", 100, 3000, COPIES, 40),
        *[Work(f"gemm_{n}", 3100 + 1700 * n, 1690, launched=50 + 5 * n) for n in range(4)],
    ]


def copying_ahead(_step, _device):
    return [*healthy(0, 0), Work("MemcpyH2D", 200, 3000, COPIES, 100)]


def lagging(_step, device):
    busy = 8.0 if device != 1 else 9.7
    work = [Work(f"gemm_{n}", 100 + busy * 250 * n, busy * 250 - 5, launched=50 + 5 * n)
            for n in range(4)]  # fmt: skip
    done = 100 + busy * 1000
    waits = 9900 - done
    reduce = Work("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)", done, waits,
                  COLLECTIVES, 80)  # fmt: skip
    return [*work, reduce]


def even(step, _device):
    return lagging(step, 1)


def gapped(_step, _device):
    return [Work(f"gemm_{n}", 100 + 1900 * n, 1890, launched=50 + 5 * n) for n in range(4)]


def late(_step, _device):
    """What a step that begins with 3 ms on the host leaves of healthy work."""
    return [Work(f"gemm_{n}", 3100 + 1700 * n, 1690, launched=3050 + 5 * n) for n in range(4)]


def reading(_step):
    return [("IteratorGetNext", 10, 3000)]


def reading_before(_step):
    return [("IteratorGetNext", -2200, 2100)]


def counting(_step):
    return [("update_metrics", 10, 3000)]


def compiling(step):
    return [("backend_compile_and_load", 10, 3000)] if step > 3 else []


def late_when_compiled(step, device):
    return (late if step > 3 else healthy)(step, device)


JOBS = {
    "input_bound": (Job(late, reading, marker=3_200), Job(healthy)),
    "input_bound between the steps": (
        Job(gapped, reading_before, marker=7_700),
        Job(healthy, reading_before),
    ),
    "host_bound": (Job(late, counting, marker=3_200), Job(healthy)),
    "recompilation": (Job(late_when_compiled, compiling, marker=3_200), Job(healthy)),
    "launch_bound": (Job(launched_one_by_one, period=8_300, marker=8_200), Job(healthy)),
    "communication_not_overlapped": (Job(exposed, marker=200), Job(hidden, marker=200)),
    "time_in_copies": (Job(copying, marker=200), Job(copying_ahead, marker=200)),
    "straggler": (Job(lagging, devices=4, marker=200), Job(even, devices=4, marker=200)),
    "idle_between_steps": (Job(gapped, marker=7700), Job(healthy)),
}


def found_in(job, tmp_path):
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(write(job))
    with peakline.open(path) as profile:
        return profile.time().findings


def test_a_straggler_is_named_and_the_waiting_for_it_is_not_told_twice(tmp_path):
    (finding,) = found_in(JOBS["straggler"][0], tmp_path)
    assert finding.severity == "warning"
    assert (finding.evidence["device"], finding.evidence["often"]) == ("/device:GPU:1", 1.0)
    assert finding.evidence["gain_ps"] == 12 * 1700 * 10**6
    assert finding.rows[0] == {
        "device": "/device:GPU:1",
        "work_ps": 12 * 4 * 2420 * 10**6,
        "communication_ps": 12 * 100 * 10**6,
    }


def test_a_straggler_among_devices_that_do_not_communicate(tmp_path):
    def work(_step, device):
        return [Work("gemm", 100, 9_700 if device == 1 else 6_000, launched=50)]

    (finding,) = found_in(Job(work, devices=3), tmp_path)
    assert (finding.kind, finding.evidence["evidence"]) == ("straggler", "finish")


def test_stages_of_a_pipeline_do_not_straggle(tmp_path):
    """All compute as long; the last has nobody to send to."""

    def work(_step, device):
        send = Work("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage)", 8_000, 1_900 - 600 * device,
                    COLLECTIVES, 90)  # fmt: skip
        return [Work("gemm", 100, 7_890, launched=50), send]

    result = found_in(Job(work, devices=3), tmp_path)
    assert [finding.kind for finding in result] == ["communication_not_overlapped"]


@each_row("kind", JOBS)
def test_a_faulty_job_and_its_healthy_twin(kind, tmp_path):
    result = [[one.kind for one in found_in(job, tmp_path)] for job in JOBS[kind]]
    assert result == [[kind.partition(" ")[0]], []]


# Programs, recorded.


def test_what_takes_longer_in_a_slow_step(tmp_path):
    def work(step, _device):
        extra = [Work("evaluate", 9_900, 40_000, launched=90)] if step % 4 == 3 else []
        return [*healthy(0, 0), *extra]

    result = found_in(Job(work, steps=16, period=50_000), tmp_path)
    finding = next(one for one in result if one.kind == "step_variation")
    assert (finding.evidence["longest"], finding.evidence["period_steps"]) == ("evaluate", 4)
    assert finding.evidence["longest_extra_ps"] == 40 * MS
    assert "most of it evaluate, which runs 1.0 times in a slow step, 0.0 in" in finding.suggestion


CALL = "model/PyFunc:PyFunc"


def job(length):
    """Eight steps of 100 ms that call back for so long."""
    line, steps = [], []
    for number in range(8):
        at = 100 * number
        steps.append((f"train {number}", at * MS, (at + 100) * MS))
        line.append((*steps[-1], number))
        line.append((CALL, (at + 10) * MS, (at + 10 + length) * MS))
        line.append(("$train.py:9 parse", (at + 11) * MS, (at + 9 + length) * MS))
        line.append(("model/MatMul:MatMul", (at + 50) * MS, (at + 90) * MS))
    return profile_of({HOST_PLANE: {"main": line}}, steps)


def of_kind(profile, kind):
    return [finding for finding in answer_time(profile).findings if finding.kind == kind]


@each_row(("length", "severity"), [(30, "warning"), (10, "info")])
def test_host_callback(length, severity):
    (finding,) = of_kind(job(length), "host_callback")
    assert finding.severity == severity
    assert finding.title == (
        f"{length}% of the step time goes to calls from the program back into Python: "
        "model/PyFunc (1 times a step), which runs parse (train.py:9)"
    )
    assert (finding.evidence["op_type"], finding.evidence["line"]) == ("PyFunc", 9)
    assert of_kind(job(4), "host_callback") == []


@each_row(("beside", "severity"), [(60, "warning"), (12, "info")])
def test_an_op_that_runs_beside_others(beside, severity):
    """A string op has a thread for 20 ms alone, and for so much longer beside the others."""
    steps, main, other = [], [], []
    for number in range(8):
        at = 100 * number
        steps.append((f"train {number}", at * MS, (at + 100) * MS))
        main.append((*steps[-1], number))
        main.append(("model/MatMul:MatMul", (at + 20) * MS, (at + 95) * MS))
        other.append(("debug/StringFormat:StringFormat", at * MS, (at + 20 + beside) * MS))
    profile = profile_of({HOST_PLANE: {"main": main, "other": other}}, steps)
    (finding,) = of_kind(profile, "expensive_op")
    assert finding.severity == severity
    much = f", which runs for {20 + beside}% of it, beside others"
    assert finding.title == (
        "20% of the step time goes to work on strings: debug/StringFormat"
        + (much if beside == 60 else "")
    )


STEP = "EagerLocalExecute: __inference_multi_step_on_iterator_9"


def keras(wait, stage="Iterator::Root::Prefetch::Map"):
    """Eight runs of Keras' training function, 100 ms each, that wait for a batch for so long."""
    main, waits, works, steps = [], [], [], []
    for number in range(8):
        at = 100 * number
        steps.append((f"train {number}", at * MS, (at + 100) * MS))
        main.append((*steps[-1], number))
        main.append((STEP, at * MS, (at + 100) * MS))
        waits.append(("IteratorGetNextOp::DoCompute", at * MS, (at + wait) * MS, number))
        waits.append(("Iterator::Root", at * MS, (at + wait) * MS, number))
        waits.append(("Iterator::Root::Prefetch", at * MS, (at + wait) * MS, number))
        works.append((stage, at * MS, (at + wait) * MS, number))
        main.append(("dense/MatMul:MatMul", (at + wait) * MS, (at + 100) * MS))
    lines = {
        "main": main, "tf_data_iterator_get_next/7": waits, "tf_data_iterator_resource/8": works
    }  # fmt: skip
    return profile_of({HOST_PLANE: lines}, steps)


@each_row(("wait", "severity"), [(30, "warning"), (10, "info")])
def test_a_compiled_function_that_waits_for_its_batch(wait, severity):
    (finding,) = of_kind(keras(wait), "input_bound")
    assert finding.severity == severity
    assert finding.title.startswith(f"{wait}% of the time training waits for input; Map holds")
    assert of_kind(keras(3), "input_bound") == []


def test_a_loop_that_waits_between_its_steps_says_so():
    steps = [(f"train {n}", 100 * n * MS, (100 * n + 40) * MS) for n in range(8)]
    main = [(name.split()[0], begin, end, n) for n, (name, begin, end) in enumerate(steps)]
    main += [("dense/MatMul:MatMul", begin + MS, end) for _, begin, end in steps]
    main += [("IteratorGetNext", end, end + 60 * MS) for _, _, end in steps[:-1]]
    profile = profile_of({HOST_PLANE: {"python": sorted(main, key=lambda e: e[1])}}, steps)
    (finding,) = of_kind(profile, "input_bound")
    # Without the first two steps.
    waits, whole = 6 * 60, 6 * 40 + 6 * 60
    assert finding.title == (
        f"{waits / whole:.0%} of the time training waits for input, 100% of it between the steps"
    )
    # Whoever shows the waits, as the page's part on the input, has the numbers of the finding.
    assert answer_time(profile).as_json()["input"] == {
        "steps": 6, "left_out": 2, "waiting": 6, "within_ps": 0, "between_ps": waits * MS,
        "whole_ps": whole * MS,
    }  # fmt: skip


NODE = "autograd::engine::evaluate_function: "
STORE = "torch::autograd::AccumulateGrad"
CHECKS = ("aten::isnan", "aten::_is_any_true", "aten::item")


def node(number, name="MmBackward0", checks=CHECKS):
    """A node of 500 us, with its gradient and what follows it."""
    at = 500 * number
    ops = [(NODE + name, at, at + 400), ("aten::mm", at + 10, at + 200)]
    ops += [(op, at + 210 + 20 * n, at + 220 + 20 * n) for n, op in enumerate(checks)]
    if checks:
        ops.append(("aten::_local_scalar_dense", at + 251, at + 252))
    return ops


def passes(*nodes):
    return job_of_anomaly_checks(
        [op for number, one in enumerate(nodes) for op in node(number, *one)]
    )


def test_anomaly_detection():
    checked, stored = ("MmBackward0",), (STORE, ())
    (finding,) = of_kind_of_anomaly_checks(
        passes(checked, stored, checked, stored, checked), "host_sync"
    )
    # Of little time too: what it saves of the forward pass is in no event.
    assert finding.severity == "warning"
    assert finding.title == (
        "anomaly detection of torch.autograd is on: after 3 of 3 nodes of the backward pass in "
        "each step the gradients are searched for NaN and the answer is read (aten::isnan, "
        "aten::_is_any_true, aten::item), which takes 1% of the step time, and the stacks that the "
        "forward pass saves, which are not on record, take more: up to 90% in all of small models"
    )
    assert (finding.evidence["callee"], finding.evidence["reads_per_step"]) == ("aten::isnan", 3)
    assert finding.rows[0] == {"callee": "aten::isnan", "times_a_step": 3.0}


def test_older_versions_reduce_with_any():
    older = ("aten::isnan", "aten::any", "aten::item")
    assert len(of_kind_of_anomaly_checks(passes(("MmBackward0", older)), "host_sync")) == 1


@each_row(
    "nodes",
    [
        # No check, a search that no one reads, and checks of a program's own hooks at few nodes,
        # or where gradients of weights are added up.
        [("MmBackward0", ())],
        [("MmBackward0", ("aten::isnan", "aten::any"))],
        [("MmBackward0", CHECKS), ("MmBackward0", ()), ("AddBackward0", ())],
        [("MmBackward0", ()), (STORE, CHECKS), (STORE, CHECKS)],
    ],
)
def test_what_is_none(nodes):
    assert of_kind_of_anomaly_checks(passes(*nodes), "host_sync") == []


def test_checks_in_a_forward_pass_are_none():
    ops = [(op, 20 * n, 20 * n + 10) for n, op in enumerate(CHECKS)]
    assert (
        of_kind_of_anomaly_checks(
            job_of_anomaly_checks([*ops, (NODE + "MmBackward0", 500, 900)]), "host_sync"
        )
        == []
    )
