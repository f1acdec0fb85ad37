"""What a notebook shows of limits held against a profile: what ``peakline check`` prints."""

from __future__ import annotations

from peakline.check.verdict import Checks
from peakline.render.document.check import behind, checks_table, outcome
from peakline.render.notebook.pieces import drawn, line

_MOST = 24
_BEHIND = 8


def parts(checks: Checks) -> list[str]:
    """The answer of `Profile.check`."""
    found = [line(outcome(checks)), drawn(checks_table(checks, {}), _MOST)]
    for one in [one for one in checks if not one.passed][:_BEHIND]:
        found += [line(one.reason, quiet=True), drawn(behind(one).without_empty())]
    return found
