"""Whether a finding that two profiles share has become worse."""

from __future__ import annotations

from peakline.findings.catalogue import kinds
from peakline.findings.finding import SEVERITIES, Finding

WORSE = 1.25
"""A finding is worse when what it says would go is so many times as much, ..."""
AT_LEAST = 0.05
"""... of the time at least this share more."""


def is_worse(before: Finding, after: Finding) -> bool:
    """Whether ``after``, of the same kind and about the same, says more is lost than ``before``."""
    if SEVERITIES.index(after.severity) != SEVERITIES.index(before.severity):
        return SEVERITIES.index(after.severity) < SEVERITIES.index(before.severity)
    kind = kinds().get(after.kind)
    old, new = (one.evidence.get(kind.saves if kind else "") for one in (before, after))
    if not isinstance(old, int | float) or not isinstance(new, int | float):
        return False
    if kind is not None and kind.about == "time" and new - old < AT_LEAST:
        return False
    return new > WORSE * old
