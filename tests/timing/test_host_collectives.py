"""Collectives that hosts run themselves, and a program's own waiting for others."""

import json
from itertools import pairwise

import pytest
from tests.each_row import each_row

import peakline
from peakline import jobs
from peakline.document import waited_for
from peakline.trace.activity_names import Activity, host_activity

US = 10**6


def rank(folder, name, works, *, version="2.13", length=10_000):
    """A rank of a job on CPUs: it computes for so many us a step, and is in an all-reduce until the
    step's end, in the words of a version of PyTorch.
    """
    category, runloop = {"2.13": ("user_annotation", 9), "2.1": ("cpu_op", 9)}[version]
    events = []
    for step, work in enumerate(works):
        at = 1000 + step * length
        begin = {"ph": "X", "pid": 7, "tid": 7, "ts": at}
        events += [
            {**begin, "cat": "user_annotation", "name": f"ProfilerStep#{step}", "dur": length - 10},
            {**begin, "cat": "cpu_op", "name": "aten::mm", "ts": at + 5, "dur": work},
            {**begin, "cat": "cpu_op", "name": "c10d::allreduce_", "ts": at + work + 6, "dur": 3},
            {**begin, "cat": category, "name": "gloo:all_reduce", "tid": runloop,
             "ts": at + work + 9, "dur": length - work - 30},
        ]  # fmt: skip
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return peakline.open(str(path))


@pytest.mark.parametrize("version", ["2.13", "2.1"])
def test_collectives_of_gloo_are_seen_in_steps_and_ops(tmp_path, version):
    works = [4000, 4100, 3900, 4050]
    profile = rank(tmp_path, "a", works, version=version)
    rows = profile.table("step_breakdown").to_pylist()
    assert [row["communication_ps"] for row in rows] == [(9973 - work) * US for work in works]
    # What c10d's call does by itself is to wait for the library.
    assert [row["host_compute_ps"] for row in rows] == [work * US for work in works]
    ops = {row["op"]: row for row in profile.table("op_stats").to_pylist()}
    assert ops["gloo:all_reduce"]["self_ps"] == sum(9970 - work for work in works) * US
    assert ops["gloo:all_reduce"]["occurrences"] == 4


def test_an_annotation_that_is_only_called_like_a_backend_is_none(tmp_path):
    profile = rank(tmp_path, "a", [4000] * 3)
    path = tmp_path / "a.json"
    path.write_text(path.read_text().replace("gloo:all_reduce", "gloo:my own part"))
    profile = peakline.open(str(path))
    assert not any(row["communication_ps"] for row in profile.table("step_breakdown").to_pylist())


@each_row(("works", "others", "said"), [
    ([4000, 4100, 3900, 4050, 4000], [7000, 7100, 6900, 7050, 7000], "b keeps 1 other rank"),
    ([4000, 4600, 3900, 4450, 4000], [4300, 4100, 4200, 4050, 4300], "no rank keeps the others"),
])  # fmt: skip
def test_who_the_others_wait_for_in_gloo(tmp_path_factory, works, others, said):
    folder = tmp_path_factory.mktemp("ranks")
    own = {"a": rank(folder, "a", works), "b": rank(folder, "b", others)}
    answer = jobs.answer_of([(name, jobs.contribution_of(one)) for name, one in own.items()])
    assert said in waited_for(answer)["straggler_text"]


def test_without_collectives_nobody_is_acquitted(tmp_path):
    parts = []
    for name in "ab":
        rank(tmp_path, name, [4000] * 5)
        path = tmp_path / f"{name}.json"
        path.write_text(path.read_text().replace("gloo:all_reduce", "optimizer part"))
        path.write_text(path.read_text().replace("c10d::allreduce_", "aten::copy"))
        parts.append((name, jobs.contribution_of(peakline.open(str(path)))))
    result = waited_for(jobs.answer_of(parts))
    assert result["straggler"] is None
    assert "who waits for whom is not known" in result["straggler_text"]


@each_row(("name", "activity"), [
    *[(name, Activity.COMMUNICATION) for name in (
        "AllReduceWait", "wait_for_allreduce", "gradient sync", "barrier", "dist.barrier",
        "StepBarrier", "host_barrier_wait", "Wait for all reduce", "AllReduceWait 17",
        "sync_global_devices:checkpoint",
    )],
    *[(name, Activity.HOST) for name in (
        "all_reduce", "AllReduce", "optimization_barrier", "MemoryBarrier", "sync", "opt-barrier.3",
        "torch/distributed/distributed_c10d.py(3700): barrier", "FSDP::all_gather_copy_out",
    )],
])  # fmt: skip
def test_marks_of_a_programs_own_barrier(name, activity):
    assert host_activity(name) == activity


def test_waiting_that_a_program_marks_is_no_host_compute(tmp_path):
    profile = rank(tmp_path, "a", [4000] * 3)
    path = tmp_path / "a.json"
    events = json.loads(path.read_text())["traceEvents"]
    for one in events:
        if one["name"] == "gloo:all_reduce":
            one |= {"name": "AllReduceWait", "cat": "user_annotation", "tid": 7}
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    profile = peakline.open(str(path))
    rows = profile.table("step_breakdown").to_pylist()
    assert [row["communication_ps"] for row in rows] == [5973 * US] * 3
    starts = [row["start_ps"] for row in rows]
    assert {after - before for before, after in pairwise(starts)} == {10_000 * US}
