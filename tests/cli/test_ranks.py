"""Verbs on a folder that has a profile for each rank of a job."""

import json
from pathlib import Path

import pytest
from tests.repository.places import put

from peakline.repository import Repository
from peakline.service.view_place import find_place


def trace(rank):
    events = [
        {"ph": "X", "cat": cat, "name": f"{name}{rank}", "pid": 7, "tid": 7, "ts": at, "dur": 10}
        for cat, name, at in (("user_annotation", "ProfilerStep#", 5), ("cpu_op", "aten::r", 6))
    ]
    info = {"rank": rank, "world_size": 2}
    return json.dumps({"distributedInfo": info, "traceEvents": events}).encode()


@pytest.fixture
def job(tmp_path):
    """Two ranks, whose names are those of each other, and a trace that is none of theirs."""
    for rank, name in ((0, "rank1.json"), (1, "rank0.json")):
        put(tmp_path / "job", name, content=trace(rank))
    put(tmp_path / "job", "merged.json", content=trace(0))
    return tmp_path / "job"


def test_a_verb_for_several_hosts_answers_for_all_ranks(peakline, job):
    run = peakline("ops", job)
    assert run.code == 0
    assert f"{job} (job of 2 ranks, chrome_trace)" in run.out
    assert [name in run.out for name in ("aten::r0", "aten::r1")] == [True, True]
    other = "merged.json: chrome_trace: no rank of this job"
    assert run.err == f"peakline: {job}: not in the job: {other}\n"


def test_a_verb_for_one_takes_a_rank_or_a_host(peakline, job):
    run = peakline("graph", job)
    assert (run.code, run.out) == (2, "")
    assert "2 hosts, choose one with --rank or --host: rank0, rank1" in run.err
    query = "SELECT name FROM events WHERE category = 'cpu_op'"
    for choice, name in ((("--rank", 0), "aten::r0"), (("--host", "rank0"), "aten::r1")):
        run = peakline("sql", job, query, *choice, "--format", "csv")
        assert (run.out.split(), run.err) == (["name", name], "")
    run = peakline("tool", "trace_viewer", job, "--rank", 1)
    assert (run.code, "aten::r1" in run.out) == (0, True)
    run = peakline("ops", job, "--rank", 1, "--host", "rank0")
    assert (run.code, run.err) == (2, "peakline: --rank or --host, not both\n")
    run = peakline("ops", job, "--rank", 5)
    assert (run.code, run.err.endswith("no rank 5; there is: 0-1\n")) == (3, True)


def test_several_files_are_the_job_whose_ranks_they_are(peakline, job, monkeypatch):
    files = sorted(job.glob("*.json"))
    whole = peakline("ops", job)
    assert peakline("ops", *files) == whole
    monkeypatch.chdir(job)
    run = peakline("rank0.json", "./rank1.json")
    assert (run.code, ". (job of 2 ranks, chrome_trace)" in run.out, run.err) == (0, True, "")
    assert "job of 2 ranks" in peakline("rank0.json", job / "rank1.json").out
    for verb in ("summary", "steps", "memory", "ops", "fit"):
        assert peakline(verb, *files, "--json") == peakline(verb, job, "--json"), verb
    limit = ("--max-step-time", "1ns")
    failed = peakline("check", "rank0.json", "rank1.json", *limit)
    assert (failed.code, "2 of 2 ranks fail" in failed.err) == (1, True)
    assert peakline("tool", "job", *files).out == peakline("tool", "job", job).out
    for query in ("select rank, host from ranks", "from events"):
        assert peakline("sql", *files, query) == peakline("sql", job, query)
    assert peakline("sql", "--list", *files) == peakline("sql", "--list", job)
    one = peakline("ops", *files, "--rank", 1)
    assert "aten::r1" in one.out
    assert "aten::r0" not in one.out
    assert peakline("ops", *files, "--host", "rank0") == peakline("ops", job, "--host", "rank0")


def test_files_of_equal_names_are_called_by_their_folders(peakline, tmp_path):
    for rank in (0, 1):
        put(tmp_path, f"node{rank}/trace.json", content=trace(rank))
    for places in (["node0/trace.json", "node1/trace.json"], ["node0", "node1"]):
        run = peakline("sql", *(tmp_path / one for one in places), "select rank, host from ranks")
        assert run.out.split() == ["rank", "host", "0", "node0/trace", "1", "node1/trace"]
        assert run.err == ""


