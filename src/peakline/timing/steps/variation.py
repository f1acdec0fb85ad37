"""How much the times of steps differ: slow steps, and who keeps the others waiting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from peakline.arrays import AnyArray, Int64Array
from peakline.timing.step_breakdown import StepTimes
from peakline.timing.steps.facts import PARTS, StepFacts
from peakline.trace.distribution import deviation

BEHIND = 0.05
"""The others wait for a straggler for this share of the steps' time or more, ..."""
OFTEN = 0.75
"""... and it is the last in so many of the steps; who is last by chance changes."""
WORKS_LONGER = 0.5
"""It works longer than the median of the others, by so much of what they wait or more; a stage of a
pipeline may just communicate less."""
FEWEST = 2
"""Fewer common steps say nothing."""
_BY_CHANCE = (
    63.66, 9.92, 5.84, 4.60, 4.03, 3.71, 3.50, 3.36, 3.25, 3.17, 3.11, 3.05, 3.01, 2.98, 2.95,
    2.92, 2.90, 2.88, 2.86, 2.85,
)  # fmt: skip
"""Student's t by degrees of freedom from 1: in 99 of 100 samples a mean is less far from 0 by
chance, in standard errors. With more it is no larger than the last."""
_CHANCE = 0.01
_APART = 3
"""Who differs from the others by more standard deviations is none of them."""
_WORK = ("compute", "device_to_device", "device_to_host", "host_to_device")


@dataclass(frozen=True)
class SlowStep:
    """A step that took ``beyond_ps`` longer than the median, ``part_beyond_ps`` of it in ``part``.

    ``part`` is the one that is furthest above its own median: a column of ``step_breakdown``
    without ``_ps``. ``is_first``: one of the first of its name, which warm up.
    """

    step_id: int
    name: str
    wall_ps: int
    beyond_ps: int
    part: str
    part_beyond_ps: int
    is_first: bool


@dataclass(frozen=True)
class StepVariation:
    """The times of the steps of a device (None: of a host without) that are called ``name``;
    ``p95_ps``: of 20 steps 19 took no longer. ``coefficient`` is the standard deviation by the
    mean.
    """

    device: str | None
    name: str
    steps: int
    mean_ps: float
    median_ps: float
    p95_ps: int
    min_ps: int
    max_ps: int
    coefficient: float
    slow: tuple[SlowStep, ...]


@dataclass(frozen=True, eq=False)
class MemberSteps:
    """The steps of one device or host, an entry per step, on a clock that all members share.

    ``step`` says which steps are the same; it may hold numbers or names. ``last_compute`` is when
    its own computation ended, ``communication`` how long it was in collectives; picoseconds.
    """

    name: str
    step: Sequence[object]
    begin: Int64Array
    end: Int64Array
    last_compute: Int64Array
    communication: Int64Array


@dataclass(frozen=True)
class Straggler:
    """Who the others wait for, and how that is known.

    Evidence ``communication``: whoever comes last to a collective is in it for the shortest time;
    ``finish``: without collectives, whose computation ends last. ``behind_ps`` is how long the
    others waited in the median step, ``waited_ps`` in all ``steps``, ``share`` that by the steps'
    time, ``often`` the share of steps in which it was the last.
    """

    name: str
    evidence: str
    steps: int
    behind_ps: int
    waited_ps: int
    share: float
    often: float


def variation_of(facts: StepFacts) -> tuple[StepVariation, ...]:
    """The variation of the whole steps of each device, or of the host, by what they are called.

    Steps of different names (train, eval) are compared with their own like only; of each device
    those with most time come first. Which are slow says `StepFacts.is_slow`.
    """
    result = []
    for device, label in enumerate(facts.devices or (None,)):
        own = [
            _variation(facts, label, name, rows)
            for name in facts.populations
            if (rows := facts.rows_of(device, name)).size
        ]
        result += sorted(own, key=lambda one: -one.mean_ps * one.steps)
    return tuple(result)


def _variation(facts: StepFacts, device: str | None, name: str, rows: Int64Array) -> StepVariation:
    wall = facts.part("wall_ps")[rows]
    mean = float(wall.mean())
    return StepVariation(
        device=device,
        name=name,
        steps=rows.size,
        mean_ps=mean,
        median_ps=float(np.median(wall)),
        p95_ps=int(np.sort(wall)[int(np.ceil(0.95 * rows.size)) - 1]),
        min_ps=int(wall.min()),
        max_ps=int(wall.max()),
        coefficient=float(wall.std()) / mean if mean else 0.0,
        slow=_slow(facts, rows),
    )


