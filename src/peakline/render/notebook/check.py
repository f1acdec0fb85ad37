"""What a notebook shows of a limit that was held against a profile."""

from __future__ import annotations

from peakline.check.verdict import Check
from peakline.document.check import behind, checks_table
from peakline.render.notebook.pieces import drawn, line


def parts(check: Check) -> list[str]:
    """One of the answers of `Profile.check`."""
    return [
        drawn(checks_table([check], {})),
        line(check.reason, quiet=True),
        drawn(behind(check).without_empty()),
    ]
