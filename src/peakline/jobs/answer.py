"""What is said of a job: made of the contributions of its profiles alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from peakline.arrays import Float64Array, Int64Array
from peakline.jobs.causes import Cause, cause_of
from peakline.jobs.clocks import ProfileClock
from peakline.jobs.contribution import Contribution
from peakline.jobs.excess import Fault, OwnWork, Pauses, faults_of, own_work
from peakline.jobs.groups import Group, groups_of
from peakline.jobs.members import Job, Member, job_of
from peakline.jobs.memory import JobMemory
from peakline.jobs.missed import Missed, missed_of
from peakline.jobs.pairing import Paired, medians, pair
from peakline.jobs.wires import SlowWire, slow_wire_of
from peakline.jobs.without import Replay

_MOST_FAULTS = 3
"""So many ranks are replayed without their excess, those that exceed most."""
WORTH, WORTH_A_STAGE, WORTH_A_PAUSE = 0.01, 0.05, 0.03
"""What gains less of a step is no root of anything. Stages of a pipeline are seldom equal; and on
machines that run other programs too, single steps are held up for nothing, where there is only one
by less than a step."""


@dataclass(frozen=True, eq=False)
class Root:
    """What the job waits for: a member (``fault`` and ``cause``), with others of its process that
    have a fault too (``beside``), or a ``wire``.

    ``step_without_ps`` is how long a mean step would take without it, by replaying what depends on
    it; None where no collective shows that anybody waits.
    """

    step_ps: float
    step_without_ps: float | None
    fault: Fault | None = None
    cause: Cause | None = None
    wire: SlowWire | None = None
    beside: tuple[Fault, ...] = ()

    @property
    def members(self) -> tuple[int, ...]:
        """The places of the members that it is about, the one that exceeds most first."""
        faults = () if self.fault is None else (self.fault, *self.beside)
        return tuple(dict.fromkeys(member for one in faults for member in one.members))

    @property
    def gain_ps(self) -> float:
        """What a mean step would be shorter."""
        return 0.0 if self.step_without_ps is None else self.step_ps - self.step_without_ps

    @property
    def share(self) -> float:
        """The same by the step."""
        return self.gain_ps / self.step_ps if self.step_ps else 0.0


@dataclass(frozen=True, eq=False)
class RankTimes:
    """Members x figures of a mean step, in ps; NaN where a member has no steps.

    ``compute`` is the device's (the host's without a device), ``waiting`` and ``transfer`` what of
    the time in collectives nothing else ran beside: until the last member came, and after (NaN
    where no collective is recorded on two ranks); ``late`` the median lateness against the others.
    """

    step: Float64Array
    compute: Float64Array
    waiting: Float64Array
    transfer: Float64Array
    late: Float64Array


class JobAnswer:
    """A job from its parts: ``job``, and what its time and its memory go to, made when read."""

    def __init__(self, job: Job) -> None:
        self.job = job

    @cached_property
    def paired(self) -> Paired:
        """Its collectives."""
        return pair(self.job.members, self.job.steps)

    def clock(self, number: int) -> ProfileClock:
        """From the times of this member's profile to the job's."""
        return self.paired.clocks.of_profile(number, self.job.members[number].zero_ps)

    @cached_property
    def groups(self) -> list[Group]:
        """The groups of its ranks, and what they are for."""
        return groups_of(self.job, self.paired.rows)

    @cached_property
    def work(self) -> OwnWork:
        """What each rank does by itself."""
        return own_work(self.job, self.paired.rows)

    @cached_property
    def memory(self) -> JobMemory:
        """The memory of its ranks."""
        if not self.paired.is_paired.any():
            return JobMemory(self.job)
        return JobMemory(self.job, self.work.role, self.paired)

    @cached_property
    def missed(self) -> list[Missed]:
        """Who did not take part in a collective."""
        return missed_of(self.job, self.paired, self.work)

    @cached_property
    def replay(self) -> Replay:
        """Its dependencies."""
        return Replay(self.job, self.paired, self.work)

    @cached_property
    def _faults(self) -> tuple[list[Fault], Pauses | None]:
        return faults_of(self.work)

    @cached_property
    def pauses(self) -> Pauses | None:
        """What ever other ranks exceed in single steps; None where that costs next to nothing."""
        result = self._faults[1]
        if result is None:
            return None
        if not self.paired.is_paired.any():
            return result
        step = self.replay.recorded_ps
        if result.steps == 1 and result.excess_ps < step:
            return None
        gain = step - self.replay.without(*result.faults)
        return result if gain >= WORTH_A_PAUSE * step else None

    @cached_property
    def roots(self) -> tuple[Root, ...]:
        """What the job waits for, what gains most first; empty where nothing does."""
        if not self.job.members or not self.replay.recorded_ps:
            return ()
        step = self.replay.recorded_ps
        waits = bool(self.paired.is_paired.any())
        result = []
        for fault, *beside in self._by_process()[:_MOST_FAULTS]:
            cause = cause_of(self.job, self.work, fault)
            without = self.replay.without(fault, *beside) if waits else None
            result.append(Root(step, without, fault, cause, beside=tuple(beside)))
        wire = slow_wire_of(self.job, self.paired)
        if wire is not None:
            result.append(Root(step, self.replay.with_transfers(wire.usual_ps), wire=wire))
        result.sort(key=lambda root: -root.gain_ps)
        return tuple(root for root in result if not waits or root.share >= _worth(root))

    @cached_property
    def step_without_pauses_ps(self) -> float | None:
        """How long a mean step would take without `pauses`."""
        if self.pauses is None or not self.paired.is_paired.any():
            return None
        return self.replay.without(*self.pauses.faults)

    def _by_process(self) -> list[list[Fault]]:
        """The faults, those of one process together: its devices are slow for the same reason, and
        without one of them the others still hold the job up.
        """
        result: dict[object, list[Fault]] = {}
        for fault in self._faults[0]:
            profile = self.job.members[fault.member].profile
            result.setdefault(fault if fault.is_stage else profile, []).append(fault)
        return sorted(result.values(), key=lambda own: -own[0].excess_ps * own[0].steps.sum())

    @cached_property
    def step_without_ps(self) -> float | None:
        """How long a mean step would take without any of the ranks' excesses."""
        faults = [
            fault
            for root in self.roots
            if root.fault is not None
            for fault in (root.fault, *root.beside)
        ]
        if len(self.roots) < 2 or not self.paired.is_paired.any():
            return self.roots[0].step_without_ps if self.roots else None
        return self.replay.without(*faults)

    @cached_property
    def times(self) -> RankTimes:
        """What a mean step of each member goes to."""
        members, paired = self.job.members, self.paired
        rows, many = paired.rows, len(self.job.members)
        before, after = self._exposed
        # Without steps it is all that was recorded.
        inside = (rows.step >= 0) | (not self.job.steps)
        steps = np.array([max(len(one.labels), 1) for one in members], np.float64)

        def summed(values: Int64Array) -> Float64Array:
            own = np.bincount(rows.member[inside], values[inside], many)
            return np.asarray(own / steps, np.float64)

        both = paired.is_paired
        if not both.any():
            # Nobody knows who was waited for.
            steps = np.full(many, np.nan)
        late = medians(rows.member[both], paired.late[both].astype(np.float64), many)
        return RankTimes(
            np.array([_mean(one.steps.period[one.steps.is_whole]) for one in members]),
            np.array([_mean(_computes(one)) for one in members]),
            summed(before),
            summed(after),
            late,
        )

    @cached_property
    def waiting_by_step(self) -> Float64Array:
        """Members x steps of the job: what `RankTimes.waiting` is of each step, in ps."""
        rows, shape = self.paired.rows, (len(self.job.members), max(len(self.job.steps), 1))
        result = np.zeros(shape)
        inside = rows.step >= 0
        before = self._exposed[0]
        np.add.at(result, (rows.member[inside], rows.step[inside]), before[inside])
        return result

    @cached_property
    def _exposed(self) -> tuple[Int64Array, Int64Array]:
        """Of each row of the collectives what its member spends in it with nothing else running:
        until the last member came, and after. Time in several at once is of the first.
        """
        paired, rows = self.paired, self.paired.rows
        before, whole = (np.zeros(rows.member.size, np.int64) for _ in range(2))
        for number, member in enumerate(self.job.members):
            mine, calls = rows.of(number), member.calls
            # Places by how long the member had not worked until then.
            begin = calls.arrive - calls.worked_arrive
            end = np.maximum(calls.end - calls.worked_end, begin)
            transfer = paired.transfer[mine]
            came = np.where(transfer >= 0, np.maximum(end - transfer, begin), begin)
            before[mine], whole[mine] = _first_to(begin, came), _first_to(begin, end)
        return before, whole - before

    @cached_property
    def last(self) -> tuple[int, int, int] | None:
        """Which member comes last to most of the collectives that hold their members up, how many
        of them, and of how many. None where there are none. It may wait for others itself.
        """
        paired = self.paired
        rows = np.flatnonzero(paired.is_paired & (paired.wait >= 0))
        if not rows.size:
            return None
        last = rows[paired.arrive[rows] == paired.last[paired.collective[rows]]]
        often = np.bincount(paired.rows.member[last], minlength=len(self.job.members))
        most = int(often.argmax())
        return most, int(often[most]), int(np.unique(paired.collective[rows]).size)

    @property
    def waiting_share(self) -> float | None:
        """How much of the steps' time is spent waiting for the last to come; None where no
        collective is recorded on two ranks.
        """
        return self._share(self.times.waiting)

    @property
    def transfer_share(self) -> float | None:
        """How much of it is spent in transfers with nothing to do beside."""
        return self._share(self.times.transfer)

    def _share(self, values: Float64Array) -> float | None:
        if not self.paired.is_paired.any():
            return None
        total = float(np.nansum(self.times.step))
        return float(np.nansum(values)) / total if total else None


def _first_to(begin: Int64Array, end: Int64Array) -> Int64Array:
    """What each interval has that none before it has; they are ordered by their begin."""
    until = np.maximum.accumulate(end)
    known = np.concatenate([begin[:1], until[:-1]])
    return np.asarray(np.maximum(end - np.maximum(begin, known), 0))


def _worth(root: Root) -> float:
    """What share of a step is worth a word."""
    return WORTH_A_STAGE if root.fault is not None and root.fault.is_stage else WORTH


def _mean(values: Int64Array) -> float:
    return float(values.mean()) if values.size else float("nan")


def _computes(member: Member) -> Int64Array:
    steps = member.steps
    compute = steps.part("compute")
    return compute if compute.any() else steps.part("host_compute")


def answer_of(parts: Sequence[tuple[str, Contribution]]) -> JobAnswer:
    """What is said of the job that these profiles are of: what a host is called, and what it
    gives (`contribution_of`).
    """
    return JobAnswer(job_of(parts))
