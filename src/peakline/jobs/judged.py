"""Answers that are made where a profile is read, put together by rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from peakline.jobs.contribution import Contribution, identity_of
from peakline.jobs.members import Job, Member, job_of
from peakline.tables import Profile

_T = TypeVar("_T")


@dataclass(frozen=True)
class Judged(Generic[_T]):
    """What is said of one profile: ``result``, with who it is in a job."""

    profile: Contribution
    result: _T


def judged_of(profile: Profile, result: _T) -> Judged[_T]:
    """What is said of a profile, with who it is."""
    return Judged(identity_of(profile), result)


def by_rank(parts: Sequence[tuple[str, Judged[_T]]]) -> tuple[Job, list[tuple[Member, _T]]]:
    """The job that profiles are of, and what is said of each rank, in their order; ``parts`` are
    what a host is called, and what is said of it.
    """
    job = job_of([(host, one.profile) for host, one in parts])
    results = {id(one.profile): one.result for _, one in parts}
    return job, [(member, results[id(member.profile)]) for member in job.firsts]
