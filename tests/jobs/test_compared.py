"""Two jobs side by side: what changed, which ranks changed otherwise, and who is waited for."""

import functools
import json
import tempfile
from pathlib import Path

import pytest
from tests.each_row import each_row
from tests.jobs import snapshots
from tests.jobs.answering import answer_in
from tests.jobs.simulated import SCENARIOS

from peakline.document.job_diff import job_diff_document, job_diff_headline, job_diff_lines
from peakline.jobs.compared import JobDiff

MS = 10**9
MIB = 1 << 20


@functools.cache
def simulated(name, seed):
    with tempfile.TemporaryDirectory() as folder:
        SCENARIOS[name](8, seed=seed).write(Path(folder))
        return answer_in(folder)


def test_two_healthy_runs_differ_in_nothing():
    diff = JobDiff(simulated("healthy", 1), simulated("healthy", 2))
    assert (diff.slower_ranks, diff.fuller_ranks, diff.ops) == ([], [], ())
    assert not any(diff.roots.values())
    assert abs(diff.steps_ps[1].mean() / diff.steps_ps[0].mean() - 1) < 0.01
    assert job_diff_lines(diff) == []
    assert sorted(diff.pairs) == [f"rank {n}" for n in range(8)]


@each_row(
    "name, cause, least, most",
    [("slow_rank", "slower_device", 7.5, 9), ("slow_input", "input", 11.5, 12.5)],
)
def test_the_rank_that_became_slower_is_named(name, cause, least, most):
    diff = JobDiff(simulated("healthy", 1), simulated(name, 3))
    (one,) = diff.slower_ranks
    ((_, root),) = diff.roots["new"]
    assert one.title == diff.after.job.members[root.fault.member].title
    assert least * MS < one.delta < most * MS
    assert abs(one.usual) < 0.2 * MS
    assert root.cause.kind == cause
    assert f"new: {one.title} ({cause.replace('_', ' ')})" in job_diff_headline(diff)
    back = JobDiff(simulated(name, 3), simulated("healthy", 1))
    assert (back.roots["new"], len(back.roots["gone"])) == ([], 1)
    assert [each.title for each in back.slower_ranks] == [one.title]
    assert job_diff_headline(back).endswith(f"gone: {one.title} ({cause.replace('_', ' ')})")


def test_the_same_root_is_neither_new_nor_gone():
    before, after = simulated("slow_rank", 3), simulated("slow_rank", 3)
    roots = JobDiff(before, after).roots
    assert (roots["new"], roots["gone"], len(roots["both"])) == ([], [], 1)


def test_the_document_agrees_with_each_job():
    diff = JobDiff(simulated("healthy", 1), simulated("slow_rank", 3))
    document = json.loads(json.dumps(job_diff_document(diff, "a", "b")))
    for which, answer in (("before", diff.before), ("after", diff.after)):
        assert document["time"][which]["step_ps"] == round(answer.replay.recorded_ps)
        for row in document["ranks"]:
            (member,) = [one for one in answer.job.members if one.title == row["title"]]
            # What one rank's steps last, from its own contribution.
            steps = member.steps
            own = [
                (steps.begin[k + 1] if k + 1 < len(steps.begin) else steps.end[k]) - steps.begin[k]
                for k in range(len(steps.begin))
                if steps.is_whole[k]
            ]
            assert row[which]["step_ps"] == pytest.approx(sum(map(int, own)) / len(own), abs=1)
    (apart,) = document["time"]["ranks_apart"]
    (row,) = [row for row in document["ranks"] if row["title"] == apart["rank"]]
    assert apart["before_ps"] == row["before"]["own_work_ps"]
    assert apart["after_ps"] == row["after"]["own_work_ps"]
    assert [one["kind"] for one in document["findings"]["new"]][:1] == ["straggler"]


def test_memory_of_ranks_is_compared_by_kind(tmp_path):
    shapes = snapshots.sharded(4)
    for name, own in (("before", shapes), ("after", snapshots.sharded(4, whole=2))):
        (tmp_path / name).mkdir()
        snapshots.write_snapshots(tmp_path / name, own)
    diff = JobDiff(answer_in(tmp_path / "before"), answer_in(tmp_path / "after"))
    (one,) = diff.fuller_ranks
    assert (one.title, one.usual) == ("rank 2", 0)
    held = diff.held("rank 2")
    assert held.peak_delta_bytes == one.delta == sum(row.delta_bytes for row in held.groups)
    assert "peak" in job_diff_headline(diff)
    assert diff.held("rank 1").groups == ()
