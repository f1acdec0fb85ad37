"""What a notebook shows of several values of one kind."""

from __future__ import annotations

from peakline.document import limits
from peakline.findings.finding import Finding
from peakline.render.notebook.finding import listed_findings
from peakline.render.notebook.pieces import headed, line, rows_table
from peakline.shown import Several


def parts(values: Several[object]) -> list[str]:
    """A tuple that is a part of an answer: findings as such, else a row for each value."""
    findings = [one for one in values if isinstance(one, Finding)]
    if findings:
        return [listed_findings(findings, most=limits.FINDINGS.notebook)]
    if not values:
        return [line("none", quiet=True)]
    return [headed(type(values[0]).__name__), *rows_table(values.to_arrow())]
