"""The ``check`` tool: limits that all ranks of a job must pass, judged by the worst of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from peakline import document
from peakline.check.question import limits_of_texts
from peakline.check.ranks import RankChecks, rank_checks
from peakline.jobs.judged import Judged, by_rank, judged_of
from peakline.tables import Profile
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json


def _limit(description: str) -> str | None:
    return parameter(None, max_length=40, description=description)


class CheckParameters(Parameters):
    """The parameters: the limits of ``peakline check``."""

    max_peak: str | None = _limit("the most that may be in use: 10MB, 1.5GiB")
    max_growth_per_step: str | None = _limit("the most that every step may leave for good")
    max_fragmentation: str | None = _limit("the most of the free memory outside its largest piece")
    max_program_peak: str | None = _limit("the most that a compiled program may need")
    max_limit: str | None = _limit("the memory in which the recorded program must run")
    max_step_time: str | None = _limit("the most that the median step may take: 150ms")
    max_p95_step_time: str | None = _limit("the most that 95% of the steps may take")
    max_input_wait: str | None = _limit("the most of the steps' time that waits for input: 10%")
    max_compile: str | None = _limit("the most of the steps' time that compiles: 5%, 20ms")
    max_idle: str | None = _limit("the most of the steps' time in which the device is idle")
    allocator: str | None = parameter(None, max_length=1000, description="only this allocator")


def _partial(profile: Profile, parameters: CheckParameters) -> Judged[RankChecks]:
    given = {
        field.name.replace("_", "-"): getattr(parameters, field.name)
        for field in fields(parameters)
        if field.name != "allocator"
    }
    limits = limits_of_texts({key: text for key, text in given.items() if text is not None})
    return judged_of(profile, rank_checks(profile, limits, parameters.allocator))


def _combine(
    parts: Sequence[tuple[str, Judged[RankChecks]]], _parameters: CheckParameters, _format: str
) -> bytes:
    return compact_json(document.job_check_document(*by_rank(parts)))


TOOL = Tool(
    name="check",
    doc="Limits on memory and time, judged by the rank that breaks each most.",
    parameters=CheckParameters,
    formats=("json",),
    shows=(("allocator_events",), ("steps",), ("events",)),
    partial=_partial,
    combine=_combine,
)
