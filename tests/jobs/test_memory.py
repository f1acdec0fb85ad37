"""The memory of all ranks: peaks to the byte, who stands out and by what, and nobody on healthy
jobs.
"""

import json
import pickle
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from tests.each_row import each_row
from tests.jobs.simulated import SCENARIOS
from tests.jobs.snapshots import fat_rank_zero, pipeline, sharded, write_snapshots

import peakline
from peakline import jobs
from peakline.__main__ import main
from peakline.compare.state import NO_PURPOSE, Kind, Purpose
from peakline.document.job_memory import job_memory_document, memory_document
from peakline.jobs.contribution import RankMemory
from peakline.render.terminal import print_job_memory
from peakline.repository import resolve_hosts
from peakline.tables.rank_facts import RankFacts, RankGroup

_MIB = 1 << 20


def parts_of(folder):
    """What the profiles of a folder give, as another process sends it."""
    result = []
    for file in resolve_hosts(str(folder)).hosts():
        with peakline.open(file.path) as profile:
            one = pickle.loads(pickle.dumps(jobs.contribution_of(profile)))  # noqa: S301 (our own)
            result.append((file.host, one))
    return result


def plain_peak(path):
    """The most that is allocated at once, added up from the pickle alone."""
    trace = max(pickle.loads(path.read_bytes())["device_traces"], key=len)  # noqa: S301 (our own)
    live = peak = 0
    for entry in trace:
        if entry["action"] == "alloc":
            live += entry["size"]
        elif entry["action"] == "free_completed":
            live -= entry["size"]
        peak = max(peak, live)
    return peak


def line_of(kind):
    return kind.op.split(" ")[-1]


def by_line(at_peak):
    return {f"{file.rpartition('/')[2]}:{line}": size for (file, line), size in at_peak.items()}


JOBS = {
    "fat": (fat_rank_zero(4), (0,)),
    "even": (fat_rank_zero(4, cached=0), ()),
    "pipeline": (pipeline(4), ()),
    "two microbatches": (pipeline(3, microbatches=2), ()),
    "sharded": (sharded(4), ()),
    "one whole": (sharded(6, whole=2), (2,)),
}


@each_row("name", list(JOBS))
def test_peaks_are_right_to_the_byte_and_who_differs_is_named_with_what(tmp_path, name):
    shapes, apart = JOBS[name]
    folder = tmp_path / name
    truth = write_snapshots(folder, shapes)
    memory = jobs.answer_of(parts_of(folder)).memory
    plain = [plain_peak(folder / truth.files[rank]) for rank in range(len(shapes))]
    assert memory.peaks.tolist() == plain == list(truth.peak_bytes.values())
    assert memory.apart == apart
    for place in range(len(shapes)):
        other = memory.emptiest
        mine, theirs = by_line(truth.at_peak[place]), by_line(truth.at_peak[other])
        differs = {line: mine.get(line, 0) - theirs.get(line, 0) for line in {*mine, *theirs}}
        held = {line_of(one.kind): one.more_bytes for one in memory.held_more(place, [other])}
        assert held == {line: more for line, more in differs.items() if more}


@each_row("twin, apart", [("faulty", (0,)), ("healthy", ())])
def test_recorded_ranks_have_the_peaks_that_their_program_counted(root, twin, apart):
    folder = root / "tests" / "data" / "jobs" / "ddp_fat"
    truth = json.loads((folder / "truth.json").read_text())[twin]["peak_bytes"]
    job = jobs.answer_of(parts_of(folder / twin))
    assert dict(enumerate(job.memory.peaks.tolist())) == {int(k): v for k, v in truth.items()}
    assert job.memory.apart == apart
    equal = {one.name: one.is_equal for one in job.memory.categories}
    assert equal["gradient"] == equal["temporary"] == (not apart)


def test_who_holds_what_is_not_divided_is_named(tmp_path):
    write_snapshots(tmp_path, sharded(6, whole=2))
    (one,) = jobs.answer_of(parts_of(tmp_path)).memory.whole
    assert (one.place, one.category) == (2, "optimizer state")
    assert one.own_bytes == 6 * one.usual_bytes


