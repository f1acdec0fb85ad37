"""Verbs that judge all ranks of a job: each limit by the worst rank, with the numbers of each."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from tests.each_row import each_row
from tests.jobs.snapshots import fat_rank_zero, write_snapshots

import peakline
from peakline import check
from peakline.__main__ import main
from peakline.check.question import limits_of_texts
from peakline.document.job_fit import job_fit_document
from peakline.jobs.fitted import rank_fit
from peakline.jobs.judged import by_rank, judged_of
from peakline.memory.fit.model import Question
from peakline.render.terminal import print_job_fit
from peakline.tables.rank_facts import RankFacts


@pytest.fixture
def verb(capsys):
    """Run a verb; gives the exit code and both outputs."""

    def run(*words):
        code = main([str(word) for word in words])
        return SimpleNamespace(code=code, **capsys.readouterr()._asdict())

    return run


@pytest.fixture
def job(root):
    """A recorded job, whose rank 0 holds more in one of two twins."""
    return root / "tests" / "data" / "jobs" / "ddp_fat"


@each_row("twin, passed, worst", [("faulty", False, "rank 0"), ("healthy", True, "rank 0")])
def test_each_limit_is_judged_by_the_worst_rank(verb, job, twin, passed, worst):
    words = ("--max-peak", "1MiB", "--max-step-time", "10s", "--no-config")
    run = verb("check", job / twin, *words, "--json")
    document = json.loads(run.out)
    assert (run.code == 0, document["passed"]) == (passed, passed)
    peak, step = document["checks"]
    assert (peak["name"], peak["rank"], peak["passed"]) == ("peak", worst, passed)
    alone = [
        json.loads(verb("check", job / twin, *words, "--rank", rank, "--json").out)["checks"]
        for rank in range(4)
    ]
    assert peak["measured"] == max(one[0]["measured"] for one in alone)
    assert step["measured"] == max(one[1]["measured"] for one in alone)
    measured = [[one["measured"] for one in rank["checks"]] for rank in document["ranks"]]
    assert measured == [[one["measured"] for one in checks] for checks in alone]
    tool = verb("tool", "check", job / twin, "-p", "max_peak=1MiB", "-p", "max_step_time=10s")
    assert json.loads(tool.out)["checks"] == document["checks"]


def test_a_screen_and_every_report_name_the_rank(verb, job, tmp_path):
    files = {name: tmp_path / name for name in ("junit", "sarif", "summary")}
    words = [word for name, file in files.items() for word in (f"--{name}", file)]
    run = verb("check", job / "faulty", "--max-peak", "1MiB", "--no-config", *words)
    assert run.code == 1
    assert "fail: rank 0 CPU: peak: 18.8 MiB in use, 1.0 MiB allowed" in run.out
    assert run.err.startswith(f"peakline: {job / 'faulty'}: rank 0: CPU: peak: 18.8 MiB in use")
    assert all("rank 0 CPU" in file.read_text() for file in files.values())


def test_what_cannot_be_measured_on_a_rank_fails(verb, tmp_path):
    write_snapshots(tmp_path, fat_rank_zero(2))
    run = verb("check", tmp_path, "--max-step-time", "1s", "--no-config")
    assert run.code == 1
    assert "cannot be measured" in run.err
    assert "2 of 2 ranks fail" in run.err


def test_a_baseline_is_of_one_rank(verb, job):
    run = verb("check", job / "healthy", "--baseline", "x.json", "--no-config")
    assert (run.code, run.out) == (2, "")
    expected = "--baseline is of one of its 4 ranks: choose it with --rank or --host"
    assert run.err == f"peakline: {job / 'healthy'}: {expected}\n"


@each_row(
    "key, text",
    [("max-peak", "1.5GiB"), ("max-peak", "1234567"), ("max-limit", "12GB"),
     ("max-step-time", "0.25s"), ("max-input-wait", "12.5%"), ("max-input-wait", "0.125"),
     ("max-compile", "20ms"), ("max-compile", "5%")],
)  # fmt: skip
def test_a_limit_that_is_written_again_is_the_same(key, text):
    limits = limits_of_texts({key: text})
    assert limits_of_texts(check.texts_of(limits)) == limits


def test_who_fails_first_has_the_numbers_of_its_own_replay(verb, tmp_path):
    truth = write_snapshots(tmp_path, fat_rank_zero(3))
    limit = 1400 << 20  # the peak of rank 0 is above it, the others' are below
    words = ("--limit", limit, "--limit", "2GiB")
    document = json.loads(verb("fit", tmp_path, *words, "--json").out)
    assert (document["fails_first"], document["limits"][0]["fails"]) == ("rank 0", ["rank 0"])
    assert document["limits"][0]["unknown"] + document["limits"][0]["fits"] == ["rank 1", "rank 2"]
    assert document["limits"][1]["fails"] == []
    for rank, own in enumerate(document["ranks"]):
        (alone,) = json.loads(verb("fit", tmp_path, *words, "--rank", rank, "--json").out)[
            "allocators"
        ]
        assert own["needs_bytes"] == alone["safe_from_bytes"]
        assert own["allocators"][0]["limits"] == alone["limits"]
        assert own["peak_bytes"] == truth.peak_bytes[rank]
    tool = json.loads(verb("tool", "fit", tmp_path, "-p", f"limit={limit},2GiB").out)
    assert tool["ranks"] == document["ranks"]
    run = verb("fit", tmp_path, "--limit", limit)
    assert run.out.startswith("rank 0 fails first: it needs 1,440 MiB, of the others none more")
    assert "of keep_predictions evaluate.py:57" in run.out


def test_a_rank_that_cannot_be_replayed_fails_only_above_its_peak(verb, job):
    run = verb("fit", job / "faulty", "--limit", "1MiB", "--json")
    (limit,) = json.loads(run.out)["limits"]
    assert (limit["fails"], limit["fits"]) == (["rank 0"], [])
    assert limit["unknown"] == ["rank 1", "rank 2", "rank 3"]
    text = verb("fit", job / "faulty").out
    assert text.startswith("no rank can be replayed; the largest peak is 18.8 MiB, on rank 0")


def test_a_job_is_the_only_path(verb, job):
    run = verb("fit", job / "faulty", job / "healthy")
    assert (run.code, run.out, run.err.count("\n")) == (2, "", 1)
    assert "4 ranks, and one PATH is for these" in run.err


def test_a_thousand_ranks_that_fit_are_few_lines(tmp_path, capsys):
    write_snapshots(tmp_path, fat_rank_zero(2))
    parts = []
    for rank in (0, 1):
        with peakline.open(str(tmp_path / f"memory_rank{rank}.pickle")) as profile:
            question = Question(limits=(1200 << 20,))
            parts.append(judged_of(profile, rank_fit(profile, question, None)))
    facts = [RankFacts(rank=rank) for rank in range(1000)]
    job, ranks = by_rank(
        [
            (f"r{n}", replace(parts[n > 0], profile=replace(parts[0].profile, facts=one)))
            for n, one in enumerate(facts)
        ]
    )
    print_job_fit(job, ranks, "snapshots/")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 60
    assert lines[0].startswith("rank 0 fails first: it needs 1,440 MiB")
    assert len(job_fit_document(job, ranks)["ranks"]) == 1000
