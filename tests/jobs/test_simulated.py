"""The simulated jobs: their files say what their truth says, and the truth agrees with itself."""

import gzip
import itertools
import json
from dataclasses import replace

import pytest
from tests.each_row import each_row
from tests.jobs.kineto_traces import BASE_NS, EPOCH_NS
from tests.jobs.simulated import SCENARIOS, healthy, missing_root, slow_rank
from tests.jobs.training import Fault, Job, simulate

MS = 10**9
SMALL = ("slow_rank", "tensor_data", "pipeline_stage", "slow_network", "skipped_collective")


@each_row("name", list(SCENARIOS))
def test_machines_keep_their_own_rules(name):
    scenario = SCENARIOS[name]()
    machine = simulate(scenario.job)
    for collective in machine.collectives.values():
        arrived = collective.arrived
        if len(arrived) < len(collective.members):
            assert name == "skipped_collective"
            assert all(kernel.end < 0 for kernel in arrived.values())
            continue
        earliest = max(kernel.start for kernel in arrived.values()) + collective.transfer
        assert all(0 <= kernel.end - earliest < 6_000 for kernel in arrived.values())
        assert len({kernel.stream for kernel in arrived.values()}) == 1 or collective.is_pair
    for rank in machine.ranks:
        free = {}
        for kernel in rank.kernels:
            if kernel.end >= 0:
                assert kernel.start >= max(kernel.launched, free.get(kernel.stream, 0))
                assert all(0 <= other.end <= kernel.start for other in kernel.after)
                free[kernel.stream] = kernel.end
        whole = [event for event in rank.events if event.end >= 0]
        assert all(event.start <= event.end for event in whole)
        marks = [event for event in whole if event.name.startswith("ProfilerStep")]
        assert all(a.end <= b.start for a, b in itertools.pairwise(marks))


@each_row(
    "name, cause, least, most",
    [
        ("slow_rank", "slow kernels", 7, 9),
        ("more_work", "more work", 11, 14),
        ("slow_input", "slow input", 11.5, 12.5),
        ("slow_host", "slow host", 9.5, 10.5),
        ("slow_host_unseen", "slow host", 9.5, 10.5),
        ("checkpoint", "pause", 7.5, 9),
        ("collection", "pause", 7, 8),
        ("tensor_data", "slow kernels", 7, 12),
        ("pipeline_stage", "slow kernels", 10, 20),
        ("slow_network", "slow network", 5, 30),
        ("slow_links", "slow links", 4, 12),
        ("slow_network_for_all", "slow network", 30, 50),
        ("drifting_clocks", "slow kernels", 700, 900),
        ("shifted_windows", "slow kernels", 7, 9),
    ],
)
def test_roots_cost_what_was_planted(name, cause, least, most):
    scenario = SCENARIOS[name]()
    truth = scenario.truth(simulate(scenario.job))
    assert truth.root.cause == cause
    assert least * MS < truth.root.lost_ps < most * MS
    assert truth.without.mean == truth.step_time.mean - truth.root.lost_ps
    twin = scenario.healthy()
    other = twin.truth(simulate(twin.job))
    assert (other.roots, other.step_time) == ([], truth.without)


@each_row("name", ["slow_rank", "more_work", "slow_input", "slow_host", "checkpoint"])
def test_the_root_is_who_comes_last(name):
    scenario = SCENARIOS[name]()
    truth = scenario.truth(simulate(scenario.job))
    (root,) = truth.root.ranks
    late = {
        (collective.step, max(collective.arrive_ps, key=collective.arrive_ps.get))
        for collective in truth.collectives
        if scenario.job.faults[0].holds(collective.step)
        and max(collective.arrive_ps.values()) - min(collective.arrive_ps.values()) > 2 * MS
        and collective.step
    }
    assert late
    assert {rank for _, rank in late} == {root}


def test_most_of_those_who_wait_never_meet_the_root():
    scenario = SCENARIOS["tensor_data"]()
    truth = scenario.truth(simulate(scenario.job))
    (root,) = truth.root.ranks
    last = [
        max(collective.arrive_ps, key=collective.arrive_ps.get)
        for collective in truth.collectives
        if collective.description == "mesh_dp" and collective.step
    ]
    victims = {rank for rank in last if rank != root}
    assert victims >= set(range(4)) - {root}, "those beside it are last where it is not"


def test_random_pauses_have_no_straggler_and_a_changing_one_has_two():
    scenario = SCENARIOS["random_pauses"]()
    truth = scenario.truth(simulate(scenario.job))
    assert (truth.roots, truth.alternates) == ([], True)
    assert truth.step_time.mean - truth.without.mean > 10 * MS
    scenario = SCENARIOS["changing_straggler"]()
    truth = scenario.truth(simulate(scenario.job))
    assert truth.root is None
    first, second = truth.roots
    assert first.ranks != second.ranks
    assert first.last + 1 == second.first
    total = truth.step_time.mean - truth.without.mean
    assert first.lost_ps + second.lost_ps == pytest.approx(total, rel=0.05)


def events_of(path):
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


def time_of(trace, value):
    """A time of a file in ns since the job began by the clock of its host."""
    base = trace.get("baseTimeNanoseconds", 0)
    assert base in {0, BASE_NS}
    return base + round(value * 1000) - EPOCH_NS


