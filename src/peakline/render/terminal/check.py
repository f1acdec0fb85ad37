"""The outcome of a check as a person reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from peakline.render.document.check import behind, checks_table, name_of
from peakline.render.terminal.screen import drawn, show, table_of
from peakline.text import one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from peakline.api import Profile
    from peakline.check.verdict import Check


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
    parts: list[RenderableType] = [Text(one_line(f"{profile.path} ({profile.format}){against}"))]
    parts += [Text(one_line(origin))] if origin else []
    if checks:
        parts += ["", table_of(checks_table(checks, names))]
    for check in checks:
        if check.verdict != "pass":
            style = "bold" if check.passed else "bold red"
            line = f"{check.verdict}: {name_of(check, names)}: {check.name}: {check.reason}"
            parts += ["", Text(one_line(line), style=style)]
            parts += [drawn(behind(check).trimmed())] if check.rows else []
    show(parts)
