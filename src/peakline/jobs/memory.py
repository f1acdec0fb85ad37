"""The memory of a job's ranks side by side: who needs most, and what only that one holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from peakline.arrays import Int64Array
from peakline.compare.state import NO_PURPOSE, Kind, Purpose
from peakline.jobs.contribution import RankMemory
from peakline.jobs.members import Job, Member
from peakline.trace.distribution import deviation

APART = 0.02
"""Ranks with the same role have the same peak but for so much of it, or one block of the
allocator."""
BLOCK = 2 << 20
_SURE = 4.0


@dataclass(frozen=True)
class HeldMore:
    """What one rank holds at its peak beside what the others do: bytes and how many buffers."""

    kind: Kind
    purpose: Purpose
    own_bytes: int
    usual_bytes: int
    own_count: int
    usual_count: int

    @property
    def more_bytes(self) -> int:
        """How much more it holds; negative: less."""
        return self.own_bytes - self.usual_bytes


class JobMemory:
    """The peak of each rank's main allocator (the one that reaches highest). ``members`` are those
    of which it is known, one for each process.
    """

    def __init__(self, job: Job) -> None:
        self.members: tuple[Member, ...] = tuple(
            member for member in job.firsts if member.profile.memory
        )
        self.own: tuple[RankMemory, ...] = tuple(
            max(member.profile.memory, key=lambda one: one.peak_bytes) for member in self.members
        )

    @cached_property
    def peaks(self) -> Int64Array:
        """The peak of each, in bytes."""
        return np.array([one.peak_bytes for one in self.own], np.int64)

    @cached_property
    def fullest(self) -> int:
        """The place of the rank with the largest peak."""
        return int(self.peaks.argmax())

    @cached_property
    def emptiest(self) -> int:
        """The place of the rank with the smallest."""
        return int(self.peaks.argmin())

    @cached_property
    def apart(self) -> tuple[int, ...]:
        """The places of ranks whose peak stands out from the others', the fullest first."""
        if self.peaks.size < 2:
            return ()
        median = float(np.median(self.peaks))
        least = max(APART * median, BLOCK, _SURE * deviation(self.peaks))
        far = np.flatnonzero(np.abs(self.peaks - median) > least)
        return tuple(far[np.argsort(-self.peaks[far], kind="stable")].tolist())

    def held_more(self, place: int, others: Sequence[int] | None = None) -> list[HeldMore]:
        """What the rank at ``place`` holds at its peak more than ``others`` (default: all), by
        kind; what differs most first. The usual is the median.
        """
        rest = [n for n in range(len(self.own)) if n != place] if others is None else others
        tables = [_by_kind(self.own[n]) for n in rest]
        mine = _by_kind(self.own[place])
        kinds = dict.fromkeys([*mine, *(kind for table in tables for kind in table)])
        result = []
        for kind in kinds:
            own = mine.get(kind, (0, 0, NO_PURPOSE))
            theirs = [table.get(kind, (0, 0, NO_PURPOSE)) for table in tables]
            purpose = next((one[2] for one in (own, *theirs) if any(one[2])), NO_PURPOSE)
            one = HeldMore(
                kind, purpose, own[0], _middle(each[0] for each in theirs),
                own[1], _middle(each[1] for each in theirs),
            )  # fmt: skip
            if one.more_bytes:
                result.append(one)
        return sorted(result, key=lambda one: -abs(one.more_bytes))


def _middle(values: Iterable[int]) -> int:
    return round(float(np.median([*values] or [0])))


def _by_kind(memory: RankMemory) -> dict[Kind, tuple[int, int, Purpose]]:
    return {kind: (size, count, purpose) for kind, size, count, purpose in memory.groups}
