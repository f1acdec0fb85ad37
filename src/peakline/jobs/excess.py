"""Whose own work holds the others up: the ranks that work longer than their peers, beyond noise.

What a participant does by itself is its steps' time without what it spends in collectives with
nothing to do beside them. So who comes late to a collective because another group's collective held
it up has no excess, wherever it stands in the chain, and a clock that is wrong changes nothing.
Peers are those that take part in the same collectives in a step (the same place in a pipeline, the
same share of a tensor); places are compared with each other.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from peakline.arrays import BoolArray, Float64Array, Int64Array
from peakline.jobs.members import Job
from peakline.jobs.pairing import UNEVEN, Rows
from peakline.trace.distribution import deviation, median_error

SURE = 4.0
"""An excess is no chance beyond so many deviations of what the peers show, ..."""
LEAST, LEAST_OF_FEW = 0.02, 0.05
"""... and worth a word from this share of a step on; where fewer than `MANY` peers show what is
usual, from the second on."""
LEAST_OF_STAGES = 0.10
"""Places of a job differ by design: a word is worth what is so much of a step."""
MANY = 4
_EPISODE_SURE, _EPISODE = 6.0, 0.10
"""A single step of a rank is longer beyond chance by so many deviations, and this share of it."""
_SAME = 0.75
"""So much of all that single steps exceed is one rank's where it is always the same."""
_FEWEST = 2
_HIGH = 90
ALWAYS, EPISODES = "always", "episodes"


_Sums = np.ndarray[Any, np.dtype[np.uint64]]


@dataclass(frozen=True, eq=False)
class OwnWork:
    """``work_ps`` is members x steps of the job: what each does by itself in each step, NaN where
    it has no such whole step. ``wall_ps`` is how long that lasts, ``input_ps`` what of it waits
    for input. ``peer_ps`` is what its peers do then, ``excess_ps`` the difference;
    ``role`` numbers those that are each other's peers, ``peers`` is how many each has.
    """

    work_ps: Float64Array
    wall_ps: Float64Array
    input_ps: Float64Array
    peer_ps: Float64Array
    role: Int64Array
    peers: Int64Array

    @property
    def excess_ps(self) -> Float64Array:
        """How much longer than its peers each works in each step."""
        return self.work_ps - self.peer_ps

    @cached_property
    def step_ps(self) -> float:
        """The median step of all members."""
        return float(np.nanmedian(self.wall_ps)) if np.isfinite(self.wall_ps).any() else 0.0


@dataclass(frozen=True, eq=False)
class Fault:
    """Members that work longer than their peers: one, or with ``is_stage`` all that have the same
    place in the job, such as a stage of a pipeline, whose peers are those with other places.

    ``steps`` of the job are those in which they do, by ``excess_ps`` in a mean one, ``peer_ps``
    how long the peers work in each. ``when`` is ALWAYS, or EPISODES where it is in some steps only.
    """

    members: tuple[int, ...]
    when: str
    steps: BoolArray
    excess_ps: float
    peer_ps: Float64Array
    is_stage: bool = False

    @property
    def member(self) -> int:
        """The first of its members."""
        return self.members[0]


@dataclass(frozen=True)
class Pauses:
    """Single steps in which some rank, each time another, works longer: how many steps, which
    members, and what they exceed together.
    """

    steps: int
    members: tuple[int, ...]
    excess_ps: float
    faults: tuple[Fault, ...]


def own_work(job: Job, rows: Rows) -> OwnWork:
    """What every member does by itself in every step."""
    shape = len(job.members), len(job.steps)
    work, wall, loads = (np.full(shape, np.nan) for _ in range(3))
    for number, member in enumerate(job.members):
        place = np.array([job.steps[label] for label in member.labels], np.int64)
        steps, whole = member.steps, member.steps.is_whole
        work[number, place[whole]] = steps.own_work[whole]
        wall[number, place[whole]] = steps.period[whole]
        loads[number, place[whole]] = steps.part("input_wait")[whole]
    role = roles_of(job, rows)
    peer, peers = np.full(shape, np.nan), np.zeros(shape[0], np.int64)
    for number in np.unique(role).tolist():
        mine = np.flatnonzero(role == number)
        peers[mine] = mine.size - 1
        if mine.size > 1:
            peer[mine] = _medians_of_others(work[mine])
    return OwnWork(work, wall, loads, peer, role, peers)


