"""Jobs whose truth is known: the root is named, nobody where there is none, and what a step takes
without it.
"""

import gzip
import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.each_row import each_row
from tests.jobs.answering import answer_in
from tests.jobs.simulated import SCENARIOS
from tests.jobs.xspace_hosts import xspace_hosts

from peakline.document.job import headline, job_document

NEAR = 0.05
"""A predicted step is as near to the true one (an answer is good within 0.1)."""


@pytest.fixture
def answered(tmp_path):
    """The answer about the job of a scenario, and its truth."""

    def answer(name, ranks=8, *, healthy=False, form="", **options):
        folder = tmp_path / f"{name}{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        scenario = SCENARIOS[name](ranks, **options)
        scenario = replace(scenario, form=form or scenario.form)
        truth = (scenario.healthy() if healthy else scenario).write(folder)
        return answer_in(folder), truth

    return answer


RECORDED = Path(__file__).parents[1] / "data" / "jobs"


def recorded(name, variant):
    """The answer about a recorded job, and what its own clocks say."""
    truth = json.loads((RECORDED / name / "truth.json").read_text())
    return answer_in(RECORDED / name / variant), truth


@each_row(
    "name, rank, causes, near",
    [
        ("ddp_input", 2, {"input"}, 0.1),
        ("ddp_host", 1, {"host"}, 0.1),
        ("fsdp_host", 1, {"unattributed"}, 0.1),
        # What other ranks do on the two cores of the machine goes faster without the cause, too.
        ("mesh_work", 3, {"more_work"}, 0.25),
        ("pipeline_stage", 2, {"more_work"}, 0.35),
    ],
)
def test_the_root_of_a_recorded_job_is_named(name, rank, causes, near):
    answer, truth = recorded(name, "faulty")
    root = job_document(answer)["time"]["root"]
    assert truth["faulty"]["root"]["rank"] == rank
    assert (root["ranks"], root["cause"] in causes) == ([rank], True)
    assert root["step_without_ps"] / 1e9 == pytest.approx(truth["without_ms"], rel=near)


@each_row("name", ["ddp_input", "ddp_host", "ddp_fat", "fsdp_host", "mesh_work", "pipeline_stage"])
def test_nobody_is_named_in_a_recorded_job_without_a_cause(name):
    answer, truth = recorded(name, "healthy")
    assert answer.roots == ()
    assert (answer.pauses, answer.missed) == (None, [])
    step = answer.replay.recorded_ps / 1e9
    assert step == pytest.approx(truth["healthy"]["step_ms"], rel=0.1)


def test_workers_of_tensorflow_wait_for_the_one_whose_batches_are_late():
    answer, truth = recorded("tf_workers", "faulty")
    (root,) = answer.roots
    assert answer.job.members[root.fault.member].host == "localhost_59589"
    assert truth["faulty"]["files"]["1"].endswith("localhost_59589.xplane.pb.gz")
    assert root.step_without_ps / 1e9 == pytest.approx(truth["without_ms"], rel=0.1)
    assert recorded("tf_workers", "healthy")[0].roots == ()


@each_row(
    "name, causes",
    [
        ("slow_rank", {"slower_device"}),
        ("more_work", {"more_work"}),
        ("slow_input", {"input"}),
        ("slow_host_unseen", {"unattributed"}),
        ("checkpoint", {"host"}),
        ("tensor_data", {"slower_device"}),
        ("skewed_clocks", {"slower_device"}),
        ("pipeline_stage", {"slower_device"}),
    ],
)
def test_the_root_is_named_with_what_a_step_takes_without_it(answered, name, causes):
    check_root(*answered(name, seed=7), causes)


