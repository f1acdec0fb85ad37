"""What a notebook shows of limits held against a profile: what ``peakline check`` prints."""

from __future__ import annotations

from peakline.check.verdict import Checks
from peakline.document import limits
from peakline.document.check import behind, checks_table, outcome
from peakline.render.notebook.pieces import drawn, line


def parts(checks: Checks) -> list[str]:
    """The answer of `Profile.check`."""
    found = [line(outcome(checks)), drawn(checks_table(checks, {}), limits.CHECKS.notebook)]
    for one in [one for one in checks if not one.passed][: limits.BEHIND.notebook]:
        found += [line(one.reason, quiet=True), drawn(behind(one).without_empty())]
    return found