def roles_of(job: Job, rows: Rows) -> Int64Array:
    """A number for each member, equal for those whose steps have the same collectives, kinds and
    sizes in a typical step, at the same stage of a pipeline.
    """
    members, inside = len(job.members), np.flatnonzero(rows.step >= 0)
    stage = stages_of(job, rows)
    # The sizes of an all-to-all are each rank's own.
    size = np.where(rows.is_kind(UNEVEN), -1, rows.size_bytes)[inside]
    mixed = _mixed(rows.kind[inside] * 1_000_003 + size)
    steps = int(rows.step.max(initial=-1)) + 1
    at = rows.member[inside] * max(steps, 1) + rows.step[inside]
    sums = np.zeros(members * max(steps, 1), np.uint64)
    np.add.at(sums, at, mixed)
    usual = _usual(sums.reshape(members, max(steps, 1)))
    known: dict[tuple[int, int], int] = {}
    own = [known.setdefault(key, len(known)) for key in zip(usual.tolist(), stage, strict=True)]
    return np.array(own, np.int64)


def _usual(values: _Sums) -> _Sums:
    """Of each row the value that is there most often, of several the smallest."""
    ordered = np.sort(values, axis=1)
    row, place = np.nonzero(np.diff(ordered, axis=1, prepend=ordered[:, :1] ^ np.uint64(1)))
    often = np.diff(np.append(row * values.shape[1] + place, values.size))
    best = np.lexsort((place, -often, row))
    first = best[np.flatnonzero(np.diff(row[best], prepend=-1))]
    return ordered[row[first], place[first]]


def stages_of(job: Job, rows: Rows) -> list[int]:
    """How many ranks pass something on before each has its first input: 0 without a pipeline.

    The first message of a step is what the stage before has computed, or, of the first stage, its
    own output.
    """
    place = {one.number: n for n, one in enumerate(job.members) if one.number is not None}
    inside = np.flatnonzero((rows.step >= 0) & (rows.peer >= 0))
    inside = inside[np.lexsort((rows.arrive[inside], rows.step[inside], rows.member[inside]))]
    cell = rows.member[inside] * (len(job.steps) + 1) + rows.step[inside]
    first = inside[np.flatnonzero(np.diff(cell, prepend=-1))]
    receives = rows.is_kind(("recv",))
    votes: dict[int, Counter[int]] = {}
    for row in first.tolist():
        source = place.get(int(rows.peer[row]), -1) if receives[row] else -1
        votes.setdefault(int(rows.member[row]), Counter())[source] += 1
    before = {member: own.most_common(1)[0][0] for member, own in votes.items()}
    result = []
    for number in range(len(job.members)):
        stage, at = 0, before.get(number, -1)
        while at >= 0 and stage < len(job.members):
            stage, at = stage + 1, before.get(at, -1)
        result.append(stage)
    return result


def _mixed(values: Int64Array) -> _Sums:
    """Numbers whose sums differ where the values do (the mixer of splitmix64)."""
    with np.errstate(over="ignore"):
        x = values.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(x ^ (x >> np.uint64(31)))


_FEW = 8


def _medians_of_others(values: Float64Array) -> Float64Array:
    """Of each row the median of the other rows in each column; of many rows that of all."""
    if values.shape[0] > _FEW:
        return np.broadcast_to(_nanmedian(values), values.shape)
    return np.array([_nanmedian(np.delete(values, k, axis=0)) for k in range(values.shape[0])])


def _nanmedian(values: Float64Array) -> Float64Array:
    """The median of each column, NaN for one without a number."""
    result = np.full(values.shape[1], np.nan)
    known = np.isfinite(values).any(axis=0)
    if known.any():
        result[known] = np.nanmedian(values[:, known], axis=0)
    return result


