"""What a notebook shows of one finding, of several, and of other values of one kind."""

from __future__ import annotations

from collections.abc import Sequence

from peakline.document import limits
from peakline.document.finding import evidence
from peakline.document.wording import NOTHING_NOTABLE
from peakline.findings.finding import Finding
from peakline.findings.ranking import Findings
from peakline.render.notebook.pieces import (
    drawn,
    facts,
    headed,
    line,
    listed,
    markup_line,
    rows_table,
    shown,
)
from peakline.shown import Several


def finding_parts(finding: Finding) -> list[str]:
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


def findings_parts(findings: Findings) -> list[str]:
    """The answer of `Profile.findings`."""
    if not findings:
        return [line(NOTHING_NOTABLE)]
    return [listed_findings(findings, "To fix first", most=limits.FINDINGS.notebook)]


def several_parts(values: Several[object]) -> list[str]:
    """A tuple that is a part of an answer: findings as such, else a row for each value."""
    findings = [one for one in values if isinstance(one, Finding)]
    if findings:
        return [listed_findings(findings, most=limits.FINDINGS.notebook)]
    if not values:
        return [line("none", quiet=True)]
    return [headed(type(values[0]).__name__), *rows_table(values.to_arrow())]