def test_stages_of_a_pipeline_are_no_fault(tmp_path):
    write_snapshots(tmp_path, pipeline(4))
    memory = jobs.answer_of(parts_of(tmp_path)).memory
    assert line_of(memory.stages.kind) == "model.py:48"
    assert memory.stages.sizes == tuple(64 * _MIB * count for count in (4, 3, 2, 1))
    assert memory.whole == memory.second_devices == memory.shardings == ()


def rank_memory(peak, *groups, allocator="cuda:0", capacity=None, **categories):
    rows = tuple((Kind(op, "", "", ""), size, 1, NO_PURPOSE) for op, size in groups)
    rest = peak - sum(size for _, size in groups)
    named = {name.replace("_", " "): size for name, size in categories.items()}
    return RankMemory(
        allocator, allocator, peak, capacity, None, 0, rows, rest, named,
        steps=(None,) * len(rows),
    )  # fmt: skip


@pytest.fixture
def part(tmp_path):
    """A rank of a job by its number, with other memory and facts."""
    write_snapshots(tmp_path, fat_rank_zero(1))
    ((_, one),) = [("", peakline_part(tmp_path / "memory_rank0.pickle"))]

    def make(rank, *memory, **facts):
        return f"rank{rank}", replace(one, memory=memory, facts=RankFacts(rank=rank, **facts))

    return make


def peakline_part(path):
    with peakline.open(path) as profile:
        return jobs.contribution_of(profile)


def answer(parts):
    return jobs.answer_of(parts)


