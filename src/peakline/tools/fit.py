"""The ``fit`` tool: in how much memory the recorded program runs, and with which settings.

Its answer is that of ``peakline fit --json``, of several ranks for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from peakline import document, memory
from peakline.jobs.fitted import RankFit, rank_fit
from peakline.jobs.judged import Judged, by_rank, judged_of
from peakline.memory.fit.model import Question
from peakline.tables import Profile
from peakline.text import parse_size
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json

_LONGEST = 1000


class FitParameters(Parameters):
    """The parameters."""

    allocator: str | None = parameter(None, max_length=_LONGEST, description="only this allocator")
    limit: tuple[str, ...] = parameter(
        (), description="what happens under these limits, in bytes or as 8GiB, 512MB"
    )
    settings: tuple[str, ...] = parameter(
        (), description="settings of the allocator, such as allow_growth=false"
    )
    batch: str | None = parameter(
        None,
        max_length=40,
        description="the recorded batch size and another one, 32:64: an estimate. 32: the largest "
        "that fits",
    )


def _question(parameters: FitParameters) -> Question:
    limits = [parse_size(text) for text in parameters.limit]
    return memory.question_of(limits, parameters.settings, parameters.batch)


def _partial(profile: Profile, parameters: FitParameters) -> Judged[RankFit]:
    one = rank_fit(profile, _question(parameters), parameters.allocator)
    return judged_of(profile, one)


def _combine(
    parts: Sequence[tuple[str, Judged[RankFit]]], _parameters: FitParameters, _format: str
) -> bytes:
    return compact_json(document.job_fit_document(*by_rank(parts)))


def _run(profile: Profile, parameters: FitParameters, _output_format: str) -> bytes:
    question = _question(parameters)
    fits, failed = memory.fits_of(profile, question, allocator=parameters.allocator)
    return compact_json(
        {
            "allocators": [one.as_json() for one in fits],
            "not_replayed": [vars(one) for one in failed],
        }
    )


TOOL = Tool(
    name="fit",
    doc="In how much memory the recorded program runs, and with which settings (docs/fit.md).",
    parameters=FitParameters,
    formats=("json",),
    shows=(("allocator_events",),),
    run=_run,
    partial=_partial,
    combine=_combine,
)
