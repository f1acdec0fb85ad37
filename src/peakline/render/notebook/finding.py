"""What a notebook shows of a finding, and of several."""

from __future__ import annotations

from collections.abc import Sequence

from peakline.document import limits
from peakline.document.finding import evidence
from peakline.findings.finding import Finding
from peakline.render.notebook.pieces import drawn, facts, line, listed, markup_line, shown


def parts(finding: Finding) -> list[str]:
    """One finding: its title, what to do about it, the numbers behind it."""
    tables, numbers = evidence(finding, {})
    return [
        markup_line(f"<strong>{shown(finding.severity)}</strong>: {shown(finding.title)}"),
        line(finding.suggestion, quiet=True) if finding.suggestion else "",
        *map(drawn, tables),
        facts(numbers[: limits.FACTS.notebook]),
    ]


def listed_findings(
    findings: Sequence[Finding], title: str = "Findings", most: int = 3, rest: str = ""
) -> str:
    """Findings as a list, the first ``most`` with what to do about them; nothing without any."""
    items = []
    for place, one in enumerate(findings[: limits.ROWS.notebook + 1]):
        item = f"<em>{shown(one.severity)}</em>: {shown(one.title)}"
        if place < most and one.suggestion:
            item += f'<div style="opacity:.7">{shown(one.suggestion, 600)}</div>'
        items.append(item)
    items += [""] * (len(findings) - len(items))
    return listed(title, items, limits.ROWS.notebook, rest)
