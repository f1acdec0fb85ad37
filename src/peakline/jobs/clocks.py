"""The clocks of a job's machines on one axis, by what ends on several of them at once.

Profiles of one machine share its clock. Another machine's may be off by anything, and may run
faster or slower: a synchronising collective ends on all its members when the last one has its data,
so the middle of what the ends of many lie apart is what the clocks do. A single end that is late is
no evidence: schedulers are late, never early.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from peakline.arrays import AnyArray, Float64Array, Int64Array
from peakline.jobs.members import Member
from peakline.trace.distribution import deviation

LEAST = 3
"""Fewer collectives in common say nothing about a clock."""
_DRIFTS_PS = 5 * 10**12
"""In less time no crystal drifts by what stands out from noise."""
_SURE = 4.0


@dataclass(frozen=True)
class MachineClock:
    """How far a machine's clock is ahead of the job's: ``ahead_ps`` at ``at_ps`` on its own clock,
    and by ``drift`` more for each ps after; give or take ``uncertainty_ps``. ``matches`` is how
    many collectives say so, 0 where it is believed as it is.
    """

    machine: str
    ahead_ps: float
    at_ps: float
    drift: float
    uncertainty_ps: float
    matches: int

    def ahead(self, times: AnyArray) -> Float64Array:
        """How far it is ahead at these times."""
        return np.asarray(self.ahead_ps + self.drift * (times - self.at_ps), np.float64)


@dataclass(frozen=True)
class ProfileClock:
    """From the times of one profile to the job's: its own ``t`` (ps since its zero) is
    ``t + offset_ps - drift * (t - at_ps)`` there.
    """

    offset_ps: int = 0
    at_ps: int = 0
    drift: float = 0.0

    def to_job(self, times: AnyArray) -> Int64Array:
        """These times of the profile, in ps on the job's clock.

        >>> ProfileClock(1000, 0, 0.5).to_job(np.array([0, 100])).tolist()
        [1000, 1050]
        """
        moved = times.astype(np.int64) + self.offset_ps
        if self.drift:
            moved -= np.rint(self.drift * (times - self.at_ps)).astype(np.int64)
        return moved


@dataclass(frozen=True, eq=False)
class Clocks:
    """The clock of each machine, and which is that of each participant."""

    machines: tuple[MachineClock, ...]
    of: Int64Array

    def ahead(self, member: Int64Array, times: Int64Array) -> Int64Array:
        """How far the clocks of these participants are ahead at their own ``times``, in ps."""
        if not self.machines:
            return np.zeros(times.size, np.int64)
        ahead, at, drift = np.array([(m.ahead_ps, m.at_ps, m.drift) for m in self.machines]).T
        of = self.of[member]
        result = np.rint(ahead[of] + drift[of] * (times - at[of]))
        return np.asarray(result, np.int64)

    def of_profile(self, member: int, zero_ps: int) -> ProfileClock:
        """The clock of this participant's profile, whose zero is at ``zero_ps`` by its machine."""
        if not self.machines:
            return ProfileClock(zero_ps)
        own = self.machines[self.of[member]]
        return ProfileClock(zero_ps - round(own.ahead_ps), round(own.at_ps) - zero_ps, own.drift)

    @property
    def uncertainty_ps(self) -> int:
        """The largest of all that were compared."""
        return round(max((one.uncertainty_ps for one in self.machines), default=0))

    @property
    def aligned_by(self) -> str:
        """``collectives``, ``clock`` (one machine, or several that are believed) or ``none``."""
        if any(one.matches for one in self.machines):
            return "collectives"
        return "clock" if len(self.machines) == 1 else "none"


def aligned(
    members: Sequence[Member], member: Int64Array, collective: Int64Array, end: Int64Array
) -> Clocks:
    """The clocks of ``members``, by rows of collectives that end together: ``member``,
    ``collective`` and ``end`` on the member's own clock (ps).

    The machine with most rows is right; the others are put where they match those that were put
    before. What shares nothing with any of these is believed.
    """
    names = list(dict.fromkeys(one.clock for one in members))
    place = {name: number for number, name in enumerate(names)}
    of = np.array([place[one.clock] for one in members], np.int64)
    machine = of[member] if member.size else np.zeros(0, np.int64)
    order = np.lexsort((end, collective, machine))
    bounds = np.searchsorted(machine[order], np.arange(len(names) + 1)).tolist()
    ends = [_ends(order[a:b], collective, end) for a, b in pairwise(bounds)]
    count = int(collective.max(initial=-1)) + 1
    total, seen = np.zeros(count), np.zeros(count, np.int64)
    clocks: dict[int, MachineClock] = {}
    while len(clocks) < len(names):
        left = [number for number in range(len(names)) if number not in clocks]
        near = [n for n in left if np.count_nonzero(seen[ends[n][0]]) >= LEAST]
        # Nobody is near in the beginning, and where groups have no machine in common.
        near = near or [max(left, key=lambda n: (ends[n][0].size, -n))]
        placed = {n: _placed(names[n], *ends[n], total, seen) for n in near}
        for number, clock in placed.items():
            which, own = ends[number]
            total[which] += own - clock.ahead(own)
            seen[which] += 1
        clocks |= placed
    return Clocks(tuple(clocks[number] for number in range(len(names))), of)


def _ends(
    order: Int64Array, collective: Int64Array, end: Int64Array
) -> tuple[Int64Array, Float64Array]:
    """The collectives of a machine's rows, ascending, and the middle of its ends; ``order`` are the
    rows by collective and end.
    """
    which, first, many = np.unique(collective[order], return_index=True, return_counts=True)
    low, high = end[order[first + (many - 1) // 2]], end[order[first + many // 2]]
    return which, low / 2 + high / 2


def _placed(
    name: str, which: Int64Array, own: Float64Array, total: Float64Array, seen: Int64Array
) -> MachineClock:
    """A machine's clock against the mean of those that were placed, where any were."""
    known = seen[which] > 0
    if np.count_nonzero(known) < LEAST:
        return MachineClock(name, 0.0, 0.0, 0.0, 0.0, 0)
    times = own[known]
    ahead = times - total[which[known]] / seen[which[known]]
    drift = _drift(times, ahead)
    middle = float(np.median(times))
    apart = ahead - drift * (times - middle)
    offset = float(np.median(apart))
    unsure = 1.25 * deviation(apart - offset) / np.sqrt(times.size) + 1
    return MachineClock(name, offset, middle, drift, float(unsure), int(times.size))


def _drift(times: Float64Array, ahead: Float64Array) -> float:
    """How much faster the clock runs, 0 where that may be noise: the median of the slopes between
    the first and the last third of what is known (Theil and Sen take all pairs).
    """
    third = times.size // 3
    if third < LEAST or np.ptp(times) < _DRIFTS_PS:
        return 0.0
    order = np.argsort(times, kind="stable")
    times, ahead = times[order], ahead[order]
    slope = float(np.median((ahead[-third:] - ahead[:third]) / (times[-third:] - times[:third])))
    rest = ahead - slope * times
    spread = deviation(rest - np.median(rest))
    length = float(np.median(times[-third:]) - np.median(times[:third]))
    return slope if abs(slope) * length > _SURE * spread * np.sqrt(2 / third) + 1 else 0.0
