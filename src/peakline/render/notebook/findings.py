"""What a notebook shows of all findings of a profile."""

from __future__ import annotations

from peakline.document import limits
from peakline.document.wording import NOTHING_NOTABLE
from peakline.findings.ranking import Findings
from peakline.render.notebook.finding import listed_findings
from peakline.render.notebook.pieces import line


def parts(findings: Findings) -> list[str]:
    """The answer of `Profile.findings`."""
    if not findings:
        return [line(NOTHING_NOTABLE)]
    return [listed_findings(findings, "To fix first", most=limits.FINDINGS.notebook)]
