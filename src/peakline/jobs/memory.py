"""The memory of a job's ranks side by side: who needs most, and what only that one holds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from peakline.arrays import Float64Array, Int64Array
from peakline.compare.state import NO_PURPOSE, Kind, Purpose
from peakline.jobs.contribution import RankMemory
from peakline.jobs.groups import PIPELINE, kind_by_name
from peakline.jobs.members import Job, Member
from peakline.jobs.pairing import Paired
from peakline.trace.distribution import deviation

APART = 0.02
"""Ranks with the same role have the same peak but for so much of it, or one block of the
allocator."""
BLOCK = 2 << 20
_SURE = 4.0
_NEAR = 0.1
_MOST = 0.75
"""A rank that is alone in its role is compared with those of the role that so many have."""
_FEW_STAGES = 3
STATES = ("parameter", "gradient", "optimizer state")
"""What a model holds for training, by what sharding divides: ZeRO-3 all, ZeRO-2 the last two,
ZeRO-1 the last (arXiv 1910.02054)."""
_DEVICE = re.compile(r"(?:cuda|gpu|xpu|hip)[:_](\d{1,9})(?!\d)", re.IGNORECASE)


@dataclass(frozen=True)
class HeldMore:
    """What one rank holds at its peak beside what the others do: bytes and how many buffers.

    ``steps`` are the first and the last step, by id, in which it was allocated; None where that is
    not known. ``is_bound``: the difference is at least this, for one side has the kind among what
    is too little to be listed.
    """

    kind: Kind
    purpose: Purpose
    own_bytes: int
    usual_bytes: int
    own_count: int
    usual_count: int
    steps: tuple[int, int] | None = None
    is_bound: bool = False

    @property
    def more_bytes(self) -> int:
        """How much more it holds; negative: less."""
        return self.own_bytes - self.usual_bytes


@dataclass(frozen=True, eq=False)
class Category:
    """The bytes of a category at the peaks of all ranks that say categories: ``sizes`` by the place
    of the rank, NaN where it says none.
    """

    name: str
    sizes: Float64Array

    @property
    def median(self) -> float:
        """That of the ranks."""
        return float(np.nanmedian(self.sizes))

    @property
    def is_equal(self) -> bool:
        """Whether all ranks have as much, but for `APART` or a block that is little of it."""
        spread = float(np.nanmax(self.sizes) - np.nanmin(self.sizes))
        return spread <= max(APART * self.median, min(BLOCK, _NEAR * self.median))


@dataclass(frozen=True, eq=False)
class Stages:
    """A kind of buffers of which each stage of a pipeline holds a microbatch less than the one
    before, as 1F1B has it: ``sizes`` by stage, in bytes; ``stage`` by the place of the rank.
    """

    kind: Kind
    stage: Int64Array
    sizes: tuple[int, ...]


@dataclass(frozen=True)
class Sharding:
    """What ranks that hold the same model states would need at the peak if they divided them over
    ``ranks``: from ``least_bytes`` to ``most_bytes``.

    The most is where what is divided must be whole at the peak: gradients before they are reduced
    (ZeRO-2), weights of one unit (ZeRO-3).
    """

    scheme: str
    ranks: int
    least_bytes: int
    most_bytes: int


@dataclass(frozen=True)
class Whole:
    """A rank that holds as much of a category as all ranks together should."""

    place: int
    category: str
    own_bytes: int
    usual_bytes: int


@dataclass(frozen=True)
class SecondDevice:
    """A rank that allocates on a device that is another rank's."""

    place: int
    memory: RankMemory