@each_row("form", ["2.13", "2.8", "2023"])
@pytest.mark.parametrize("name", ["skewed_clocks", "pipeline_stage"])
def test_files_say_the_truth(tmp_path, name, form):
    scenario = replace(SCENARIOS[name](), form=form)
    folder = tmp_path / form
    truth = scenario.write(folder)
    assert sorted(truth.files) == list(range(scenario.job.ranks))
    tolerance = 1000 if form == "2023" else 0
    for rank, name_of in truth.files.items():
        trace = events_of(folder / name_of)
        info = trace["distributedInfo"]
        assert (info["rank"], info["world_size"]) == (rank, scenario.job.ranks)
        events = trace["traceEvents"]
        kernels = [
            event
            for event in events
            if event.get("cat") == "kernel" and event["name"].startswith("nccl")
        ]
        first, last = scenario.window(rank)
        expected = sorted(
            (c.arrive_ps[rank], c.end_ps[rank], c.description, c.elements[rank])
            for c in truth.collectives
            if rank in c.arrive_ps and first <= c.step <= last
        )
        assert len(kernels) == len(expected)
        reads = truth.clocks[rank].reads
        rows = sorted(kernels, key=lambda event: event["ts"])
        for event, (begin, end, description, elements) in zip(rows, expected, strict=True):
            start = time_of(trace, event["ts"])
            assert abs(start - reads(begin // 1000)) <= tolerance
            assert abs(start + round(event["dur"] * 1000) - reads(end // 1000)) <= tolerance
            args = event["args"]
            if form == "2023":
                assert "Collective name" not in args
                continue
            assert args["Process Group Description"] == description
            assert (args["In msg nelems"], args["Out msg nelems"]) == elements
            assert ("Seq" in args) == (form == "2.13")
        launched = {
            event["args"]["correlation"]: event
            for event in events
            if event.get("cat") == "cuda_runtime" and "External id" in event["args"]
        }
        for event in events:
            if event.get("cat") in {"kernel", "gpu_memcpy"}:
                assert launched[event["args"]["correlation"]]["ts"] < event["ts"]
        steps = [e for e in events if e["name"].startswith("ProfilerStep") and e["pid"] != rank % 8]
        recorded = [
            (time_of(trace, e["ts"]), round(e["dur"] * 1000))
            for e in steps
            if e["cat"] == "user_annotation"
        ]
        for (start, length), (_, begin, end) in zip(recorded, truth.rank_steps[rank], strict=True):
            assert abs(start - reads(begin // 1000)) <= tolerance
            assert abs(length - (reads(end // 1000) - reads(begin // 1000))) <= tolerance


def test_folders_have_what_the_truth_says_of_their_files(tmp_path):
    truth = SCENARIOS["incomplete_folder"]().write(tmp_path)
    (missing,), (cut,) = truth.missing, truth.cut
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert names == {*truth.files.values(), *truth.duplicates, *truth.foreign}
    assert missing not in truth.files
    with pytest.raises(json.JSONDecodeError):
        events_of(tmp_path / truth.files[cut])
    assert truth.root.ranks[0] in truth.files
    assert not set(missing_root().write(tmp_path / "x").files) & set(truth.root.ranks)


def test_profiles_that_lack_a_collective(tmp_path):
    def counts(name):
        truth = SCENARIOS[name]().write(tmp_path / name)
        each = {
            rank: sum(
                event.get("cat") == "kernel" and "AllReduce" in event["name"]
                for event in events_of(tmp_path / name / path)["traceEvents"]
            )
            for rank, path in truth.files.items()
        }
        return truth, each

    for name, less in (("lost_collective", 1), ("stopped_early", 2)):
        truth, each = counts(name)
        (rank,) = truth.incomplete
        most = max(each.values())
        assert {r for r, count in each.items() if count < most} == {rank}
        assert most - each[rank] == less
    truth, each = counts("skipped_collective")
    # The one who skipped is one ahead of the others, whose last never ends.
    assert len(set(each.values())) == 1
    assert each[0] == 3 * 6 - 1


def test_the_same_seed_is_the_same_job(tmp_path):
    for folder, seed in (("a", 3), ("b", 3), ("c", 4)):
        slow_rank(4, 2, seed).write(tmp_path / folder)
    texts = [(tmp_path / folder / "rank1.json.gz").read_bytes() for folder in "abc"]
    assert texts[0] == texts[1] != texts[2]


def test_memory_is_what_the_ranks_hold():
    scenario = SCENARIOS["memory"]()
    truth = scenario.truth(simulate(scenario.job))
    assert len({truth.peak_bytes[rank] for rank in range(1, 8)}) == 1
    assert truth.peak_bytes[0] - truth.peak_bytes[1] == 3 << 29
    layers, layer = 6, 4 * 12_582_912
    assert truth.peak_bytes[1] == 4 * layers * layer + layers * layer


def test_noise_does_not_depend_on_what_is_planted():
    plain, planted = (
        simulate(Job(ranks=4, steps=3, faults=faults))
        for faults in ((), (Fault("slow input", (2,), 5.0),))
    )
    for a, b in zip(plain.ranks, planted.ranks, strict=True):
        lengths = [[k.duration for k in rank.kernels] for rank in (a, b)]
        assert lengths[0] == lengths[1]
    assert healthy(4, 1).healthy().job == healthy(4, 1).job
