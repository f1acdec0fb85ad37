"""The slow readers against what is known: XProf's own unit test, named cases, odd traces."""

import json

import pytest

from reference.cases import CASES
from reference.grouping import group_events
from reference.kineto import Trace
from reference.memory_profile import memory_profile
from reference.odd_traces import ODDITIES, odd_trace
from reference.random_xspace import PROFILES, random_xspace
from reference.xspace_builder import SpaceBuilder
from tests.each_row import each_row


@pytest.fixture(scope="module")
def upstream():
    """The profile of the one allocator in xplane_to_memory_profile_test.cc."""
    document = memory_profile(CASES["upstream_unit_test"].build())
    assert document["memoryIds"] == ["GPU_0_bfc"]
    assert (document["numHosts"], document["version"], document["hloModules"]) == (1, 1, [])
    return document["memoryProfilePerAllocator"]["GPU_0_bfc"]


def test_upstream_summary(upstream):
    assert upstream["profileSummary"] == {
        "peakBytesUsageLifetime": "9500",
        "peakStats": {
            "stackReservedBytes": "2000",
            "heapAllocatedBytes": "5000",
            "freeMemoryBytes": "3000",
            "fragmentation": 0.0,
            "peakBytesInUse": "7000",
        },
        "peakStatsTimePs": "70000",
        "memoryCapacity": "10000",
    }


def test_upstream_rows(upstream):
    rows = [
        (row["snapshotIndex"], row["specialIndex"], row["numOccurrences"])
        for row in upstream["activeAllocations"]
    ]
    assert rows == [("-1", "0", "1"), ("-2", "1", "1"), ("0", "-1", "1")]
    (chosen,) = upstream["memoryProfileSnapshots"]
    assert chosen["activityMetadata"]["tfOpName"] == "mul_grad/Sum"
    assert chosen["activityMetadata"]["dataType"] == "int64"
    special = [
        (allocation["tfOpName"], allocation["allocationBytes"])
        for allocation in upstream["specialAllocations"]
    ]
    assert special == [("unused preallocated device memory", "4700"), ("stack", "2000")]


def test_upstream_timeline(upstream):
    timeline = [snapshot["activityMetadata"] for snapshot in upstream["sampledTimelineSnapshots"]]
    assert [activity["stepId"] for activity in timeline] == ["0", "0", "0"]
    free = timeline[1]
    assert free["memoryActivity"] == "DEALLOCATION"
    assert free["tfOpName"] == "foo/bar"
    assert free["regionType"] == "output"
    assert free["dataType"] == "float"
    assert free["tensorShape"] == "[3, 3, 512, 512]"


def test_groups_and_names():
    space = SpaceBuilder()
    line = space.host().line()
    line.event("before", 0, 10)
    line.event("train", 100, 100, {"_r": 1, "step_num": 170})
    line.event("work", 120, 10)
    grouping = group_events(space.space)
    assert grouping.groups == {(0, 0, 1): 0, (0, 0, 2): 0}
    assert grouping.names == {0: "train 170"}


def test_crowds_are_not_connected():
    sizes = {
        name: len(group_events(CASES[name].build()).groups)
        for name in ("crowd_64_by_64", "crowd_63_by_64", "crowd_64_by_63")
    }
    # The roots; else also the consumers, each with the allocation inside it.
    assert sizes == {
        "crowd_64_by_64": 64,
        "crowd_63_by_64": 63 + 2 * 64,
        "crowd_64_by_63": 64 + 2 * 63,
    }


@each_row(("count", "kept"), [(1000, 1000), (1001, 1000), (2500, 1000)])
def test_sampling(count, kept):
    document = memory_profile(CASES[f"sampling_{count}"].build())
    profile = document["memoryProfilePerAllocator"]["GPU_0_bfc"]
    assert len(profile["sampledTimelineSnapshots"]) == kept


def test_no_host_plane_has_no_answer():
    assert memory_profile(CASES["no_host_plane"].build()) is None


def test_every_case_has_a_rule_and_a_sentence():
    assert len(CASES) > 100
    assert all(case.doc and case.rule and case.name == name for name, case in CASES.items())


@each_row("profile", sorted(PROFILES))
def test_random_spaces_repeat(profile):
    first, again = random_xspace(3, profile), random_xspace(3, profile)
    assert first == again
    assert first != random_xspace(4, profile)


def event(name, cat, ts, dur, *, pid=1, tid=5, **args):
    return {
        "ph": "X", "name": name, "cat": cat, "pid": pid, "tid": tid, "ts": ts, "dur": dur,
        "args": args,
    }  # fmt: skip


def steps_of(*records):
    return [
        (step.name, step.number, step.is_cut_off)
        for step in Trace(json.dumps({"traceEvents": records})).steps()
    ]


@pytest.mark.parametrize(
    ("names", "cut_off"),
    [
        (["ab", "ab", "ab"], False), (["ab", "ab", "a"], True), (["ab", "ab", ""], True),
        (["ab", "ac", "a"], False), (["ab", "a"], False), (["ab", ""], True), (["", ""], False),
        (["a", "a", "ab"], False),
    ],
)  # fmt: skip
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
    result = [(step.shown, step.start_ps, step.end_ps, step.is_cut_off) for step in trace.steps()]
    assert sorted(result) == made.steps


def test_every_oddity_occurs():
    drawn = [odd_trace(seed) for seed in range(200)]
    assert all(sum(name in made.oddities for made in drawn) > 20 for name in ODDITIES)
    assert {made.flavour for made in drawn} == {"cuda", "mtia", "hpu", "old", "unknown"}
    assert {made.marks for made in drawn} == {"ProfilerStep", "step_num", "by_hand", "none"}
    assert odd_trace(3).text == odd_trace(3).text