class JobMemory:
    """The peak of each rank's main allocator (the one that reaches highest). ``members`` are those
    of which it is known, one for each process. ``role`` numbers the members of the job, those with
    equal numbers are each other's peers; ``paired`` are its collectives; None where there are none.
    """

    def __init__(
        self, job: Job, role: Int64Array | None = None, paired: Paired | None = None
    ) -> None:
        self.members: tuple[Member, ...] = tuple(
            member for member in job.firsts if member.profile.memory
        )
        self.own: tuple[RankMemory, ...] = tuple(
            max(member.profile.memory, key=lambda one: one.peak_bytes) for member in self.members
        )
        self._job, self._role, self._paired = job, role, paired

    @cached_property
    def peaks(self) -> Int64Array:
        """The peak of each, in bytes."""
        return np.array([one.peak_bytes for one in self.own], np.int64)

    @cached_property
    def headroom(self) -> Float64Array:
        """What is left of each one's capacity at its peak; NaN where that is not recorded."""
        return np.array(
            [
                np.nan if one.capacity_bytes is None else one.capacity_bytes - one.peak_bytes
                for one in self.own
            ]
        )

    @cached_property
    def fullest(self) -> int:
        """The place of the rank with the largest peak."""
        return int(self.peaks.argmax())

    @cached_property
    def emptiest(self) -> int:
        """The place of the rank with the smallest."""
        return int(self.peaks.argmin())

    @cached_property
    def roles(self) -> Int64Array:
        """A number for each: equal for ranks that should need the same. By their collectives; else
        by their stage of a pipeline; else all have the same.
        """
        if self._role is not None:
            places = {id(member): place for place, member in enumerate(self._job.members)}
            mine = [places[id(member)] for member in self.members]
            return np.asarray(self._role[mine])
        if self.stages is not None:
            return self.stages.stage
        stages: Int64Array = np.array([_stage_of(member) for member in self.members], np.int64)
        return stages

    def peers(self, place: int) -> Int64Array:
        """The places of the others with the role of the rank at ``place``."""
        mine = np.flatnonzero(self.roles == self.roles[place])
        if mine.size == 1:
            role, many = Counter(self.roles.tolist()).most_common(1)[0]
            mine = np.flatnonzero(self.roles == role) if many >= _MOST * self.roles.size else mine
        return np.asarray(mine[mine != place])

    @cached_property
    def apart(self) -> tuple[int, ...]:
        """The places of ranks whose peak stands out from their peers', the fullest first."""
        result = []
        usual: dict[int, tuple[float, float]] = {}
        for place in range(self.peaks.size):
            peers = self.peers(place)
            if not peers.size:
                continue
            key = int(self.roles[peers[0]])
            if key not in usual:
                values = self.peaks[np.append(peers, place)]
                noise = deviation(values) if values.size > 2 else 0.0
                middle = float(np.median(values))
                usual[key] = middle, max(APART * middle, BLOCK, _SURE * noise)
            middle, least = usual[key]
            if abs(self.peaks[place] - middle) > least:
                result.append(place)
        return tuple(sorted(result, key=lambda place: -int(self.peaks[place])))

    def usual(self, place: int) -> int:
        """The median peak of the rank's peers."""
        peers = self.peers(place)
        return round(float(np.median(self.peaks[peers if peers.size else slice(None)])))

    def held_more(self, place: int, others: Sequence[int] | None = None) -> list[HeldMore]:
        """What the rank at ``place`` holds at its peak more than ``others`` (default: its peers),
        by kind; what differs most first. The usual is the median.
        """
        rest = self.peers(place).tolist() if others is None else others
        tables = [self._tables[n] for n in rest]
        mine, least = self._tables[place], self._least(place)
        leasts = [self._least(n) for n in rest]
        kinds = dict.fromkeys([*mine, *(kind for table in tables for kind in table)])
        result = []
        for kind in kinds:
            theirs = [table.get(kind) for table in tables]
            purposes = (one[2] for one in (mine.get(kind), *theirs) if one is not None)
            purpose = next((one for one in purposes if any(one)), NO_PURPOSE)
            known = [one for one in theirs if one is not None]
            # What is not among the largest kinds of a rank is at most as large as those.
            own = mine.get(kind) or (min(least, _middle([b for b, *_ in known])), 0, purpose, None)
            sizes = [
                min(own[0], most) if one is None else one[0]
                for one, most in zip(theirs, leasts, strict=True)
            ]
            bounds = sum(one is None and most > 0 for one, most in zip(theirs, leasts, strict=True))
            one = HeldMore(
                kind, purpose, own[0], _middle(sizes), own[1],
                _middle([0 if each is None else each[1] for each in theirs]), own[3],
                is_bound=2 * bounds > len(theirs) or (kind not in mine and least > 0),
            )  # fmt: skip
            if one.more_bytes:
                result.append(one)
        return sorted(result, key=lambda one: -abs(one.more_bytes))

    @cached_property
    def _tables(self) -> list[dict[Kind, tuple[int, int, Purpose, tuple[int, int] | None]]]:
        return [
            {
                kind: (size, count, purpose, steps)
                for (kind, size, count, purpose), steps in zip(one.groups, one.steps, strict=True)
            }
            for one in self.own
        ]

    def _least(self, place: int) -> int:
        """The most that a kind may take that is not among those of a rank."""
        one = self.own[place]
        return min((abs(row[1]) for row in one.groups), default=0) if one.rest_bytes else 0

    @cached_property
    def categories(self) -> tuple[Category, ...]:
        """What the ranks hold by category, most first; empty where none says any."""
        names = dict.fromkeys(name for one in self.own for name in one.categories)
        result = [
            Category(
                name,
                np.array(
                    [
                        float(one.categories.get(name, 0)) if one.categories else np.nan
                        for one in self.own
                    ]
                ),
            )
            for name in names
        ]
        return tuple(sorted(result, key=lambda one: (not one.name, -one.median)))

    def category(self, name: str) -> Category | None:
        """That of this name."""
        return next((one for one in self.categories if one.name == name), None)

    @cached_property
    def stages(self) -> Stages | None:
        """The stages of a pipeline as memory shows them: ``min(stages - stage, microbatches)``
        times the same at every rank, in the order of ranks; None where no kind is held so.
        """
        common = set(self._tables[0]).intersection(*self._tables[1:]) if self.own else ()
        many = len(self.own)
        for kind in sorted(common, key=lambda kind: -self._tables[0][kind][0]):
            sizes = np.array([table[kind][0] for table in self._tables])
            least = int(sizes.min())
            if least <= 0 or (sizes % least).any():
                continue
            counts = sizes // least
            for stages in range(_FEW_STAGES, many + 1):
                held = np.minimum(stages - np.arange(stages), counts.max())
                if many % stages or counts.max() < _FEW_STAGES:
                    continue
                # Ranks of a stage follow each other, or lie a stage apart.
                for stage in (np.arange(many) * stages // many, np.arange(many) % stages):
                    if (counts == held[stage]).all():
                        return Stages(kind, stage, tuple((held * least).tolist()))
        return None

    @cached_property
    def shardings(self) -> tuple[Sharding, ...]:
        """What dividing the model states over the ranks that hold the same would make of the peak;
        empty unless the collectives show that these reduce the gradients of the whole model.
        """
        many = self._replicas
        states = [self.category(name) for name in STATES]
        if many < 2:
            return ()
        sizes = [round(one.median) if one is not None and one.is_equal else 0 for one in states]
        peak, saved, result = int(self.peaks.max()), 0, []
        most = peak
        for scheme, size in zip(("ZeRO-1", "ZeRO-2", "ZeRO-3 (FSDP)"), sizes[::-1], strict=True):
            saved += size - size // many
            if scheme == "ZeRO-1":
                most = peak - saved
            if size:
                result.append(Sharding(scheme, many, peak - saved, most))
            most = peak - saved
        return tuple(result)

    @cached_property
    def _replicas(self) -> int:
        """Over how many ranks the gradients of all weights are reduced in a step; 0 where the
        collectives show none.
        """
        paired, weights = self._paired, self.category("parameter")
        if paired is None or weights is None or not weights.is_equal or weights.median <= 0:
            return 0
        rows, sizes = paired.rows, paired.members[paired.collective]
        inside = (rows.step >= 0) & rows.is_kind(("all-reduce",)) & (rows.size_bytes > 0)
        result: Counter[int] = Counter()
        for size in np.unique(sizes[inside]).tolist():
            mine = inside & (sizes == size)
            cells = len(np.unique(np.stack([rows.member[mine], rows.step[mine]]), axis=1).T)
            reduced = float(rows.size_bytes[mine].sum()) / max(cells, 1)
            if abs(reduced - weights.median) <= _NEAR * weights.median:
                result[int(size)] = cells
        return result.most_common(1)[0][0] if result else 0

    @cached_property
    def whole(self) -> tuple[Whole, ...]:
        """Ranks that hold, of a model state, as many times what the others do as there are ranks
        to share it.
        """
        result = []
        for name in STATES:
            one = self.category(name)
            if one is None or one.median <= 0 or len(self.own) < _FEW_STAGES:
                continue
            times = one.sizes / one.median
            near = np.abs(times - len(self.own)) <= _NEAR * len(self.own)
            result += [
                Whole(place, name, round(float(one.sizes[place])), round(one.median))
                for place in np.flatnonzero(near).tolist()
            ]
        return tuple(result)

    @cached_property
    def second_devices(self) -> tuple[SecondDevice, ...]:
        """Ranks that allocate on another's device beside their own, where most do not."""
        main = [_device_of(one.allocator) for one in self.own]
        result = []
        for place, member in enumerate(self.members):
            theirs = {n for k, n in enumerate(main) if k != place and n != main[place]}
            result += [
                SecondDevice(place, one)
                for one in member.profile.memory
                if (number := _device_of(one.allocator)) is not None and number in theirs
            ]
        ranks = {one.place for one in result}
        return tuple(result) if 2 * len(ranks) <= len(self.members) else ()


def _device_of(allocator: str) -> int | None:
    match = _DEVICE.search(allocator)
    return None if match is None else int(match[1])


def _stage_of(member: Member) -> int:
    """The rank's place in its group of a pipeline, by what the program calls that; 0 without."""
    for group in member.profile.facts.groups:
        kind = kind_by_name(group.name, group.description)
        if kind == PIPELINE and member.number in group.ranks:
            return group.ranks.index(member.number)
    return 0


def _middle(values: Sequence[int]) -> int:
    return round(float(np.median(values))) if values else 0