def faults_of(work: OwnWork) -> tuple[list[Fault], Pauses | None]:
    """The members whose own work exceeds their peers' beyond noise, those that exceed most in all
    first; and what single steps of ever other ranks exceed.
    """
    excess = work.excess_ps
    known = np.isfinite(excess)
    result = _stages(work)
    if not known.any():
        return result, None
    usual = np.nan_to_num(_nanmedian(excess.T))
    noise = deviation((excess - usual[:, None])[known])
    for member in _beyond_peers(work, usual, known, noise):
        own, long = excess[member], _long_steps(excess[member], noise)
        rest = own[known[member] & ~long]
        worth = LEAST_OF_FEW * work.step_ps
        # Steps may differ more than what it exceeds by in every one of them.
        steady = not long.any() and np.percentile(rest, 100 - _HIGH) > worth
        if steady or not rest.size or np.median(rest) > max(SURE * noise, worth):
            peer = work.peer_ps[member]
            result.append(Fault((member,), ALWAYS, known[member], float(usual[member]), peer))
        else:
            # Half of its steps are long: its usual ones are the others.
            usual[member] = np.median(rest)
    pauses = None
    episodes = _episodes(work, excess - usual[:, None], noise)
    if episodes:
        total = sum(sum(own.values()) for own in episodes.values())
        most = max(episodes.values(), key=lambda own: sum(own.values()))
        faults = [_fault(work, member, own) for member, own in episodes.items()]
        is_one = sum(most.values()) >= _SAME * total and len(most) >= _FEWEST
        if is_one or _in_runs(episodes):
            result += [fault for fault in faults if fault.steps.sum() >= _FEWEST]
        else:
            steps = {step for own in episodes.values() for step in own}
            pauses = Pauses(len(steps), tuple(episodes), total, tuple(faults))
    result.sort(key=lambda fault: -fault.excess_ps * int(fault.steps.sum()))
    return result, pauses


def _beyond_peers(work: OwnWork, usual: Float64Array, known: BoolArray, noise: float) -> list[int]:
    """The members that exceed in half of their steps or more."""
    between = deviation(usual) if usual.size > MANY else 0.0
    result = []
    for member in np.flatnonzero(known.any(axis=1)).tolist():
        steps = int(known[member].sum())
        if steps < _FEWEST or not work.peers[member]:
            continue
        least = LEAST if work.peers[member] >= MANY else LEAST_OF_FEW
        unsure = max(between, median_error(noise, steps))
        if usual[member] > max(SURE * unsure, least * work.step_ps):
            result.append(member)
    return result


def _long_steps(excess: Float64Array, noise: float) -> BoolArray:
    """The steps that exceed as the longest do, and not as the others."""
    high = float(np.nanpercentile(excess, _HIGH))
    with np.errstate(invalid="ignore"):
        return np.asarray(excess > max(_EPISODE_SURE * noise, high / 2))


def _stages(work: OwnWork) -> list[Fault]:
    """The place in the job whose members work longer than those of all others, where these are
    alike: a stage that is slower, or has more to do, than the others.
    """
    roles = np.unique(work.role)
    if roles.size < 2:
        return []
    # That one place has the input is how it is built.
    apart = work.work_ps - work.input_ps
    own = np.array([_nanmedian(apart[work.role == role]) for role in roles.tolist()])
    known = np.isfinite(own).all(axis=0)
    if known.sum() < _FEWEST:
        return []
    usual = np.median(own[:, known], axis=1)
    most = int(usual.argmax())
    others = _nanmedian(np.delete(own, most, axis=0))
    excess = own[most] - others
    beyond = float(np.median(excess[known]))
    noise = deviation(excess[known]) if known.sum() > _FEWEST else 0.0
    least = max(LEAST_OF_STAGES * work.step_ps, SURE * median_error(noise, int(known.sum())))
    if beyond <= least or usual[most] < (1 + LEAST_OF_STAGES) * np.delete(usual, most).max():
        return []
    members = tuple(np.flatnonzero(work.role == roles[most]).tolist())
    waits = _nanmedian(work.input_ps[list(members)])
    return [Fault(members, ALWAYS, known, beyond, others + waits, is_stage=True)]


_Episodes = dict[int, dict[int, float]]


def _episodes(work: OwnWork, within: Float64Array, noise: float) -> _Episodes:
    """By member the steps that are longer than its others beyond chance, and by how much."""
    least = max(_EPISODE_SURE * noise, _EPISODE * work.step_ps)
    result: _Episodes = {}
    with np.errstate(invalid="ignore"):
        rows, steps = np.nonzero(within > least)
    for member, step in zip(rows.tolist(), steps.tolist(), strict=True):
        result.setdefault(member, {})[step] = float(within[member, step])
    return result


_RUN = 3


def _in_runs(episodes: _Episodes) -> bool:
    """Whether a few members have all of them, each in steps that follow each other: a straggler
    that changes.
    """
    if len(episodes) > _RUN:
        return False
    return all(len(own) >= _RUN and max(own) - min(own) < 2 * len(own) for own in episodes.values())


def _fault(work: OwnWork, member: int, own: dict[int, float]) -> Fault:
    mask = np.zeros(work.work_ps.shape[1], np.bool_)
    mask[list(own)] = True
    excess = float(np.mean(list(own.values())))
    return Fault((member,), EPISODES, mask, excess, work.peer_ps[member])