@pytest.mark.nightly
def test_a_thousand_ranks_are_at_most_sixty_lines(part, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    noise = np.random.default_rng(7).integers(0, _MIB, 1000).tolist()
    parts = [
        part(
            rank,
            rank_memory(
                70_000 * _MIB + noise[rank] + (4096 * _MIB if rank in {0, 17, 400} else 0),
                *((f"op_{n}", 7 * _MIB) for n in range(100)),
                *([("keep x.py:1", 4096 * _MIB)] if rank in {0, 17, 400} else []),
                capacity=80_000 * _MIB, parameter=20_000 * _MIB, activation=50_000 * _MIB,
            ),
            world_size=1002,
        )
        for rank in range(1000)
    ]  # fmt: skip
    job = answer(parts)
    print_job_memory(job, "traces/")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 60
    assert set(job.memory.apart) == {0, 17, 400}
    text = " ".join(" ".join(lines).split())
    for said in ("missing ranks 1000-1001", "996 more", "4.0 GiB of keep x.py:1", "by category"):
        assert said in text
    assert job_memory_document(job)["memory"]["headroom_bytes"]["min"] == int(
        80_000 * _MIB - job.memory.peaks.max()
    )


def test_ranks_of_a_stage_by_its_name_are_compared_with_each_other(part):
    sizes = [900, 600, 900, 600, 900, 600, 900, 700]

    def pairs(rank):
        first = rank - rank % 2
        return (RankGroup("3", "mesh_pp", (first, first + 1)),)

    parts = [
        part(rank, rank_memory(size * _MIB), groups=pairs(rank)) for rank, size in enumerate(sizes)
    ]
    assert answer(parts).memory.apart == (7,)


def test_a_rank_that_uses_anothers_device_is_named(part):
    main = [rank_memory(100 * _MIB, allocator=f"cuda:{rank}") for rank in range(4)]
    extra = rank_memory(2 * _MIB, allocator="cuda:0")
    parts = [part(rank, main[rank], *([extra] if rank == 3 else [])) for rank in range(4)]
    memory = answer(parts).memory
    ((place, device),) = [(one.place, one.memory.allocator) for one in memory.second_devices]
    assert (place, device) == (3, "cuda:0")
    # Where all use two devices each, that is how they work.
    both = [part(rank, *main[rank : rank + 2]) for rank in range(3)]
    assert answer(both).memory.second_devices == ()


def test_a_kind_beyond_those_that_are_compared_is_not_taken_for_none(part):
    """What is not among the largest kinds may be as large as the least of those."""
    parts = [
        part(0, rank_memory(1000, ("a", 500), ("b", 300))),
        part(1, rank_memory(1000, ("a", 500), ("c", 300))),
        part(2, rank_memory(1400, ("a", 500), ("d", 700))),
    ]
    memory = answer(parts).memory
    assert memory.held_more(0, [1]) == []
    held = memory.held_more(2, [1])
    assert [(one.kind.op, one.more_bytes, one.is_bound) for one in held] == [("d", 400, True)]


def test_what_is_replicated_is_said_with_what_dividing_it_would_give(tmp_path):
    SCENARIOS["healthy"](4, seed=7).write(tmp_path)
    parts = parts_of(tmp_path)
    one = jobs.answer_of(parts)
    rows = one.paired.rows
    step = (rows.member == 0) & (rows.step == rows.step[rows.member == 0].max())
    weights = int(rows.size_bytes[step & rows.is_kind(["all-reduce"])].sum())
    states = {"parameter": weights, "gradient": weights, "optimizer_state": 2 * weights}

    def shardings(**states):
        own = rank_memory(5 * weights, **states)
        return jobs.answer_of([(host, replace(c, memory=(own,))) for host, c in parts]).memory

    result = shardings(**states).shardings
    saved = [2 * weights * 3 // 4, 3 * weights * 3 // 4, 4 * weights * 3 // 4]
    assert [one.least_bytes for one in result] == [5 * weights - size for size in saved]
    assert [one.most_bytes for one in result] == [5 * weights - saved[n] for n in (0, 0, 1)]
    assert {one.ranks for one in result} == {4}
    # Ranks that reduce something else than gradients of these weights need not hold the same ones.
    assert shardings(**states | {"parameter": 2 * weights}).shardings == ()


@pytest.fixture
def verb(capsys):
    """Run a verb; gives the exit code and both outputs."""

    def run(*words):
        code = main([str(word) for word in words])
        return SimpleNamespace(code=code, **capsys.readouterr()._asdict())

    return run


def test_the_verb_answers_for_all_and_for_one_with_the_same_numbers(verb, tmp_path):
    truth = write_snapshots(tmp_path, fat_rank_zero(2))
    (tmp_path / "memory_rank2.pickle").write_bytes(b"nothing")
    run = verb("memory", tmp_path, "--json")
    document = json.loads(run.out)
    assert run.code == 0
    assert [rank["peak_bytes"] for rank in document["ranks"]] == list(truth.peak_bytes.values())
    assert set(document) == {"job", "headline", "memory", "ranks", "warnings"}
    for rank in (0, 1):
        one = json.loads(verb("memory", tmp_path, "--rank", rank, "--json").out)
        own = document["ranks"][rank]["allocators"][0]
        for name in ("peak_bytes", "capacity_bytes", "peak_time_ps", "peak_step", "allocator"):
            assert own[name] == one["allocators"][0][name]
    run = verb("memory", tmp_path)
    assert "rank 0 needs" in run.out
    assert "keep_predictions evaluate.py:57" in run.out


@each_row("option", [("--at", "1ms"), ("--step", "3"), ("--allocator", "x"), ("--programs", "y")])
def test_what_is_of_one_rank_says_so_in_a_line(verb, tmp_path, option):
    write_snapshots(tmp_path, fat_rank_zero(2))
    run = verb("memory", tmp_path, *option)
    assert (run.code, run.out) == (2, "")
    assert run.err == (
        f"peakline: {tmp_path}: {option[0]} is of one of its 2 ranks: choose it with --rank or "
        "--host\n"
    )


def test_of_two_profiles_of_a_rank_the_whole_one_counts(part):
    whole, cut = part(0, rank_memory(200)), part(0, rank_memory(100))
    cut = ("copy", replace(cut[1], warnings={"truncated": "the file ends early"}))
    for parts in ([whole, cut], [cut, whole]):
        job = answer(parts)
        assert job.memory.peaks.tolist() == [200]
        assert [one.host for one in job.job.left_out] == ["copy"]


def test_ranks_without_memory_are_said(part):
    parts = [part(0, rank_memory(100)), part(1)]
    job = answer(parts)
    assert memory_document(job.memory)["peak_bytes"]["max"] == 100
    assert [one["peak_bytes"] for one in job_memory_document(job)["ranks"]] == [100, None]


def test_purposes_and_steps_go_along(part):
    own = replace(
        rank_memory(300, ("a", 300)), groups=((Kind("a", "", "", ""), 300, 2, Purpose("g", "m")),),
        steps=((3, 7),),
    )  # fmt: skip
    parts = [part(0, own), part(1, rank_memory(100))]
    (one,) = answer(parts).memory.held_more(0, [1])
    assert (one.purpose, one.steps, one.own_count) == (Purpose("g", "m"), (3, 7), 2)