def test_log_directories_are_called_by_what_differs_in_their_paths(peakline, root, tmp_path):
    sample = (root / "tests/data/programs/late_slot.xplane.pb.gz").read_bytes()
    for node in (0, 1):
        put(tmp_path, f"node{node}/plugins/profile/s/vm.xplane.pb.gz", content=sample)
    nodes = [tmp_path / "node0", tmp_path / "node1"]
    run = peakline("sql", *nodes, "select rank, host from ranks")
    assert run.out.split() == ["rank", "host", "0", "node0", "1", "node1"]


def test_files_that_are_no_ranks_of_one_job(peakline, tmp_path, root):
    put(tmp_path, "a.json", "b.json", content=json.dumps({"traceEvents": []}).encode())
    run = peakline("summary", tmp_path / "a.json", tmp_path / "b.json")
    assert (run.code, run.out, run.err.count("\n")) == (2, "", 1)
    assert f"{tmp_path}/a.json, {tmp_path}/b.json: not the ranks of one job" in run.err
    sample = root / "tests/data/programs/late_slot.xplane.pb.gz"
    for rank in (0, 1):
        put(tmp_path, f"rank{rank}.json", content=trace(rank))
    ranks = [tmp_path / f"rank{rank}.json" for rank in (0, 1)]
    run = peakline("ops", *ranks, sample)
    assert "late_slot.xplane.pb.gz: xplane: no rank of this job\n" in run.err
    assert "job of 2 ranks" in run.out
    run = peakline("ops", *ranks, tmp_path / "c.json")
    assert (run.code, run.out) == (3, "")
    assert "c.json: no such file or directory; did you mean" in run.err
    assert peakline("ops", *ranks, "-").code == 2
    run = peakline("sql", *ranks[:1], "select", "1")
    assert run.err == "peakline: select: is no PATH; for the shell a query is one word in quotes\n"


def test_a_report_says_which_rank_it_is_of(peakline, job, tmp_path):
    assert peakline("report", job, "-o", tmp_path / "a.html", "--rank", 0).code == 0
    text = (tmp_path / "a.html").read_text(encoding="utf-8").replace("<wbr>", "")
    assert f"peakline report {job} -o {tmp_path}/a.html --rank 0" in text


def test_a_report_is_of_all_ranks(peakline, job, tmp_path):
    run = peakline("report", job, "-o", tmp_path / "a.html", "--title", "Two & two")
    assert run.code == 0
    text = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "<h1>Two &amp; two</h1>" in text
    assert "2 ranks, chrome_trace" in text
    run = peakline("report", job, "-o", tmp_path / "b.html", "--allocator", "cpu")
    assert (run.code, "--allocator is of one of its" in run.err) == (2, True)
    assert not (tmp_path / "b.html").exists()


def test_a_rank_whose_file_says_another(peakline, tmp_path):
    put(tmp_path, "rank0.json", "rank2.json", content=trace(0))
    run = peakline("ops", tmp_path, "--rank", 2)
    assert "no rank 2 (rank2 says it is 0); there is: 0" in run.err


def test_a_list_of_sessions_says_that_there_is_a_job(peakline, job):
    run = peakline("sessions", job)
    assert "no sessions, but a profile for each rank of a job, 2 of chrome_trace" in run.out
    assert json.loads(peakline("sessions", job, "--json").out) == []


def test_the_page_shows_the_ranks_as_hosts(job, tmp_path):
    place = find_place(str(job), None, "rank1", str(tmp_path))
    assert (place.session, place.host) == ("job", "rank1")
    (session,) = Repository(place.logdir).sessions()
    assert [file.host for file in session.hosts()] == ["rank0", "rank1"]


def test_the_verb_compares_recorded_jobs(peakline):
    place = Path(__file__).parents[1] / "data" / "jobs" / "ddp_host"
    run = peakline("diff", place / "healthy", place / "faulty")
    assert run.code == 0
    assert len(run.out.splitlines()) <= 60
    assert run.out.startswith("step 38.381 ms -> 127.357 ms (+231.8%); new: rank 1 (host)\n")
    # The address of an object is another in each process, and no other op.
    assert "0x7f" not in run.out
    assert run.out.count("run_backward") == 1
    markdown = peakline("diff", place / "healthy", place / "faulty", "--markdown").out
    assert "| step (mean) | 38.381 ms | 127.357 ms | +88.976 ms (+231.8%) |" in markdown
    assert "**New warning**: `rank 1 keeps 1 other rank waiting" in markdown
    run = peakline("diff", place / "healthy", place / "faulty", "--allocator", "cpu")
    assert run.code == 2
    assert "--allocator is of one of its 2 ranks: choose it with --host-before" in run.err
