"""Two jobs side by side, such as before and after a change: what changed on all ranks together, and
which ranks changed otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from peakline.arrays import AnyArray, Float64Array
from peakline.compare.memory import AllocatorDiff, compare
from peakline.compare.state import AllocatorState, Group, Kind, MemoryState
from peakline.compare.time import SIDES, OpChange, OpOwn, SelfTimes, chance_of, op_changes
from peakline.jobs.answer import JobAnswer, Root
from peakline.jobs.excess import LEAST, SURE
from peakline.jobs.members import Member
from peakline.jobs.memory import APART, BLOCK
from peakline.timing.step_breakdown import PARTS
from peakline.trace.distribution import deviation

_FEWEST = 4
"""So many ranks show what a change is beside chance: of fewer none is named."""
_OTHERS = Kind("(smaller ones)", "", "", "")


@dataclass(frozen=True)
class RankChange:
    """A rank of both jobs: a figure of each (ps of a mean step, or bytes), and ``usual``, by how
    much the ranks changed in the median.
    """

    title: str
    before: float
    after: float
    usual: float

    @property
    def delta(self) -> float:
        """After less before."""
        return self.after - self.before


class JobDiff:
    """What changed from the job ``before`` to the job ``after``; made when read.

    Ranks are paired by rank and device, hosts whose rank nobody says by name.
    """

    def __init__(self, before: JobAnswer, after: JobAnswer) -> None:
        self.before, self.after = before, after

    @cached_property
    def pairs(self) -> dict[str, tuple[int, int]]:
        """The places of a member in either job, by what it is called."""
        ours, theirs = _places(self.before.job.members), _places(self.after.job.members)
        return {title: (ours[title], theirs[title]) for title in ours if title in theirs}

    @property
    def only_before(self) -> list[Member]:
        """The members that the later job does not have."""
        return [one for one in self.before.job.members if one.title not in self.pairs]

    @property
    def only_after(self) -> list[Member]:
        """Those that the earlier one does not have."""
        return [one for one in self.after.job.members if one.title not in self.pairs]

    @cached_property
    def steps_ps(self) -> tuple[Float64Array, Float64Array]:
        """How long each whole step of either job takes: the median of its ranks, in ps."""
        return _steps(self.before), _steps(self.after)

    @cached_property
    def chance(self) -> float | None:
        """How likely chance alone makes the steps differ as much (Mann-Whitney U test, 0 to 1);
        None with too few steps.
        """
        return chance_of(*self.steps_ps)

    @cached_property
    def parts_ps(self) -> dict[str, tuple[int, int]]:
        """What the mean step of a rank goes to by itself, in either job: by the columns of
        ``step_breakdown``; empty where one of them has no steps.
        """
        both = _parts(self.before), _parts(self.after)
        if any(one is None for one in both):
            return {}
        return {
            name: (round(float(one)), round(float(other)))
            for name, one, other in zip(PARTS, *(b for b in both if b is not None), strict=True)
        }

    @cached_property
    def ops(self) -> tuple[OpChange, ...]:
        """The ops whose self time changed, the median of the ranks: per step where both jobs have
        steps, else of the whole profiles.
        """
        by_step = self.by_step
        return op_changes(_self_times(self.before, by_step), _self_times(self.after, by_step))

    @property
    def by_step(self) -> bool:
        """Whether `ops` are per step."""
        return bool(self.before.job.steps and self.after.job.steps)

    @cached_property
    def slower_ranks(self) -> list[RankChange]:
        """The ranks whose own work changed otherwise than the others', most first."""
        before, after = self.before.work, self.after.work
        least = LEAST * max(before.step_ps, after.step_ps)
        return _apart(self.pairs, _means(before.work_ps), _means(after.work_ps), least)

    @cached_property
    def memory_pairs(self) -> dict[str, tuple[int, int]]:
        """The places of a rank among those of either job whose memory is known."""
        ours, theirs = _places(self.before.memory.members), _places(self.after.memory.members)
        return {title: (ours[title], theirs[title]) for title in ours if title in theirs}

    @cached_property
    def fuller_ranks(self) -> list[RankChange]:
        """The ranks whose peak changed otherwise than the others', most first."""
        if not self.memory_pairs:
            return []
        before, after = self.before.memory.peaks, self.after.memory.peaks
        least = max(APART * float(np.median(np.concatenate([before, after]))), BLOCK)
        return _apart(self.memory_pairs, before, after, least)

    @cached_property
    def usual_rank(self) -> str:
        """The rank whose peak changed as the median did; empty where no memory can be compared."""
        pairs, ours, theirs = self.memory_pairs, self.before.memory, self.after.memory
        delta = {name: int(theirs.peaks[b] - ours.peaks[a]) for name, (a, b) in pairs.items()}
        middle = float(np.median([*delta.values()])) if delta else 0.0
        return min(delta, key=lambda name: abs(delta[name] - middle), default="")

    def held(self, title: str) -> AllocatorDiff:
        """What one rank holds otherwise at the peak of its fullest allocator. Raises KeyError."""
        ours, theirs = self.memory_pairs[title]
        before, after = _state(self.before, ours), _state(self.after, theirs)
        # The fullest is compared, whatever it is called.
        state = MemoryState((before,)), MemoryState((replace(after, allocator=before.allocator),))
        return compare(*state).allocators[0]

    @cached_property
    def roots(self) -> dict[str, list[tuple[Root | None, Root | None]]]:
        """What the jobs wait for: ``new``, ``gone`` and in ``both``, by who it is and why."""
        ours = {_name(self.before, root): root for root in self.before.roots}
        theirs = {_name(self.after, root): root for root in self.after.roots}
        return {
            "new": [(None, root) for name, root in theirs.items() if name not in ours],
            "both": [(ours[name], root) for name, root in theirs.items() if name in ours],
            "gone": [(root, None) for name, root in ours.items() if name not in theirs],
        }


