"""Several ranks of a job in one Perfetto trace, against the truth of simulated jobs."""

import io
from collections import Counter, defaultdict
from dataclasses import replace

import pytest
from tests.each_row import each_row
from tests.export.timelines import RankEvents
from tests.jobs.simulated import SCENARIOS
from tests.jobs.xspace_hosts import xspace_hosts
from tests.timing.traces import TPU, profile_of

import peakline
from peakline import jobs
from peakline.errors import NotFoundError, UsageError
from peakline.export import Options, find_exporter
from peakline.export.ranks import JobTimelines, chosen_ranks, events_of_collectives
from peakline.repository import resolve_hosts

DIFFERS_NS = 5_000
"""Members of one collective leave it so much apart at most, on the true clock."""

DRIFTS = 1e-4


def answer_of(folder):
    parts = []
    for file in resolve_hosts(str(folder)).hosts():
        with peakline.open(file.path) as profile:
            parts.append((file.host, jobs.contribution_of(profile)))
    return jobs.answer_of(parts)


def written(folder, ranks=None, **options):
    files = {file.host: file.path for file in resolve_hosts(str(folder)).hosts()}
    answer, stream = answer_of(folder), io.BytesIO()
    timelines = JobTimelines(
        answer, chosen_ranks(answer, ranks), lambda host: peakline.open(files[host])
    )
    find_exporter("perfetto").write_ranks(
        timelines, lambda write, _name="": write(stream), Options(**options)
    )
    return RankEvents(stream.getvalue())


def ranks_of(trace):
    """The slices of collectives by rank, by group and begin."""
    result = {}
    for process, slices in trace.slices.items():
        own = [one for one in slices if "late_ns" in one.args]
        own.sort(key=lambda one: (members_of(one), one.begin))
        result[int(process.split()[1])] = own
    return result


def members_of(one):
    """The ranks that the argument ``group`` names: ``0-3, 7``."""
    parts = [part.split("-") for part in one.args.get("group", "").split(", ") if part]
    return tuple(n for part in parts for n in range(int(part[0]), int(part[-1]) + 1))


def expected(truth, scenario, ranks):
    """The collectives that the files of ``ranks`` have, by rank, in order; and who waited for
    whom: pairs of (rank, place in its own).
    """
    own = defaultdict(list)
    for collective in truth.collectives:
        for rank in ranks:
            first, last = scenario.window(rank)
            if first <= collective.step <= last and rank in collective.arrive_ps:
                own[rank].append(collective)
    place = {}
    for rank, collectives in own.items():
        collectives.sort(key=lambda one: (one.group, one.arrive_ps[rank]))
        place |= {(rank, id(one)): n for n, one in enumerate(collectives)}
    pairs = set()
    for collective in {id(one): one for some in own.values() for one in some}.values():
        senders = [rank for rank, kind in collective.kinds.items() if kind == "send"]
        source = senders[0] if senders else max(
            collective.arrive_ps, key=collective.arrive_ps.get
        )  # fmt: skip
        pairs |= {
            ((source, place[source, id(collective)]), (rank, place[rank, id(collective)]))
            for rank in collective.arrive_ps
            if rank != source and rank in own and source in own
        }
    return own, pairs


