"""`peakline sql` over the ranks of a job."""

import json

import pytest
from tests.jobs.traces import put_job


@pytest.fixture
def job(tmp_path):
    return put_job(tmp_path / "job")


def test_what_cannot_be_read_is_said_and_the_rest_answered(peakline, job):
    run = peakline(
        "sql", job, "select rank, name from events where name like 'a%'", "--format", "csv"
    )
    assert run.out.split() == ["rank,name", "0,aten::r0", "2,aten::r2"]
    missing, left_out = run.err.splitlines()
    assert missing == "peakline: no profile of rank 3"
    assert left_out.startswith("peakline: warning: left out: host rank1: ")
    run = peakline("sql", job, "select rank, host, status from ranks", "--format", "json")
    rows = json.loads(run.out)
    assert [(one["rank"], one["host"]) for one in rows] == [*enumerate(("rank0", "rank1", "rank2"))]
    assert [one["status"] == "read" for one in rows] == [True, False, True]
    run = peakline("sql", job, "select 7 from events", "--strict")
    assert (run.code, run.out) == (3, "")


def test_a_table_that_some_ranks_lack_has_the_rows_of_the_others(peakline, job):
    run = peakline("sql", job, "select rank, count(*) n from allocator_events group by 1")
    assert run.out.split() == ["rank", "n", "2", "1"]
    assert "peakline: no allocator_events in the profile of rank 0\n" in run.err
    run = peakline("sql", job, "from hlo_modules")
    assert (run.code, run.out) == (1, "")
    assert "Table with name hlo_modules does not exist!" in run.err
    assert peakline("sql", job, "describe hlo_modules").code == 1
    assert "allocation_churn" in peakline("sql", "--list", job).out


def test_an_answer_is_not_written_over_a_rank(peakline, job):
    before = (job / "rank0.json").read_bytes()
    run = peakline("sql", job, "from lines", "--format", "csv", "-o", job / "rank0.json", "--force")
    assert (run.code, (job / "rank0.json").read_bytes()) == (2, before)
