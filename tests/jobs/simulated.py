"""Jobs with a planted cause and without one: ``simulated.py SCENARIO --ranks N --out DIR``.

Each scenario is a function of the number of ranks, of steps and a seed. `Scenario.write` writes a
profile for each rank and returns the truth: when each rank was where, on one true clock, who keeps
the others waiting, and what the steps take in the same job without the cause, which is really
simulated again. The command writes one and prints its truth as JSON.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import shutil
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.jobs.kineto_traces import EPOCH_NS, FORMS, Clock, Writing, pid_of, write_trace
from tests.jobs.machine import Machine
from tests.jobs.training import SCHEMES, Fault, Job, simulate

_PS = 1000
_MS = 1_000_000


@dataclass(frozen=True)
class StepTime:
    """What a step takes, in ps: over the steps, of the middle rank of each."""

    mean: int
    median: int


@dataclass(frozen=True)
class Root:
    """Who keeps the others waiting: the ranks, why, and in every how many steps of which to which.

    ``without`` is the step time of the job without this one, ``lost_ps`` what it costs each step
    in the mean.
    """

    ranks: tuple[int, ...]
    cause: str
    first: int
    last: int
    every: int
    without: StepTime
    lost_ps: int


@dataclass(frozen=True)
class CollectiveTruth:
    """A collective, or a send with its receive: ps on the true clock, by rank."""

    group: tuple[int, ...]
    description: str
    number: int
    kinds: Mapping[int, str]
    elements: Mapping[int, tuple[int, int]]
    data_type: str
    step: int
    transfer_ps: int
    arrive_ps: Mapping[int, int]
    end_ps: Mapping[int, int]


@dataclass
class Truth:
    """What a right answer says. Times are ps since the job began, on a right clock."""

    scenario: str
    world_size: int
    roots: list[Root]
    alternates: bool
    """Whether another rank each time keeps the others waiting, so that none is a straggler."""
    step_time: StepTime
    without: StepTime
    """Without any of the roots."""
    rank_steps: dict[int, list[tuple[int, int, int]]]
    """(step, begin, end) of each rank, of the steps that its profile has whole."""
    collectives: list[CollectiveTruth]
    peak_bytes: dict[int, int]
    clocks: dict[int, Clock]
    files: dict[int, str] = field(default_factory=dict)
    missing: list[int] = field(default_factory=list)
    cut: list[int] = field(default_factory=list)
    duplicates: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)
    incomplete: dict[int, str] = field(default_factory=dict)
    """Ranks whose profile lacks a collective that its peers have, and why."""

    @property
    def root(self) -> Root | None:
        """The one root, if there is one."""
        return self.roots[0] if len(self.roots) == 1 else None

    def json(self, *, collectives: bool = False) -> dict[str, Any]:
        """As JSON, with the collectives only where they are wanted."""
        left_out = set() if collectives else {"collectives", "rank_steps"}
        fields = {f.name for f in dataclasses.fields(self)} - left_out
        return {key: value for key, value in dataclasses.asdict(self).items() if key in fields}


@dataclass(frozen=True)
class Scenario:
    """A job, how its profiles are written, and what becomes of the files.

    ``starts`` are ranks whose window begins so many steps later (and ends as much later).
    ``clocks`` are by host. ``lost`` are (rank, number of a collective of the world) whose record
    is lost, ``stops`` are (rank, n) of recordings that end before the rank launches the n-th
    collective of its last step. ``names`` is a pattern of the file name: rank, host, local, pid,
    time, inner and outer (the places in the groups of a rank).
    """

    name: str
    job: Job
    recorded: int = 5
    form: str = "2.8"
    names: str = "rank{rank}.json.gz"
    flows: bool = True
    starts: tuple[tuple[int, int], ...] = ()
    clocks: tuple[Clock, ...] = ()
    missing: tuple[int, ...] = ()
    cut: tuple[int, ...] = ()
    duplicated: tuple[int, ...] = ()
    foreign: bool = False
    lost: tuple[tuple[int, int], ...] = ()
    stops: tuple[tuple[int, int], ...] = ()

    def healthy(self) -> Scenario:
        """The twin: the same job, noise and files, nothing planted."""
        return replace(self, name=f"{self.name} (healthy)", job=replace(self.job, faults=()))

    def window(self, rank: int) -> tuple[int, int]:
        """The first and last step that a rank records: not its first ever."""
        first = 1 + dict(self.starts).get(rank, 0)
        return first, first + self.recorded - 1

    def clock(self, rank: int) -> Clock:
        """The clock of the rank's host."""
        host = rank // self.job.per_host
        return self.clocks[host] if host < len(self.clocks) else Clock()

    def write(self, directory: Path) -> Truth:
        """Write the files into a folder, and say what is true of them."""
        machine = simulate(self.job)
        truth = self.truth(machine)
        for rank in machine.ranks:
            if rank.number in self.missing:
                continue
            path = directory / self.file_name(rank.number)
            first, last = self.window(rank.number)
            stop = None
            if rank.number in dict(self.stops):
                own = [k for k in rank.kernels if k.step == last and k.collective is not None]
                stop = own[dict(self.stops)[rank.number]].call[0] - 10_000
            lost = frozenset(number for owner, number in self.lost if owner == rank.number)
            writing = Writing(
                form=self.form, flows=self.flows, first=first, last=last, stop_ns=stop,
                clock=self.clock(rank.number), lost=lost,
            )  # fmt: skip
            write_trace(path, machine, rank, writing)
            truth.files[rank.number] = str(path.relative_to(directory))
            if rank.number in self.cut:
                data = path.read_bytes()
                path.write_bytes(data[: len(data) * 2 // 3])
            if rank.number in self.duplicated:
                copy = path.with_name(f"copy_of_{path.name}")
                shutil.copyfile(path, copy)
                truth.duplicates.append(str(copy.relative_to(directory)))
        if self.foreign:
            truth.foreign = write_foreign(directory, self.job.seed)
        return truth

    def file_name(self, rank: int) -> str:
        """The name of a rank's file."""
        width = self.job.width
        local = rank % self.job.per_host
        return self.names.format(
            rank=rank, host=f"node{rank // self.job.per_host:03d}", local=local, pid=pid_of(rank),
            time=EPOCH_NS + 7_919 * rank, inner=rank % width, outer=rank // width,
        )  # fmt: skip

    def truth(self, machine: Machine) -> Truth:
        """What is true of the job that ran."""
        job = self.job
        present = [rank for rank in range(job.ranks) if rank not in self.missing]
        step_time = self.step_time(machine)
        roots: list[Root] = []
        alternates = any(fault.cause == "random pauses" for fault in job.faults)
        for fault in job.faults:
            if fault.cause == "random pauses":
                continue
            others = tuple(other for other in job.faults if other is not fault)
            without = self.step_time(simulate(replace(job, faults=others)))
            first, last = max(fault.first, 1), min(fault.last, job.steps - 1)
            lost = step_time.mean - without.mean
            roots.append(Root(fault.ranks, fault.cause, first, last, fault.every, without, lost))
        if len(roots) == 1 and not alternates:
            without = roots[0].without
        else:
            without = self.step_time(simulate(replace(job, faults=()))) if job.faults else step_time
        return Truth(
            scenario=self.name,
            world_size=job.ranks,
            roots=roots,
            alternates=alternates,
            step_time=step_time,
            without=without,
            rank_steps={rank: self.steps_of(machine, rank) for rank in present},
            collectives=_collectives(machine),
            peak_bytes=self.peaks(machine) if job.memory else {},
            clocks={rank: self.clock(rank) for rank in present},
            missing=list(self.missing),
            cut=list(self.cut),
            incomplete={rank: "its record is lost" for rank, _ in self.lost}
            | {rank: "its recording ends early" for rank, _ in self.stops},
        )

    def steps_of(self, machine: Machine, rank: int) -> list[tuple[int, int, int]]:
        """The whole steps in a rank's window: (step, begin, end) in ps."""
        first, last = self.window(rank)
        last -= any(rank == stopped for stopped, _ in self.stops)
        return [
            (step, begin * _PS, end * _PS)
            for step, (begin, end) in enumerate(machine.ranks[rank].steps)
            if first <= step <= last and end >= 0
        ]

    def step_time(self, machine: Machine) -> StepTime:
        """The step time over the recorded steps."""
        by_step: dict[int, list[int]] = {}
        for rank in machine.ranks:
            for step, begin, end in self.steps_of(machine, rank.number):
                by_step.setdefault(step, []).append(end - begin)
        each = [statistics.median_low(values) for values in by_step.values()]
        return StepTime(round(statistics.fmean(each)), statistics.median_low(each))

    def peaks(self, machine: Machine) -> dict[int, int]:
        """The most that is allocated in the window of each rank."""
        result = {}
        for rank in machine.ranks:
            first, last = self.window(rank.number)
            begin, end = rank.steps[first][0], rank.steps[last][1]
            result[rank.number] = max(total for at, _, total in rank.memory if begin <= at <= end)
        return result


def _collectives(machine: Machine) -> list[CollectiveTruth]:
    return [
        CollectiveTruth(
            group=collective.group.ranks,
            description=collective.group.description,
            number=collective.number,
            kinds={rank: kind.meta for rank, kind in collective.kinds.items()},
            elements=dict(collective.elements),
            data_type=collective.dtype,
            step=collective.step,
            transfer_ps=collective.transfer * _PS,
            arrive_ps={rank: kernel.start * _PS for rank, kernel in collective.arrived.items()},
            end_ps={
                rank: kernel.end * _PS
                for rank, kernel in collective.arrived.items()
                if kernel.end >= 0
            },
        )
        for collective in machine.collectives.values()
    ]


def write_foreign(directory: Path, seed: int) -> list[str]:
    """Write what is no part of the job: a rank of another one, notes, an empty file."""
    other = simulate(Job(ranks=2, steps=4, seed=seed + 1, scheme="fsdp"))
    write_trace(directory / "old_run.json", other, other.ranks[1], Writing(first=1, last=3))
    (directory / "notes.txt").write_text("lr 3e-4, try 2e-4 next\n", encoding="utf-8")
    (directory / "events.json").write_bytes(b"")
    return ["old_run.json", "notes.txt", "events.json"]


def _pick(ranks: int, seed: int) -> int:
    """The rank that has the cause."""
    return random.Random(hash((seed, ranks))).randrange(ranks)


def _job(ranks: int, steps: int, seed: int, *faults: Fault, **more: Any) -> Job:
    return Job(ranks=ranks, steps=steps + 2, seed=seed, faults=faults, **more)


def _width(ranks: int) -> int:
    return 8 if ranks >= 64 and ranks % 8 == 0 else 4 if ranks % 4 == 0 else 2


def slow_rank(ranks: int = 8, steps: int = 5, seed: int = 0, scheme: str = "ddp") -> Scenario:
    """The kernels of one rank take 30 % longer: its clock, or a neighbour on its device."""
    fault = Fault("slow kernels", (_pick(ranks, seed),), 1.3)
    width = _width(ranks) if scheme in {"tensor", "pipeline"} else 1
    return Scenario("slow_rank", _job(ranks, steps, seed, fault, scheme=scheme, width=width), steps)


def more_work(ranks: int = 8, steps: int = 5, seed: int = 0) -> Scenario:
    """One rank has half as many samples again in its batches."""
    fault = Fault("more work", (_pick(ranks, seed),), 1.5)
    return Scenario(
        "more_work", _job(ranks, steps, seed, fault), steps, names="rank{rank}_trace.json"
    )


def slow_input(ranks: int = 8, steps: int = 5, seed: int = 0) -> Scenario:
    """One rank waits 12 ms for each batch."""
    fault = Fault("slow input", (_pick(ranks, seed),), 12.0)
    return Scenario(
        "slow_input", _job(ranks, steps, seed, fault), steps,
        names="{host}_{pid}.{time}.pt.trace.json.gz",
    )  # fmt: skip


def slow_host(ranks: int = 8, steps: int = 5, seed: int = 0, *, stacks: bool = True) -> Scenario:
    """One rank spends 10 ms of each step in a Python function, which stacks may show."""
    fault = Fault("slow host", (_pick(ranks, seed),), 10.0)
    return Scenario("slow_host", _job(ranks, steps, seed, fault, stacks=stacks), steps)


def slow_host_unseen(ranks: int = 8, steps: int = 5, seed: int = 0) -> Scenario:
    """`slow_host` without stacks: the host's time is a gap between its events."""
    return replace(slow_host(ranks, steps, seed, stacks=False), name="slow_host_unseen")


def checkpoint(ranks: int = 8, steps: int = 6, seed: int = 0) -> Scenario:
    """Rank 0 writes a checkpoint of 25 ms in every third step."""
    fault = Fault("pause", (0,), 25.0, first=1, every=3)
    return Scenario("checkpoint", _job(ranks, steps, seed, fault, stacks=True), steps)


def collection(ranks: int = 8, steps: int = 6, seed: int = 0) -> Scenario:
    """One rank collects garbage for 15 ms in every second step, and no event says so."""
    fault = Fault("pause", (_pick(ranks, seed),), 15.0, first=1, every=2)
    return Scenario("collection", _job(ranks, steps, seed, fault), steps)


def tensor_data(ranks: int = 16, steps: int = 5, seed: int = 0) -> Scenario:
    """Tensor x data parallel, one rank with slow kernels: most who wait never meet it."""
    fault = Fault("slow kernels", (_pick(ranks, seed),), 1.4)
    job = _job(ranks, steps, seed, fault, scheme="tensor", width=_width(ranks))
    return Scenario("tensor_data", job, steps, names="dp{outer}_tp{inner}.json.gz")


def slow_network(ranks: int = 16, steps: int = 5, seed: int = 0) -> Scenario:
    """Pipeline x data parallel: one host's transfers to other hosts take five times as long."""
    per_host = max(2, min(8, ranks // 8))
    host = _pick(ranks // per_host, seed)
    members = tuple(range(host * per_host, (host + 1) * per_host))
    job = _job(
        ranks, steps, seed, Fault("slow network", members, 5.0), scheme="pipeline", width=4,
        per_host=per_host,
    )  # fmt: skip
    return Scenario("slow_network", job, steps)


def slow_links(ranks: int = 16, steps: int = 5, seed: int = 0) -> Scenario:
    """Tensor x data parallel: transfers within one host take six times as long.

    Its ranks come late to the others' collectives, and none of them is slow.
    """
    width = _width(ranks)
    host = _pick(ranks // width, seed)
    members = tuple(range(host * width, (host + 1) * width))
    job = _job(
        ranks, steps, seed, Fault("slow links", members, 6.0), scheme="tensor", width=width,
        per_host=width,
    )  # fmt: skip
    return Scenario("slow_links", job, steps)


def slow_network_for_all(ranks: int = 16, steps: int = 5, seed: int = 0) -> Scenario:
    """All transfers between hosts take four times as long; nobody is late."""
    fault = Fault("slow network", tuple(range(ranks)), 4.0)
    per_host = 8 if ranks > 8 else ranks // 2
    return Scenario(
        "slow_network_for_all", _job(ranks, steps, seed, fault, per_host=per_host), steps
    )


def random_pauses(ranks: int = 8, steps: int = 8, seed: int = 0) -> Scenario:
    """In each step another rank pauses for 12 ms: there is no straggler."""
    fault = Fault("random pauses", tuple(range(ranks)), 12.0)
    return Scenario("random_pauses", _job(ranks, steps, seed, fault), steps)


def healthy(ranks: int = 8, steps: int = 5, seed: int = 0, scheme: str = "ddp") -> Scenario:
    """Nothing is planted."""
    width = _width(ranks) if scheme in {"tensor", "pipeline"} else 1
    return Scenario("healthy", _job(ranks, steps, seed, scheme=scheme, width=width), steps)


def noisy(ranks: int = 8, steps: int = 8, seed: int = 0) -> Scenario:
    """Nothing is planted, and every duration varies by 8 %, the ranks by 1 %."""
    return Scenario("noisy", _job(ranks, steps, seed, noise=0.08, spread=0.01), steps)


def skewed_clocks(
    ranks: int = 16, steps: int = 8, seed: int = 0, *, planted: bool = True
) -> Scenario:
    """Hosts of 8 whose clocks are off by up to 50 ms; one rank has slow kernels."""
    faults = (Fault("slow kernels", (_pick(ranks, seed),), 1.3),) if planted else ()
    draw = random.Random(hash((seed, 1)))
    hosts = -(-ranks // 8)
    clocks = tuple(Clock(round(draw.uniform(-50, 50) * _MS)) for _ in range(hosts))
    return Scenario("skewed_clocks", _job(ranks, steps, seed, *faults), steps, clocks=clocks)


def skewed_healthy(ranks: int = 16, steps: int = 8, seed: int = 0) -> Scenario:
    """Hosts whose clocks are off by up to 50 ms, and nothing else."""
    return replace(skewed_clocks(ranks, steps, seed, planted=False), name="skewed_healthy")


def drifting_clocks(
    ranks: int = 16, steps: int = 10, seed: int = 0, *, planted: bool = True
) -> Scenario:
    """Steps of seconds, 30 s in all, with clocks that drift by up to 50 ppm and are off too."""
    faults = (Fault("slow kernels", (_pick(ranks, seed),), 1.3),) if planted else ()
    draw = random.Random(hash((seed, 2)))
    clocks = tuple(
        Clock(round(draw.uniform(-5, 5) * _MS), draw.uniform(-50, 50))
        for _ in range(-(-ranks // 8))
    )
    job = _job(ranks, steps, seed, *faults, scale=1000 / steps)
    return Scenario("drifting_clocks", job, steps, clocks=clocks)


def drifting_healthy(ranks: int = 16, steps: int = 10, seed: int = 0) -> Scenario:
    """Clocks that drift and are off, and nothing else."""
    return replace(drifting_clocks(ranks, steps, seed, planted=False), name="drifting_healthy")


def incomplete_folder(ranks: int = 8, steps: int = 5, seed: int = 0) -> Scenario:
    """A slow rank; a rank is missing, one is cut off, one is there twice, and foreign files are."""
    slow = slow_rank(ranks, steps, seed)
    root = slow.job.faults[0].ranks[0]
    others = [rank for rank in range(ranks) if rank != root]
    random.Random(seed).shuffle(others)
    return replace(
        slow, name="incomplete_folder", missing=(others[0],), cut=(others[1],),
        duplicated=(others[2],), foreign=True, names="trace_rank_{rank}.json",
    )  # fmt: skip


def missing_root(ranks: int = 8, steps: int = 5, seed: int = 0) -> Scenario:
    """A slow rank whose profile is not there: the others wait, and no file shows for whom."""
    slow = slow_rank(ranks, steps, seed)
    return replace(slow, name="missing_root", missing=slow.job.faults[0].ranks)


def shifted_windows(ranks: int = 8, steps: int = 6, seed: int = 0) -> Scenario:
    """A slow rank; the windows of some ranks begin one or two steps later."""
    slow = slow_rank(ranks, steps, seed)
    draw = random.Random(hash((seed, 3)))
    starts = tuple((rank, draw.randrange(3)) for rank in range(ranks))
    job = replace(slow.job, steps=steps + 4)
    return replace(slow, name="shifted_windows", job=job, starts=starts)


def lost_collective(ranks: int = 8, steps: int = 5, seed: int = 0) -> Scenario:
    """A slow rank; of another rank the record of one collective is lost."""
    slow = slow_rank(ranks, steps, seed)
    other = (slow.job.faults[0].ranks[0] + 1) % ranks
    return replace(slow, name="lost_collective", lost=((other, 3 * 3 + 1),))


def stopped_early(ranks: int = 8, steps: int = 5, seed: int = 0) -> Scenario:
    """A slow rank; the recording of another rank ends in the middle of its last step."""
    slow = slow_rank(ranks, steps, seed)
    other = (slow.job.faults[0].ranks[0] + 1) % ranks
    return replace(slow, name="stopped_early", stops=((other, 1),))


def skipped_collective(ranks: int = 8, steps: int = 5, seed: int = 0) -> Scenario:
    """One rank does not launch a bucket's all-reduce in one step.

    What it launches next meets what the others have waited in, all that follows is one off, and
    the job hangs at its end.
    """
    fault = Fault("skips a collective", (_pick(ranks, seed),), 2.0, first=3, last=3)
    return Scenario("skipped_collective", _job(ranks, steps, seed, fault), steps + 1)


def pipeline_stage(ranks: int = 8, steps: int = 5, seed: int = 0) -> Scenario:
    """A pipeline of four stages, one of which has slow kernels on all of its ranks."""
    stage = _pick(4, seed)
    each = ranks // 4
    members = tuple(range(stage * each, (stage + 1) * each))
    job = _job(ranks, steps, seed, Fault("slow kernels", members, 1.5), scheme="pipeline", width=4)
    return Scenario("pipeline_stage", job, steps, names="node{rank}/trace.json.gz")


def pipeline_logits(ranks: int = 8, steps: int = 5, seed: int = 0) -> Scenario:
    """A pipeline whose last stage also has the logits: other kernels, more work."""
    job = _job(ranks, steps, seed, scheme="pipeline", width=4, logits=1.0)
    return Scenario("pipeline_logits", job, steps)


def changing_straggler(ranks: int = 8, steps: int = 10, seed: int = 0) -> Scenario:
    """One rank has slow kernels in the first half, another in the second."""
    first = _pick(ranks, seed)
    half = 1 + steps // 2
    faults = (
        Fault("slow kernels", (first,), 1.35, last=half - 1),
        Fault("slow kernels", ((first + ranks // 2) % ranks,), 1.35, first=half),
    )
    return Scenario("changing_straggler", _job(ranks, steps, seed, *faults), steps)


def old_form(ranks: int = 8, steps: int = 5, seed: int = 0) -> Scenario:
    """`slow_rank` as PyTorch wrote it in 2023."""
    return replace(slow_rank(ranks, steps, seed), name="old_form", form="2023")


def memory(ranks: int = 8, steps: int = 3, seed: int = 0) -> Scenario:
    """Nothing is slow; the profiles have memory, and rank 0 holds 1.5 GiB more."""
    job = _job(ranks, steps, seed, memory=True, extra_bytes=((0, 3 << 29),))
    return Scenario("memory", job, steps)


SCENARIOS: dict[str, Callable[..., Scenario]] = {
    function.__name__: function
    for function in (
        slow_rank, more_work, slow_input, slow_host, slow_host_unseen, checkpoint, collection,
        tensor_data, slow_network, slow_links, slow_network_for_all, random_pauses, healthy, noisy,
        skewed_clocks, skewed_healthy, drifting_clocks, drifting_healthy, incomplete_folder,
        missing_root, shifted_windows, lost_collective, stopped_early, skipped_collective,
        pipeline_stage, pipeline_logits, changing_straggler, old_form, memory,
    )
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("scenario", choices=sorted(SCENARIOS))
    parser.add_argument("--ranks", type=int)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--form", choices=FORMS)
    parser.add_argument("--scheme", choices=SCHEMES, help="of slow_rank and healthy")
    parser.add_argument("--healthy", action="store_true", help="the twin without the cause")
    parser.add_argument("--collectives", action="store_true", help="also print every collective")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    sizes = {"ranks": arguments.ranks, "steps": arguments.steps}
    given = {key: value for key, value in sizes.items() if value}
    if arguments.scheme:
        given["scheme"] = arguments.scheme
    scenario = SCENARIOS[arguments.scenario](seed=arguments.seed, **given)
    if arguments.healthy:
        scenario = scenario.healthy()
    if arguments.form:
        scenario = replace(scenario, form=arguments.form)
    truth = scenario.write(arguments.out)
    json.dump(truth.json(collectives=arguments.collectives), sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