@pytest.mark.nightly
@each_row(
    "name, causes",
    [
        ("slow_host", {"host"}),
        ("drifting_clocks", {"slower_device"}),
        ("shifted_windows", {"slower_device"}),
        ("incomplete_folder", {"slower_device"}),
        ("old_form", {"slower_device"}),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_the_root_is_named_in_more_jobs(answered, name, causes, seed):
    check_root(*answered(name, 16, seed=seed), causes)


def check_root(answer, truth, causes):
    root = job_document(answer)["time"]["root"]
    assert tuple(root["ranks"]) == truth.root.ranks
    assert root["cause"] in causes
    assert root["step_without_ps"] == pytest.approx(truth.without.mean, rel=NEAR)
    assert answer.replay.error == pytest.approx(0, abs=0.01)


@each_row(
    "name", ["noisy", "skewed_healthy", "tensor_data", "slow_network", "pipeline_stage"]
)  # fmt: skip
def test_nobody_is_named_where_nobody_is_late(answered, name):
    check_nobody(*answered(name, healthy=True, seed=7))


@pytest.mark.nightly
@each_row(
    "name", ["healthy", "drifting_healthy", "slow_links", "random_pauses", "noisy", "tensor_data"]
)  # fmt: skip
@pytest.mark.parametrize("seed", range(3))
def test_nobody_is_named_in_more_jobs(answered, name, seed):
    check_nobody(*answered(name, 16, healthy=True, seed=seed))


def check_nobody(answer, truth):
    assert truth.roots == []
    assert answer.roots == ()
    assert answer.pauses is None
    assert "no rank keeps the others waiting" in headline(answer)


@each_row("scheme", ["fsdp", "tensor", "pipeline"])
def test_numbers_and_ids_of_new_files_pair_what_is_one(answered, scheme):
    answer, truth = answered("slow_rank", seed=7, scheme=scheme, form="2.13")
    root = job_document(answer)["time"]["root"]
    assert tuple(root["ranks"]) == truth.root.ranks
    assert root["step_without_ps"] == pytest.approx(truth.without.mean, rel=NEAR)
    assert answer.replay.error == pytest.approx(0, abs=0.01)


@each_row("name", ["slow_network", "slow_links"])
def test_a_slow_wire_is_no_rank(answered, name):
    answer, truth = answered(name, 16, seed=7)
    root = job_document(answer)["time"]["root"]
    assert (root["rank"], root["cause"]) == (None, "network")
    assert root["step_without_ps"] == pytest.approx(truth.without.mean, rel=NEAR)


def test_pauses_of_ever_other_ranks_are_no_straggler(answered):
    answer, truth = answered("random_pauses", seed=7)
    assert (truth.alternates, answer.roots) == (True, ())
    assert answer.step_without_pauses_ps == pytest.approx(truth.without.mean, rel=NEAR)
    assert "no rank is always late" in headline(answer)


def test_a_straggler_that_changes_is_two(answered):
    answer, truth = answered("changing_straggler", seed=7)
    own = {root.fault.members: root for root in answer.roots}
    assert set(own) == {root.ranks for root in truth.roots}
    for root in truth.roots:
        assert own[root.ranks].step_without_ps == pytest.approx(root.without.mean, rel=NEAR)
        recorded = range(max(root.first, 1), min(root.last, 10) + 1)
        assert int(own[root.ranks].fault.steps.sum()) == len(recorded)


def test_what_is_missing_of_a_folder_is_said(answered):
    answer, truth = answered("incomplete_folder", seed=7)
    assert list(answer.job.missing) == truth.missing
    assert [line.partition(":")[0] for line in answer.job.damaged] == [
        f"rank {rank}" for rank in truth.cut
    ]
    assert len(answer.job.members) == 8 - len(truth.missing)


def test_a_collective_that_a_rank_skips_is_no_lost_record(answered):
    answer, truth = answered("skipped_collective", seed=7)
    (one,) = answer.missed
    assert ((one.member,), one.is_lost) == (truth.root.ranks, False)
    assert one.step == f"ProfilerStep#{truth.root.first}"
    assert headline(answer).startswith(f"rank {one.member} took part in 2 of 3 all-reduces of 96")
    document = job_document(answer)
    root, first = document["time"]["root"], document["first"][0]
    assert (root["rank"], root["cause"]) == (one.member, "missed_collective")
    assert (first["kind"], first["severity"]) == ("missed_collective", "error")
    answer, truth = answered("lost_collective", seed=7)
    (one,) = answer.missed
    assert ({one.member}, one.is_lost) == (set(truth.incomplete), True)
    answer, _ = answered("stopped_early", seed=7)
    assert answer.missed == []


@each_row("name", ["tensor_data", "pipeline_stage", "skewed_clocks"])
def test_a_step_is_own_work_waiting_and_transfers(answered, name):
    """Each moment once, also where several collectives are open at a time."""
    answer, _ = answered(name, 8)
    times, work = answer.times, np.nanmean(answer.work.work_ps, axis=1)
    assert (times.waiting >= 0).all()
    assert (times.transfer >= 0).all()
    assert times.waiting + times.transfer + work == pytest.approx(times.step, rel=1e-9)


def test_without_marks_of_steps_nobody_says_why(tmp_path):
    truth = SCENARIOS["slow_rank"](8, seed=7).write(tmp_path)
    for path in tmp_path.iterdir():
        text = gzip.decompress(path.read_bytes()).replace(b"ProfilerStep#", b"Thing")
        path.write_bytes(gzip.compress(text))
    answer = answer_in(tmp_path)
    assert (answer.job.steps, answer.roots) == ({}, ())
    (rank,) = truth.root.ranks
    assert headline(answer).startswith(f"rank {rank} comes last to ")
    assert "no steps are marked" in headline(answer)


def test_ranks_that_do_not_wait_differ_in_every_step():
    """By less than what their steps differ, and by most of a step in each."""
    place = RECORDED.parent / "diagnosis" / "tf_batch_scoring"
    answer = answer_in(place / "faulty")
    (root,) = answer.roots
    assert answer.job.members[root.fault.member].title == "rank 1"
    assert (root.cause.kind, root.step_without_ps) == ("input", None)
    assert "nothing shows that the others wait for it" in headline(answer)
    rows = job_document(answer)["ranks"]
    assert [(row["waiting_ps"], row["transfer_ps"]) for row in rows] == [(None, None)] * 2
    assert answer_in(place / "healthy").roots == ()


def test_recordings_of_two_runs_are_not_put_together(tmp_path):
    """They have the ranks and the world size of one job, and one machine's clock."""
    for rank, variant in enumerate(("healthy", "faulty")):
        name = f"trace_rank_{rank}.json.gz"
        (tmp_path / name).write_bytes((RECORDED / "ddp_host" / variant / name).read_bytes())
    job = answer_in(tmp_path).job
    assert [one.number for one in job.members] == [0]
    assert [(one.host, one.reason) for one in job.left_out] == [
        ("trace_rank_1", "was recorded 26.680 s before the others of vm")
    ]
    assert job.missing == (1,)


def test_a_contribution_is_small(answered):
    answer, _ = answered("tensor_data", seed=7)
    steps = len(answer.job.steps)
    for one in answer.job.profiles:
        assert len(pickle.dumps(one)) < 2000 * steps + 12_000  # of 100 steps: 200 kB


def test_a_slow_host_of_many_devices_is_one_root(tmp_path):
    truth = xspace_hosts(tmp_path, 6, slow=3)
    root = job_document(answer_in(tmp_path))["time"]["root"]
    assert (root["title"], root["cause"]) == ("host-0003", "slower_device")
    assert root["step_without_ps"] == pytest.approx(truth.without_ps, rel=0.06)
