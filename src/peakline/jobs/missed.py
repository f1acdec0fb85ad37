"""Who did not take part in a collective: a rank that has fewer of a kind and size than its peers.

Every collective that follows such one is another on that rank than on its peers, as the libraries
pair them by their order: where it does not hang, the job computes with the wrong data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray
from peakline.jobs.excess import OwnWork
from peakline.jobs.members import Job
from peakline.jobs.pairing import Paired, medians


@dataclass(frozen=True)
class Missed:
    """A member that took part in fewer collectives of a ``kind`` and size than its peers, first in
    ``step``: ``own`` there, where they have ``usual``. ``is_lost``: only its record is, for what it
    takes part in later ends when that of its peers does.
    """

    member: int
    kind: str
    size_bytes: int
    step: str
    own: int
    usual: int
    is_lost: bool


def missed_of(job: Job, paired: Paired, work: OwnWork) -> list[Missed]:
    """The members that lack collectives, over the whole steps that all of their peers recorded.

    Those that lack some in the last of these are none: their recordings end when they may.
    """
    labels, rows = list(job.steps), paired.rows
    result = []
    for role in np.unique(work.role).tolist():
        members = np.flatnonzero(work.role == role)
        whole = np.flatnonzero(np.isfinite(work.work_ps[members]).all(axis=0))[:-1]
        if members.size < _FEWEST or not whole.size:
            continue
        mine = np.flatnonzero(np.isin(rows.member, members) & np.isin(rows.step, whole))
        for kind, size in np.unique([rows.kind[mine], rows.size_bytes[mine]], axis=1).T.tolist():
            own = mine[(rows.kind[mine] == kind) & (rows.size_bytes[mine] == size)]
            counts = np.zeros((members.size, whole.size), np.int64)
            place = np.searchsorted(members, rows.member[own])
            np.add.at(counts, (place, np.searchsorted(whole, rows.step[own])), 1)
            usual = np.median(counts, axis=0).astype(np.int64)
            # One that another rank has in the step before, or after, is there.
            lacks = np.cumsum(usual - counts, axis=1)
            for row in np.flatnonzero(lacks[:, -1] > 0).tolist():
                at = int(np.flatnonzero(lacks[row] <= 0).max(initial=-1)) + 1
                later = (rows.step > whole[at]) & (rows.kind == kind)
                member = int(members[row])
                result.append(
                    Missed(
                        member, rows.texts[kind] if kind >= 0 else "collective", size,
                        labels[whole[at]], int(counts[row, at]), int(usual[at]),
                        _ends_with_peers(paired, work, member, later),
                    )
                )  # fmt: skip
    return sorted(result, key=lambda one: one.is_lost)


_FEWEST = 3
_TOGETHER = 0.05
"""Collectives that end within this share of a step are one."""


def _ends_with_peers(paired: Paired, work: OwnWork, member: int, rows: BoolArray) -> bool:
    """Whether the member's collectives among ``rows`` end when the others of each do."""
    mine = np.flatnonzero(rows & (paired.rows.member == member) & paired.is_paired)
    others = rows & (paired.rows.member != member)
    ends = medians(paired.collective[others], paired.end[others].astype(np.float64), paired.count)
    apart = np.abs(paired.end[mine] - ends[paired.collective[mine]])
    return bool(mine.size) and float(np.nanmedian(apart)) < _TOGETHER * work.step_ps
