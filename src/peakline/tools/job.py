"""The ``job`` tool: one answer for all ranks of a session, or of a folder of their profiles."""

from __future__ import annotations

from collections.abc import Sequence

from peakline import document, jobs
from peakline.jobs.contribution import Contribution
from peakline.tables import Profile
from peakline.toolbox.parameters import Parameters
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json


class JobParameters(Parameters):
    """It has none."""


def _partial(profile: Profile, _parameters: JobParameters) -> Contribution:
    return jobs.contribution_of(profile)


def _combine(
    parts: Sequence[tuple[str, Contribution]], _parameters: JobParameters, _format: str
) -> bytes:
    return compact_json(document.job_document(jobs.answer_of(parts)))


TOOL = Tool(
    name="job",
    doc="One answer for all ranks: who keeps the others waiting and why, and whose memory differs.",
    parameters=JobParameters,
    formats=("json",),
    shows=(("events",), ("op_runs",), ("allocator_events",)),
    partial=_partial,
    combine=_combine,
)
