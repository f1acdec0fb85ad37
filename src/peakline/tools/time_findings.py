"""The ``time_findings`` tool: where the time of the steps went, and what deserves attention.

What ``peakline steps --json`` says, per host.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from peakline import findings
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool

if TYPE_CHECKING:
    from peakline.tables import Profile


class TimeFindingsParameters(Parameters):
    """The parameters; text is accepted for every value."""

    kind: str | None = parameter(None, description="only findings of this kind")
    min_severity: Literal["info", "warning", "error"] = parameter(
        "info", description="only findings as severe as this: info, warning or error"
    )
    steps: bool = parameter(default=True, description="the steps one by one too")


def _partial(profile: Profile, parameters: TimeFindingsParameters) -> dict[str, Any]:
    answer = findings.answer_time(profile)
    document: dict[str, Any] = dict(answer.as_json())
    document["findings"] = [
        result.as_json()
        for result in answer.findings
        if result.is_at_least(parameters.min_severity) and parameters.kind in {None, result.kind}
    ]
    if not parameters.steps:
        del document["steps"]
    return document


def _combine(
    parts: Sequence[tuple[str, dict[str, Any]]], _parameters: TimeFindingsParameters, _format: str
) -> bytes:
    shown = {"hosts": [{"host": host, **result} for host, result in parts]}
    return (json.dumps(shown, indent=1) + "\n").encode()


TOOL = Tool(
    name="time_findings",
    doc="Where the steps' time went and what stands out, per host (as `peakline steps`).",
    parameters=TimeFindingsParameters,
    formats=("json",),
    shows=(("events",), ("op_runs",)),
    partial=_partial,
    combine=_combine,
)
