"""The ``summary`` tool: memory and time in short, and what to fix first.

What ``peakline summary --json`` says, small enough to be requested for every session of a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Literal

from peakline import document, findings, timing
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.timing.steps.stragglers import HostSteps

    _Part = tuple[dict[str, object], HostSteps | None]


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
    """What one host gives: its document, and its steps where they are known."""
    return _document(profile, parameters.part), timing.host_steps_of(profile)


def _combine(
    parts: Sequence[tuple[str, _Part]], _parameters: SummaryParameters, _format: str
) -> bytes:
    from peakline.repository.names import newest_of_workers

    members = [(host, steps) for host, (_, steps) in parts if steps is not None]
    newest = newest_of_workers(members)
    straggler, text = document.hosts_text(newest)
    return compact_json(
        {
            "hosts": [{"host": host, **document} for host, (document, _) in parts],
            "straggler": None if straggler is None else asdict(straggler),
            "straggler_text": text,
        }
    )


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
