"""The outcome of a check as a person reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from peakline.document.check import behind, checks_table, name_of, outcome
from peakline.render.terminal.screen import Shown, Text, drawn, grid_of, show

if TYPE_CHECKING:
    from peakline.api import Profile
    from peakline.check.verdict import Check


_STYLES = {"fail": "bold red", "not compared": "yellow"}


def print_checks(
    profile: Profile,
    checks: Sequence[Check],
    names: Mapping[str, str],
    baseline: str | None,
    origin: str = "",
) -> None:
    """Print every check, then why each that failed did, and what is behind it; ``origin`` is where
    the limits came from.
    """
    against = "" if baseline is None else f", baseline {baseline}"
    style = "bold" if all(check.passed for check in checks) else "bold red"
    parts: list[Shown] = [
        Text(outcome(checks), style),
        Text(f"{profile.path} ({profile.format}){against}", "dim", 2),
    ]
    parts += [Text(origin, "dim", 2)] if origin else []
    if checks:
        parts += ["", grid_of(checks_table(checks, names), styles=_STYLES)]
    for check in checks:
        if check.verdict != "pass":
            style = "bold" if check.passed else "bold red"
            line = f"{check.verdict}: {name_of(check, names)}: {check.name}: {check.reason}"
            parts += ["", Text(line, style, 2)]
            parts += [drawn(behind(check).trimmed())] if check.rows else []
    show(parts)
