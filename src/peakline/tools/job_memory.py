"""The ``job_memory`` tool: the peaks of all ranks of a job, and what those that differ hold."""

from __future__ import annotations

from collections.abc import Sequence

from peakline import document, jobs
from peakline.jobs.contribution import Contribution
from peakline.toolbox.parameters import Parameters
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json


class JobMemoryParameters(Parameters):
    """It has none."""


def _combine(
    parts: Sequence[tuple[str, Contribution]], _parameters: JobMemoryParameters, _format: str
) -> bytes:
    return compact_json(document.job_memory_document(jobs.answer_of(parts)))


TOOL = Tool(
    name="job_memory",
    doc="Peaks of all ranks by category, with headroom, and what the fullest hold differently.",
    parameters=JobMemoryParameters,
    formats=("json",),
    shows=(("allocator_events",),),
    parts_of="job",
    combine=_combine,
)
