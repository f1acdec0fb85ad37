"""Findings of time: on tables made by hand, on jobs on GPUs made by hand, on recorded programs."""

import gzip
import json
import re
from pathlib import Path

from tests.analysis.timing.gpu_jobs import COLLECTIVES, COPIES, Job, Work, healthy, write
from tests.each_row import each_row
from tests.profile.fake import FakeReader
from tests.reference.xspace_builder import SpaceBuilder
from tests.shared import shared

import peakline
from peakline.api import Profile
from peakline.findings.finding import Finding
from peakline.findings.ranking import priorities
from peakline.schema import XSpace
from peakline.timing.step_facts import PARTS

DATA = Path(__file__).resolve().parents[2] / "data"
PROGRAMS = DATA / "programs" / "time"
TRUTH = json.loads((DATA.parent / "programs" / "time_truth.json").read_text())
MS = 10**9
GPU = "/device:GPU:0"


def steps(*rows, device=None, gap_ms=0, name="train {}", found_by="mark"):
    """A profile with these steps: parts in ms, one after the other on each device."""
    told, ends = [], {}
    for step, given in enumerate(rows):
        parts = dict(given)
        lane = parts.pop("device", device)
        number = parts.pop("step", step)
        gap = gap_ms * MS if lane in ends else 0
        wall = sum(parts.values()) * MS
        begin = ends.get(lane, 0) + gap
        ends[lane] = begin + wall
        told.append(
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
    return Profile(FakeReader({"step_breakdown": told}))


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


def test_without_a_device_nothing_waits_for_the_host():
    assert kinds(steps(*[{"host_compute": 50, "launch": 20, "unknown": 30}] * 4)) == []


def test_input_is_waited_for_on_a_host_too():
    finding = only(steps(*[{"host_compute": 50, "input_wait": 50}] * 4))
    assert (finding.kind, finding.evidence["input_wait_ps"]) == ("input_bound", 200 * MS)


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


def test_what_takes_longer_in_a_slow_step(tmp_path):
    def work(step, _device):
        extra = [Work("evaluate", 9_900, 40_000, launched=90)] if step % 4 == 3 else []
        return [*healthy(0, 0), *extra]

    found = found_in(Job(work, steps=16, period=50_000), tmp_path)
    finding = next(one for one in found if one.kind == "step_variation")
    assert (finding.evidence["longest"], finding.evidence["period_steps"]) == ("evaluate", 4)
    assert finding.evidence["longest_extra_ps"] == 40 * MS
    assert "most of it evaluate, which runs 1.0 times in a slow step, 0.0 in" in finding.suggestion


def test_findings_stand_in_order_of_what_would_be_gained():
    found = kinds(
        steps(*[{"compute": 30, "launch": 40, "host_to_device": 20, "device_to_host": 10}] * 4,
              device=GPU)
    )  # fmt: skip
    assert found == ["launch_bound", "time_in_copies"]


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
    order = [(one.about, one.finding.kind, one.gain_share) for one in priorities(memory, time)]
    assert order == [
        ("memory", "out_of_memory", 0),
        ("time", "input_bound", 0.3),
        ("memory", "leak", 0.1),
        ("memory", "near_capacity", 0),
        ("memory", "cache", 0.9),
    ]


def gains(*memory):
    """Per kind what is gained, in order, beside a loss of 5 % of the time."""
    found = [
        Finding(kind, "warning", kind, evidence | {"allocator": name}, "do it")
        for kind, name, evidence in memory
    ]
    time = [Finding("launch_bound", "warning", "launches", {"gain_share": 0.05}, "do it")]
    return [(one.finding.kind, one.gain_share) for one in priorities(found, time)]


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
    profile = Profile(FakeReader({"allocator_events": []}))
    answer = profile.time()
    assert (answer.times, answer.findings) == (None, ())
    assert answer.nothing == "no time in this file"
    assert answer.as_json() == {
        "times": None,
        "times_by_device": [],
        "times_by_name": [],
        "found_by": None,
        "parts": [],
        "devices": [],
        "to_record": [],
        "utilisation": None,
        "steps": [],
        "findings": [],
    }


def test_a_few_long_stalls_between_steps_are_named():
    rows = [{"compute": 100} for _ in range(12)]
    profile = steps(*rows, device=GPU, gap_ms=1)
    table = profile.columns("step_breakdown").to_pylist()
    for row in table[5:]:
        row["start_ps"] += 399 * MS
        row["end_ps"] += 399 * MS
    table[5]["gap_before_ps"] = 400 * MS
    found = only(Profile(FakeReader({"step_breakdown": table})))
    assert found.title == (
        "the device is idle between the steps for 25% of the time: "
        "1 long stall (400.000 ms at 504.000 ms), else 1.000 ms each (median)"
    )
    assert found.evidence["stalls"] == 1


def test_the_median_of_slow_steps_says_that_it_leaves_out_the_first():
    slow = [{"host_compute": 100 if n == 7 else 10 + n} for n in range(12)]
    assert (
        "(17.000 ms without the first 2)"
        in only(steps(*[{"host_compute": 80}] * 2, *slow[2:])).title
    )


@each_row(
    ("host", "says"),
    [("python", "had not launched its next work"), ("backend_compile", "compiled")],
)
def test_an_idle_device_is_told_of_without_steps(opened, host, says):
    space = SpaceBuilder()
    stream = space.plane(GPU).line("Stream #13(Compute)")
    python = space.host().line("python")
    python.event(host, 0, 19 * MS, {})
    for number in range(3):
        stats = {"correlation_id": number + 1}
        stream.event("gemm", 10 * number * MS, MS, stats)
        python.event("cuLaunchKernel", max(10 * number - 1, 0) * MS, 1000, stats)
    profile = opened(space)
    answer = profile.time()
    (found,) = answer.findings
    assert (answer.times, found.kind, found.severity) == (None, "host_bound", "warning")
    assert found.title == f"{GPU} waits for 86% of 21.000 ms while the host {says}"
    assert found.evidence["share"] == 18 / 21
    (row,) = found.rows
    assert (row["not_launched_ps"], row["being_launched_ps"]) == (16 * MS, 2 * MS)


@each_row(
    ("copy_ns", "says", "severity", "share"),
    [
        # A two hundredth, then a fiftieth, of what the other device works.
        (5_000, "/device:GPU:0 waits for 86% of 21.000 ms", "warning", 18 / 21),
        (20_000, "/device:GPU:1 waits for 100% of 30.020 ms", "warning", None),
    ],
)
def test_of_idle_devices_those_that_work_come_first(opened, copy_ns, says, severity, share):
    (found,) = idle_of(opened, {"/device:GPU:0": (10, MS), "/device:GPU:1": (15, copy_ns * 1000)})
    assert found.title.startswith(says)
    assert found.severity == severity
    assert share in {None, found.evidence["share"]}
    assert len(found.rows) == 2


def test_an_idle_device_that_does_none_of_the_work_is_a_note(opened):
    (found,) = idle_of(opened, {"/device:GPU:0": (1, MS), "/device:GPU:1": (10, MS // 200)})
    assert found.severity == "info"
    assert found.title == (
        "/device:GPU:1 waits for 100% of 20.005 ms while the host had not launched its next work "
        "(it does 0.5% of the work of the busiest device)"
    )
    assert (found.evidence["gain_ps"], found.evidence["gain_share"]) == (0, 0.0)


def idle_of(opened, devices):
    """What is found where each device has three pieces of work, launched as they begin: the ms from
    one to the next, and the ps that each takes.
    """
    space = SpaceBuilder()
    python = space.host().line("python")
    number = 0
    for device, (apart, length) in devices.items():
        stream = space.plane(device).line("Stream #13(Compute)")
        for place in range(3):
            number += 1
            stats = {"correlation_id": number}
            begin = max(apart * MS, length) * place
            stream.event("gemm", begin, length, stats)
            python.event("cuLaunchKernel", max(begin - 1, 0), 1000, stats)
    profile = opened(space)
    return profile.time().findings


def test_the_program_that_is_compiled_again_is_named():
    with peakline.open(PROGRAMS / "recompiling.xplane.pb.gz") as profile:
        (found,) = profile.time().findings
    assert found.evidence["programs"] == ["train"]
    assert "10 of 10 steps after the first 2 compile train: " in found.title


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

    found = found_in(Job(work, devices=3), tmp_path)
    assert [finding.kind for finding in found] == ["communication_not_overlapped"]


@each_row("kind", JOBS)
def test_a_faulty_job_and_its_healthy_twin(kind, tmp_path):
    found = [[one.kind for one in found_in(job, tmp_path)] for job in JOBS[kind]]
    assert found == [[kind.partition(" ")[0]], []]


# Programs, recorded.


def program(name):
    return shared(PROGRAMS / TRUTH[name]["file"])


@each_row("name", TRUTH)
def test_a_recorded_program_has_its_fault_and_no_other(name):
    answer = program(name).time()
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
    found = shared(sample).time().findings
    session = sample.parts[sample.parts.index("sessions") + 1]
    assert [finding.kind for finding in found] == BETWEEN.get(session, [])
    assert {finding.severity for finding in found} <= {"info"}


@each_row("path", MEMORY)
def test_programs_with_faults_of_memory_are_healthy_in_time(path):
    found = {finding.kind for finding in shared(path).time().findings}
    assert found == TELLING.get(path.name.partition(".")[0], set())
