"""What is said of who is in a job: how ranks are called, who is missing, its part of the JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from peakline.jobs.groups import Group, groups_of
from peakline.jobs.members import Job, Member, numbers_text
from peakline.text import counted

Line = tuple[str, str, str]
"""A label, what it is about, and what is said."""

MOST_RANKS = 8
"""So many ranks are rows of a screen; of more only those that differ are, and the rest is a
number."""
_SHARED = 0.9
"""What so many of the ranks have is of all."""


def who_text(members: Sequence[Member], of: int) -> str:
    """Who of ``of`` has something: all, or which.

    >>> who_text([], 8)
    'no rank'
    """
    if not members:
        return "no rank"
    if len(members) == of and of > 1:
        return "both ranks" if of == 2 else f"all {of} ranks"
    if len(members) >= _SHARED * of and of > MOST_RANKS:
        return f"{len(members)} of {of} ranks"
    return names_text(members)


def names_text(members: Sequence[Member]) -> str:
    """Ranks in few words: ``rank 3``, ``ranks 0-3, 7``, or hosts by name, the first few."""
    numbers = [one.number for one in members if one.number is not None]
    if len(numbers) == len(members) and len(set(numbers)) == len(members):
        if len(members) == 1:
            return members[0].title
        text = numbers_text(numbers)
        return f"ranks {text}" if len(text) <= 60 else f"{len(members)} ranks"
    titles = [one.title for one in members]
    if len(titles) <= 3:
        return ", ".join(titles)
    return f"{', '.join(titles[:2])} and {len(titles) - 2} more"


def member_lines(job: Job) -> list[Line]:
    """Which ranks there are, and what is missing, damaged or left out, in a line each."""
    result: list[Line] = [("ranks", "", _ranks_text(job))]
    if job.missing:
        result.append(
            ("", "missing", f"rank{'s' * (len(job.missing) > 1)} {numbers_text(job.missing)}")
        )
    return result + [("", label, _first_few(lines)) for label, lines in (
        ("short", job.short), ("damaged", job.damaged),
        ("left out", [f"{one.host} {one.reason}" for one in job.left_out]), ("note", job.notes),
    ) if lines]  # fmt: skip


def _ranks_text(job: Job) -> str:
    members, processes = len(job.members), len(job.firsts)
    machines = len({one.machine for one in job.members if one.machine})
    of = f" of {job.world_size}" if job.world_size else ""
    what = f"{processes}{of}" + (f" processes with {members} devices" * (members > processes))
    where = f" on {counted(machines, 'machine')}" if machines else ""
    steps = f", {counted(len(job.steps), 'step')}" if job.steps else ""
    return f"{what}{where}{steps}"


def _first_few(lines: Sequence[str]) -> str:
    more = f" and {len(lines) - 2} more" if len(lines) > 2 else ""
    return "; ".join(lines[:2]) + more


def groups_line(groups: Sequence[Group]) -> list[Line]:
    """How many groups of which kind there are, and of how many ranks; nothing without any."""
    many = Counter((one.kind, len(one.ranks)) for one in groups if one.kind and one.ranks)
    text = ", ".join(
        f"{counted(count, f'{kind} parallel group')} of {size}"
        for (kind, size), count in sorted(many.items())
    )
    return [("", "groups", text)] if text else []


def job_part(job: Job, groups: Sequence[Group] | None = None) -> dict[str, Any]:
    """``job`` in the JSON of all that is said of one; without ``groups`` these are by name."""
    named = groups_of(job) if groups is None else groups
    return {
        "ranks": len(job.firsts),
        "world_size": job.world_size,
        "missing": list(job.missing),
        "short": list(job.short),
        "damaged": list(job.damaged),
        "left_out": [asdict(one) for one in job.left_out],
        "notes": list(job.notes),
        "groups": [asdict(one) | {"ranks": list(one.ranks)} for one in named],
    }


def warnings_of(job: Job) -> list[dict[str, Any]]:
    """The kinds of warnings of all ranks, with how many have each."""
    by_kind: dict[str, list[tuple[Member, str]]] = {}
    for member in job.firsts:
        for kind, detail in member.profile.warnings.items():
            by_kind.setdefault(kind, []).append((member, detail))
    return [
        {"kind": kind, "ranks": len(rows), "detail": rows[0][1]} for kind, rows in by_kind.items()
    ]
