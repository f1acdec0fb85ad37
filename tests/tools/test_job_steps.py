"""The tool `job_steps`: against the truth of simulated jobs, and against what the job says."""

import json
import statistics
from pathlib import Path

import numpy as np
import pytest
from tests.each_row import each_row
from tests.jobs.simulated import SCENARIOS
from tests.jobs.snapshots import fat_rank_zero, write_snapshots

import peakline
from peakline.engine import Engine
from peakline.errors import NotFoundError
from peakline.repository import resolve_hosts

DATA = Path(__file__).parents[1] / "data" / "jobs"
NEAR_PS = 2_000_000


@pytest.fixture(scope="module")
def engine():
    with Engine() as result:
        yield result


def ask(engine, folder, tool="job_steps", **parameters):
    session = resolve_hosts(str(folder))
    return json.loads(engine.tool(session, tool, host="", parameters=parameters).content)


def matrix(document):
    """Ranks x steps in ps, NaN for what is not known."""
    rows = [[np.nan if v is None else v for v in row] for row in document["rows"]]
    return np.array(rows) * document["unit"]


def test_each_number_is_what_is_true(engine, tmp_path):
    """Every matrix again, in the plainest way, from when each rank came and went."""
    truth = SCENARIOS["tensor_data"](16, 3, seed=3).write(tmp_path)
    document = ask(engine, tmp_path)
    assert document["steps"] == [f"ProfilerStep#{step}" for step in (1, 2, 3)]
    assert document["ranks"]["title"] == [f"rank {rank}" for rank in range(16)]
    step, late, excess = (matrix(document[f"{name}_ps"]) for name in ("step", "late", "excess"))
    for rank, spans in truth.rank_steps.items():
        begins = [begin for _, begin, _ in spans]
        for (_, begin, _), until, own in zip(spans, begins[1:], step[rank], strict=False):
            assert own == pytest.approx(until - begin, abs=NEAR_PS)
        for number in (1, 2, 3):
            own = [
                one.arrive_ps[rank]
                - statistics.median(at for other, at in one.arrive_ps.items() if other != rank)
                for one in truth.collectives
                if one.step == number and rank in one.arrive_ps
            ]
            assert late[rank, number - 1] == pytest.approx(statistics.median(own), abs=NEAR_PS)
    # Who is slow by itself exceeds, in each step; who waits for it does not.
    (root,) = truth.root.ranks
    assert (excess.argmax(axis=0) == root).all()
    others = np.delete(excess, root, axis=0)
    assert np.abs(others).max() < 0.2 * excess[root].min()
    divided = {one["title"]: one["of"] for one in document["groups"]}
    assert sorted(map(sorted, map(set, divided.values()))) == [list(range(4))] * 2
    groups = {one.group for one in truth.collectives}
    for of in divided.values():
        for label in set(of):
            assert tuple(rank for rank in range(16) if of[rank] == label) in groups


@each_row(
    "folder, titles",
    [
        ("ddp_fat/faulty", []),
        ("mesh_work/faulty", ["mesh_dp", "mesh_tp"]),
        ("pipeline_stage/faulty", []),
        ("tf_workers/faulty", []),
    ],
)
def test_the_job_says_the_same_of_its_ranks(engine, folder, titles):
    job, document = ask(engine, DATA / folder, "job"), ask(engine, DATA / folder)
    steps, waiting = (matrix(document[f"{name}_ps"]) for name in ("step", "waiting"))
    assert len(document["steps"]) == job["time"]["steps"]
    for place, rank in enumerate(job["ranks"]):
        assert rank["step_ps"] == pytest.approx(np.nanmean(steps[place]), abs=1)
        assert rank["waiting_ps"] == pytest.approx(np.nansum(waiting[place]) / rank["steps"], abs=1)
        for name in ("rank", "title", "host", "peak_bytes"):
            assert document["ranks"][name][place] == rank[name]
    if document["peak_bytes"] is not None:
        assert (
            matrix(document["peak_bytes"]).max(axis=1).tolist() == document["ranks"]["peak_bytes"]
        )
    assert sorted(one["title"] for one in document["groups"]) == titles


def test_the_peaks_of_all_ranks_are_to_the_byte(engine, tmp_path):
    truth = write_snapshots(tmp_path, fat_rank_zero(4))
    document = ask(engine, tmp_path, "job_memory")
    peaks = [rank["peak_bytes"] for rank in document["ranks"]]
    assert peaks == [truth.peak_bytes[rank] for rank in range(4)]
    assert peaks == ask(engine, tmp_path)["ranks"]["peak_bytes"]
    assert [one["rank"] for one in document["memory"]["differences"]] == ["rank 0"]
    # Snapshots have no steps: nothing is known of any.
    steps = ask(engine, tmp_path)
    assert (steps["steps"], steps["step_ps"], steps["late_ps"]) == ([], None, None)


def test_of_one_step_there_is_also_when_each_rank_was_in_it(engine):
    folder = DATA / "ddp_input" / "faulty"
    whole, one = ask(engine, folder), ask(engine, folder, step="ProfilerStep#7")
    assert one["steps"] == ["ProfilerStep#7"]
    at = whole["steps"].index("ProfilerStep#7")
    for name in ("step", "excess", "waiting", "late"):
        expected = matrix(whole[f"{name}_ps"])[:, at : at + 1]
        assert np.array_equal(matrix(one[f"{name}_ps"]), expected, equal_nan=True)
    profile = peakline.open(str(folder / "rank2.json.gz"))
    (row,) = profile.sql(
        "select start_ps, wall_ps from step_breakdown where name = 'ProfilerStep#7'"
    ).to_pylist()
    assert one["begin_ps"][2] == row["start_ps"]
    assert one["end_ps"][2] == row["start_ps"] + row["wall_ps"]
    with pytest.raises(NotFoundError, match="no step of the job is called 'nowhere'"):
        ask(engine, folder, step="nowhere")


def test_the_answer_about_many_ranks_is_small(engine, tmp_path):
    """A thousand ranks of a hundred steps come in three megabytes before they are packed."""
    SCENARIOS["slow_rank"](16, 5).write(tmp_path)
    document = ask(engine, tmp_path)
    size = sum(
        len(json.dumps(document[f"{name}_ps"]["rows"], separators=(",", ":")))
        for name in ("step", "waiting", "late")
    )
    assert size / (16 * 5) * 100_000 < 3_000_000
