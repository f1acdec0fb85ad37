"""Findings about memory on a person's screen: what each says, what to do, the rows behind it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from peakline.document.finding import pieces_text, screen_table
from peakline.render.terminal.headline import severity_style
from peakline.render.terminal.screen import Shown, Text, drawn, indented

if TYPE_CHECKING:
    from peakline.findings.finding import Finding
    from peakline.findings.memory_answer import MemoryAnswer
    from peakline.memory.fragmentation.holes import Fragmentation


def finding_parts(
    findings: Iterable[Finding],
    answer: MemoryAnswer,
    labels: Mapping[int, str],
    names: Mapping[str, str],
) -> list[Shown]:
    """Findings of ``answer``; ``labels`` are the names of steps, ``names`` of allocators."""
    pools = {detail.allocator: detail.fragmentation for detail in answer.details}
    parts: list[Shown] = []
    for finding in findings:
        title = f"{finding.severity}: {finding.title_with(names)}"
        parts += ["", Text(title, severity_style(finding.severity), 2)]
        parts.append(indented(finding.suggestion))
        pool = pools.get(str(finding.evidence.get("allocator")))
        parts += evidence_part(finding, pool, labels)
    return parts


def evidence_part(
    finding: Finding, fragmentation: Fragmentation | None, labels: Mapping[int, str]
) -> list[Shown]:
    """The rows behind a finding where there are several, and how the pool lay in pieces."""
    parts: list[Shown] = []
    if finding.kind == "fragmentation" and fragmentation is not None:
        parts += [indented(Text(line)) for line in pieces_text(fragmentation)]
    table = screen_table(finding, labels)
    return parts if table is None else [*parts, drawn(table)]
