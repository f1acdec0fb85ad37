"""The ``memory_findings`` tool: what deserves attention about memory, and the analyses behind it.

The findings are those of ``peakline memory``, word by word.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from peakline import document, findings
from peakline.findings.catalogue import kind_names
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json

if TYPE_CHECKING:
    from peakline.tables import Profile

__all__ = ["KINDS", "TOOL", "MemoryFindingsParameters"]

KINDS = kind_names("memory")
"""Every kind of finding there is."""
if TYPE_CHECKING:
    Kind = str
else:
    Kind = Literal[KINDS]

_DETAILS = ("savings", "growth", "fragmentation", "churn")


class MemoryFindingsParameters(Parameters):
    """The parameters."""

    allocator: str | None = parameter(None, description="only this allocator")
    step: str | None = parameter(
        None, description="about the largest use while this step ran: its id, or its name"
    )
    kind: Kind | None = parameter(None, description="only findings of this kind")
    min_severity: Literal["info", "warning", "error"] = parameter(
        "info", description="only findings as severe as this: info, warning or error"
    )


def _partial(profile: Profile, parameters: MemoryFindingsParameters) -> dict[str, list[Any]]:
    """One host's findings and the rows of each analysis."""
    answer = findings.answer_memory(profile, allocator=parameters.allocator, step=parameters.step)
    rows = [
        result.as_json()
        for result in answer.findings
        if result.is_at_least(parameters.min_severity) and parameters.kind in {None, result.kind}
    ]
    result: dict[str, list[Any]] = {"findings": [*rows], **{name: [] for name in _DETAILS}}
    for details, peak in zip(answer.details, answer.allocators, strict=True):
        texts = document.sentences(details, peak, moment=answer.moment)
        for name, value in document.details_json(details, peak).items():
            entries: list[Any] = value if isinstance(value, list) else [value] if value else []
            for place, entry in enumerate(entries):
                words = {"sentence": "".join(texts[name][place : place + 1])}
                result[name].append({"allocator": peak.allocator} | entry | words)
    return result


def _run(profile: Profile, parameters: MemoryFindingsParameters, output_format: str) -> bytes:
    result = _partial(profile, parameters)
    if output_format == "markdown":
        return document.markdown(result["findings"]).encode()
    return compact_json(result)


def _combine(
    parts: Sequence[tuple[str, dict[str, list[Any]]]],
    _parameters: MemoryFindingsParameters,
    output_format: str,
) -> bytes:
    """One answer of those of several hosts: a finding that many have is given once.

    Findings of two hosts are the same when kind, severity, allocator and what was allocated are,
    in Markdown when they are in the same words. The words are those of the first host; ``hosts``
    names all that have it, and ``evidence_by_host`` has the numbers of each. Details have their
    ``host``.
    """
    if output_format == "markdown":
        return _markdown_of_hosts(parts)
    results: dict[tuple[object, ...], dict[str, Any]] = {}
    result: dict[str, list[object]] = {"findings": [], **{name: [] for name in _DETAILS}}
    for host, answer in parts:
        for finding in answer["findings"]:
            whole = results.setdefault(
                _identity(finding), finding | {"hosts": [], "evidence_by_host": {}}
            )
            if host not in whole["hosts"]:
                whole["hosts"].append(host)
                whole["evidence_by_host"][host] = finding["evidence"]
        for name in _DETAILS:
            result[name] += [{"host": host} | entry for entry in answer[name]]
    result["findings"] += results.values()
    return compact_json(result)


_SAME = ("allocator", "cause", "op", "region_type", "data_type", "shape", "buffer_bytes")


def _identity(finding: dict[str, Any]) -> tuple[object, ...]:
    evidence = finding["evidence"]
    named = (json.dumps(evidence.get(name)) for name in _SAME)
    return finding["kind"], finding["severity"], *named


def _markdown_of_hosts(parts: Sequence[tuple[str, dict[str, list[Any]]]]) -> bytes:
    hosts: dict[str, list[str]] = {}
    for host, result in parts:
        for finding in result["findings"]:
            hosts.setdefault(document.markdown([finding]), []).append(host)
    return document.markdown_of_hosts(hosts).encode()


TOOL = Tool(
    name="memory_findings",
    doc="What deserves attention about memory (leaks, fragmentation, failed allocations), "
    "and what would lower the peak.",
    parameters=MemoryFindingsParameters,
    formats=("json", "markdown"),
    shows=(("allocator_events",), ("oom_reports",)),
    run=_run,
    partial=_partial,
    combine=_combine,
)
