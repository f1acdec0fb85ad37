"""The ``summary`` tool: memory and time in short, and what to fix first.

What ``peakline summary --json`` says, small enough to be requested for every session of a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from peakline import document, findings, jobs
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json

if TYPE_CHECKING:
    from peakline.jobs.contribution import Contribution
    from peakline.tables import Profile

    _Part = tuple[dict[str, object], Contribution]


class SummaryParameters(Parameters):
    """Which part of it."""

    part: Literal["all", "facts", "memory", "time", "findings"] = parameter(
        "all",
        description="facts: the profile; memory: the peaks; time: steps, devices and ops; "
        "findings: what to fix first, and warnings; each comes as soon as it is known",
    )


def _document(profile: Profile, part: str) -> dict[str, object]:
    """With the file's name alone for its path: where a server keeps it is nobody's business."""
    name = profile.path.rstrip("/").rpartition("/")[2]
    if part == "all":
        return findings.summary_document(profile, path=name)
    return findings.summary_part(profile, part, path=name)


def _run(profile: Profile, parameters: SummaryParameters, _format: str) -> bytes:
    return compact_json(_document(profile, parameters.part))


def _partial(profile: Profile, parameters: SummaryParameters) -> _Part:
    """What one host gives: its document, and what it gives to who is waited for."""
    whole = parameters.part in {"all", "time"}
    contribute = jobs.time_of if whole else jobs.identity_of
    return _document(profile, parameters.part), contribute(profile)


def _combine(
    parts: Sequence[tuple[str, _Part]], _parameters: SummaryParameters, _format: str
) -> bytes:
    answer = jobs.answer_of([(host, one) for host, (_, one) in parts])
    hosts = [{"host": host, **own} for host, (own, _) in parts]
    return compact_json({"hosts": hosts} | document.waited_for(answer))


TOOL = Tool(
    name="summary",
    doc="Memory and time in short, and what to fix first (as `peakline summary`).",
    parameters=SummaryParameters,
    formats=("json",),
    shows=(("events",), ("op_runs",), ("allocator_events",), ("oom_reports",)),
    run=_run,
    partial=_partial,
    combine=_combine,
)