def _slow(facts: StepFacts, rows: Int64Array) -> tuple[SlowStep, ...]:
    """Slow steps, the slowest first."""
    slow = rows[facts.is_slow[rows]]
    if not slow.size:
        return ()
    wall = facts.part("wall_ps")
    usual = float(np.median(wall[rows]))
    parts = list(PARTS)
    beyond = np.stack(
        [facts.part(part)[slow] - np.median(facts.part(part)[rows]) for part in parts], axis=1
    )
    return tuple(
        SlowStep(
            int(facts.part("step_id")[slow[k]]),
            facts.table.names("name")[int(slow[k])] or "",
            int(wall[slow[k]]),
            round(wall[slow[k]] - usual),
            parts[int(beyond[k].argmax())].removesuffix("_ps"),
            round(float(beyond[k].max())),
            bool(facts.is_first[slow[k]]),
        )
        for k in np.argsort(-wall[slow], kind="stable").tolist()
    )


def device_straggler(times: StepTimes) -> Straggler | None:
    """The device of a host that its others wait for because it works longer; None where there is
    none.
    """
    members = []
    for device, name in enumerate(times.devices):
        rows = times.rows_of(device)
        members.append(
            MemberSteps(
                name,
                times.step_id[rows].tolist(),
                times.start[rows],
                times.end[rows],
                times.last_compute[rows],
                times.communication_total[rows],
            )
        )
    result = straggler_among(members)
    if result is None:
        return None
    work = np.sum([times.part(name) for name in _WORK], axis=0)
    works = [int(work[times.rows_of(device)].sum()) for device in range(len(times.devices))]
    return result if works_longer(result, times.devices, works) else None


def works_longer(result: Straggler, names: Sequence[str], works: Sequence[int]) -> bool:
    """Whether who comes last works longer than the median of the others, by `WORKS_LONGER` of what
    they wait; ``works`` are those of ``names`` in all steps, in ps.
    """
    who = names.index(result.name)
    longer = works[who] - float(np.median(np.delete(works, who)))
    return longer >= WORKS_LONGER * result.waited_ps


def straggler_among(members: Sequence[MemberSteps]) -> Straggler | None:
    """Who of ``members``, devices on one clock, keeps the others waiting.

    Only steps that all members have count, and of those the ones whose windows have a moment in
    common: XProf numbers the steps of TPUs one by one, also where one of them ran more programs
    than the others. None with fewer than two members or `FEWEST` common steps, where nobody is last
    by `BEHIND` of the time and in `OFTEN` of the steps, and where that may be chance: by the spread
    of its lead over the steps, or as much as the others differ among themselves.
    """
    if len(members) < 2:
        return None
    where = [{step: row for row, step in enumerate(member.step)} for member in members]
    common = [step for step in members[0].step if all(step in rows for rows in where)]
    rows = [np.array([own[step] for step in common], np.int64) for own in where]

    def grid(column: str) -> Int64Array:
        return np.stack([getattr(m, column)[r] for m, r in zip(members, rows, strict=True)])

    together = np.flatnonzero(grid("begin").max(axis=0) < grid("end").min(axis=0))
    if together.size < FEWEST:
        return None
    rows = [own[together] for own in rows]
    wall = int((grid("end") - grid("begin")).max(axis=0).sum())
    waits = grid("communication")
    evidence = "communication" if waits.any() else "finish"
    # The last one's lead over the others: how much less it waits, or how much later it is done.
    late = -waits if evidence == "communication" else grid("last_compute")
    others = np.stack([np.median(np.delete(late, k, axis=0), axis=0) for k in range(len(members))])
    behind = late - others
    last = behind.argmax(axis=0)
    who = int(np.maximum(behind, 0).sum(axis=1).argmax())
    waited = float(np.maximum(behind[who], 0).sum())
    often = float((last == who).mean())
    share = waited / wall if wall else 0.0
    if share < BEHIND or often < OFTEN or not _beyond_noise(behind, who):
        return None
    return Straggler(
        members[who].name,
        evidence,
        together.size,
        round(float(np.median(behind[who]))),
        round(waited),
        share,
        often,
    )


def _beyond_noise(behind: AnyArray, who: int) -> bool:
    """Whether the lead of member ``who`` over the others, a row of ``behind`` per member and a
    column per step, is no chance: by how long it is in every step, or where that differs much
    from step to step by how often it is the last.
    """
    own = behind[who]
    usual = float(own.mean())
    error = float(own.std(ddof=1)) / own.size**0.5
    if usual < error * _BY_CHANCE[min(own.size - 1, len(_BY_CHANCE)) - 1]:
        often = int((behind.argmax(axis=0) == who).sum())
        if _always_last(often, own.size, len(behind)) > _CHANCE:
            return False
    others = np.delete(behind, who, axis=0).mean(axis=1)
    return usual > _APART * deviation(others)


def _always_last(often: int, steps: int, members: int) -> float:
    """How likely one of them is the last so often, were it any of them in each step."""
    share = 1 / members
    return members * sum(
        comb(steps, k) * share**k * (1 - share) ** (steps - k) for k in range(often, steps + 1)
    )
