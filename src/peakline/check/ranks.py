"""Limits that all ranks of a job must pass: each is judged by the rank that breaks it most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from peakline.check.limits import profile_checks
from peakline.check.verdict import Check, Limits
from peakline.jobs.members import Member
from peakline.memory.allocator_names import shown_names
from peakline.tables import Profile

RankChecks = tuple[Check, ...]


def rank_checks(profile: Profile, limits: Limits, allocator: str | None) -> RankChecks:
    """The limits, held against one rank; allocators are called as on its screens.

    Raises as `peakline.check.limits.check_limits`.
    """
    checks = profile_checks(profile, limits, None, allocator, everything=False)[2]
    names = shown_names(profile)
    return tuple(replace(one, allocator=names.get(one.allocator, one.allocator)) for one in checks)


def worst_checks(ranks: Sequence[tuple[Member, RankChecks]]) -> list[Check]:
    """Of every limit the check of the rank, and there of the allocator or the program, that breaks
    it most, with how many do; a limit that could not be measured on a rank is broken by it.

    >>> worst_checks([])
    []
    """
    by_name: dict[str, list[tuple[Member, Check]]] = {}
    for member, checks in ranks:
        for check in checks:
            by_name.setdefault(check.name, []).append((member, check))
    result = []
    for rows in by_name.values():
        member, worst = max(rows, key=lambda row: _breaks(row[1]))
        failed = len({id(one) for one, check in rows if not check.passed})
        reason = worst.reason
        if failed > 1:
            reason = f"{reason}; {failed} of {len(ranks)} ranks fail"
        result.append(replace(worst, rank=member.title, reason=reason))
    return result


def _breaks(check: Check) -> tuple[bool, bool, float]:
    return not check.passed, check.measured is not None, check.measured or 0
