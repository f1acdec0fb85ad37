"""Findings of time on tables made by hand."""

from pathlib import Path

from tests.each_row import each_row
from tests.profile.fake import FakeReader

import peakline
from peakline.api import Profile
from peakline.findings.finding import Finding
from peakline.findings.ranking import priorities
from peakline.timing.steps.facts import PARTS

DATA = Path(__file__).resolve().parents[2] / "data"
PROGRAMS = DATA / "programs" / "time"
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
    assert [(one.about, one.finding.kind, one.gain_share) for one in priorities(memory, time)] == [
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
    answer = Profile(FakeReader({"allocator_events": []})).time()
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
    table = steps(*rows, device=GPU, gap_ms=1).columns("step_breakdown").to_pylist()
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