@each_row(
    "name, count, ranks, form",
    [
        ("drifting_clocks", 16, (0, 1, 9, 12), ""),
        ("skewed_clocks", 16, (0, 7, 8, 15), "2023"),
        ("tensor_data", 8, tuple(range(8)), ""),
        ("pipeline_stage", 8, (0, 2, 4, 6), ""),
    ],
)
def test_collectives_stand_where_they_were_with_arrows_from_who_was_waited_for(
    tmp_path, name, count, ranks, form
):
    scenario = SCENARIOS[name](count, seed=4)
    scenario = replace(scenario, form=form or scenario.form)
    folder = tmp_path / name
    folder.mkdir()
    truth = scenario.write(folder)
    trace = written(folder, ",".join(map(str, ranks)))
    assert [name.split()[1] for name in sorted(trace.order, key=trace.order.get)] == [
        str(rank) for rank in ranks
    ]
    assert sorted(trace.order.values()) == list(range(len(ranks)))
    assert min(one.begin for some in trace.slices.values() for one in some) == 0
    assert trace.root.process_ordering == trace.root.PROCESS_ORDERING_EXPLICIT
    own, pairs = expected(truth, scenario, ranks)
    slices = ranks_of(trace)
    place, off = {}, defaultdict(list)
    for rank, collectives in own.items():
        assert len(slices[rank]) == len(collectives) > 0
        for n, (one, true) in enumerate(zip(slices[rank], collectives, strict=True)):
            place[id(one)] = rank, n
            # The clock of the job is right but for an offset and a drift of its own.
            off[id(true)].append(one.begin - true.arrive_ps[rank] // 1000)
            off[id(true)].append(one.end - true.end_ps[rank] // 1000)
    longest = max(one.end - one.begin for some in slices.values() for one in some)
    most = DIFFERS_NS + longest * DRIFTS
    assert max(max(some) - min(some) for some in off.values()) < most
    assert not trace.dangling
    between = [
        (place.get(id(a)), place.get(id(b))) for a, b in trace.arrows if a.process != b.process
    ]
    assert len(between) == len(set(between))
    assert set(between) == pairs
    for source, target in trace.arrows:
        if source.process != target.process:
            assert source.begin < target.end


def test_what_is_known_of_a_collective_stands_at_its_slice(tmp_path):
    scenario = replace(SCENARIOS["slow_rank"](4, seed=1), form="2.13")
    truth = scenario.write(tmp_path)
    (root,) = truth.root.ranks
    trace = written(tmp_path)
    slices = ranks_of(trace)
    own, _ = expected(truth, scenario, range(4))
    for rank, collectives in own.items():
        for one, true in zip(slices[rank], collectives, strict=True):
            last = max(true.arrive_ps.values())
            assert one.args["wait_ns"] == pytest.approx(
                (last - true.arrive_ps[rank]) // 1000, abs=DIFFERS_NS
            )
            assert one.args["group"] == "0-3"
            assert one.args["bytes"] == 4 * max(true.elements[rank])
            assert {"sequence", "late_ns"} <= one.args.keys()
    assert sum(one.args["wait_ns"] for one in slices[root]) < 1e6
    bare = written(tmp_path, "0-1", args=False)
    assert not any(one.args for slices in bare.slices.values() for one in slices)
    assert len(bare.slices) == 2


def test_each_rank_has_all_that_its_own_trace_has(tmp_path):
    SCENARIOS["memory"](2, 1).write(tmp_path)
    trace = written(tmp_path)
    for file in resolve_hosts(str(tmp_path)).hosts():
        with peakline.open(file.path) as profile:
            events = profile.columns("events")
            names = Counter(events.names("name").to_list())
            names += Counter(profile.columns("steps").names("name").to_list())
            title = f"rank {profile.rank_facts.rank} ({profile.rank_facts.host_name})"
        assert Counter(one.name for one in trace.slices[title]) == names
        assert {process for process, _ in trace.counters} == set(trace.slices)
        assert any("Memory" in track for process, track in trace.counters if process == title)


def test_hosts_without_ranks_are_chosen_by_name(tmp_path):
    xspace_hosts(tmp_path, 3)
    answer = answer_of(tmp_path)
    hosts = [one.host for one in answer.job.firsts]
    chosen = chosen_ranks(answer, f"{hosts[2]}, {hosts[0]}")
    assert [answer.job.members[n].host for n in chosen] == [hosts[0], hosts[2]]
    first, second, third = answer.paired.clocks.machines
    assert second.matches
    machines = first, second, replace(third, matches=0)
    paired = replace(answer.paired, clocks=replace(answer.paired.clocks, machines=machines))
    answer.__dict__["paired"] = paired
    (note,) = JobTimelines(answer, chosen, None).notes[:1]
    assert note == "1 clock compared by no collective with the others: taken as it is"
    trace = written(tmp_path, hosts[1])
    # All devices of a host stand in its process.
    assert list(trace.order) == [hosts[1]]
    assert trace.arrows
    assert {a.process for arrow in trace.arrows for a in arrow} == {hosts[1]}


def test_an_arrow_ends_at_the_done_of_what_was_started():
    start = "%all-reduce-start.1 = f32[8]{0} all-reduce-start(f32[8]{0} %a), channel_id=1"
    done = "%all-reduce-done.1 = f32[8]{0} all-reduce-done(f32[8]{0} %all-reduce-start.1)"
    planes = {
        TPU: {"XLA Ops": [(start, 10, 12), (done, 40, 50)]},
        TPU.replace("0", "1"): {"XLA Ops": [(start, 20, 21), (done, 30, 49)]},
    }
    events = events_of_collectives(profile_of(planes))
    # Those that start, and those that end when it is done: events 0 to 3 in their order.
    assert [one.tolist() for one in events] == [[[0], [1]], [[2], [3]]]


def test_who_is_to_be_chosen_is_said(tmp_path):
    truth = SCENARIOS["slow_rank"](17, 2, seed=5).write(tmp_path)
    answer = answer_of(tmp_path)
    (root,) = truth.root.ranks
    with pytest.raises(UsageError, match=rf"^17 ranks; choose some with --ranks, as .*\b{root}\b"):
        chosen_ranks(answer, None)
    assert chosen_ranks(answer, "3, 0-1") == [0, 1, 3]
    with pytest.raises(
        UsageError, match=r"--ranks 15-19: 3 of these have no profile; there are: 0-16"
    ):
        chosen_ranks(answer, "15-19")
    with pytest.raises(UsageError, match="--ranks 3-1: ends before it begins"):
        chosen_ranks(answer, "3-1")
    with pytest.raises(UsageError, match="no rank or host 'zero'"):
        chosen_ranks(answer, "zero")
    with pytest.raises(NotFoundError, match="no allocator 'b'"):
        written(tmp_path, "0-1", allocator="b")