def _apart(
    pairs: Mapping[str, tuple[int, int]], before: AnyArray, after: AnyArray, least: float
) -> list[RankChange]:
    """Who changed otherwise than the median, beyond what all differ by and ``least``."""
    rows = [(title, float(before[a]), float(after[b])) for title, (a, b) in pairs.items()]
    rows = [row for row in rows if np.isfinite(row[1:]).all()]
    if len(rows) < _FEWEST:
        return []
    delta = np.array([other - one for _, one, other in rows])
    usual = float(np.median(delta))
    least = max(least, SURE * deviation(delta))
    result = [
        RankChange(*row, usual)
        for row, own in zip(rows, delta.tolist(), strict=True)
        if abs(own - usual) > least
    ]
    return sorted(result, key=lambda one: -abs(one.delta - usual))


def _places(members: Iterable[Member]) -> dict[str, int]:
    return {member.title: place for place, member in enumerate(members)}


def _means(work: Float64Array) -> Float64Array:
    """The mean over the steps that a rank has; NaN where it has none."""
    known = np.isfinite(work)
    many = known.sum(axis=1)
    result = np.full(many.size, np.nan)
    np.divide(np.where(known, work, 0).sum(axis=1), many, out=result, where=many > 0)
    return result


def _steps(answer: JobAnswer) -> Float64Array:
    wall = answer.work.wall_ps
    wall = wall[:, np.isfinite(wall).any(axis=0)]
    return np.asarray(np.nanmedian(wall, axis=0)) if wall.size else np.zeros(0)


def _parts(answer: JobAnswer) -> Float64Array | None:
    rows = [one.steps.parts[~one.steps.is_cut_off] for one in answer.job.members]
    rows = [own for own in rows if own.size]
    return np.asarray(np.concatenate(rows).mean(axis=0)) if rows else None


def _self_times(answer: JobAnswer, by_step: bool) -> SelfTimes:
    """What each op takes, and how often it runs, on the median rank."""
    cells: dict[tuple[str, str], list[tuple[float, float]]] = {}
    members = answer.job.members if by_step else answer.job.firsts
    for member in members:
        work, ops, steps = member.work, member.profile.ops, max(member.work.ps.shape[1], 1)
        if by_step:
            rows = zip(
                work.side, work.names, work.ps.sum(axis=1) / steps, work.count.sum(axis=1) / steps,
                strict=True,
            )  # fmt: skip
        else:
            rows = zip(ops.side, ops.name, ops.self_ps, ops.count, strict=True)
        for side, name, ps, count in rows:
            cells.setdefault((side, name), []).append((float(ps), float(count)))
    sides: dict[str, dict[str, OpOwn]] = {side: {} for side in SIDES}
    for (side, name), own in cells.items():
        if side not in sides:
            continue
        # Who has not got it among its largest does next to nothing of it.
        rest = [(0.0, 0.0)] * (len(members) - len(own))
        ps, count = np.median([*own, *rest], axis=0).tolist()
        if ps:
            sides[side][name] = OpOwn(name, "", round(ps), count)
    return SelfTimes(sides, int(by_step))


def _state(answer: JobAnswer, place: int) -> AllocatorState:
    """The figures of a rank's fullest allocator, as a diff of two profiles compares them."""
    own = answer.memory.own[place]
    groups = [Group(kind, size, count) for kind, size, count, _ in own.groups]
    groups += [Group(_OTHERS, own.rest_bytes, 0)] if own.rest_bytes else []
    return AllocatorState(
        own.allocator, own.peak_bytes, tuple(groups), own.peak_unknown,
        purposes={kind: purpose for kind, _, _, purpose in own.groups},
        categories=own.categories,
    )  # fmt: skip


def _name(answer: JobAnswer, root: Root) -> tuple[object, ...]:
    if root.wire is not None:
        return ("network", *root.wire.machines)
    titles = sorted({answer.job.members[n].title for n in root.members})
    return ("" if root.cause is None else root.cause.kind, *titles)
