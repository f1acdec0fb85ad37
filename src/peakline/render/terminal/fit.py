"""How a program fits into memory, as a person reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from peakline.memory.fit.choice import NoFit
from peakline.memory.fit.model import Fit
from peakline.render.document.fit import (
    alternatives_table,
    batch_facts,
    fit_facts,
    no_fit_facts,
    pins_table,
)
from peakline.render.terminal.screen import drawn_facts, show
from peakline.render.terminal.time_parts import fitted_table, profile_line
from peakline.text import allocator_text, one_line

if TYPE_CHECKING:
    from rich.console import RenderableType

    from peakline.api import Profile


def print_fit(profile: Profile, fits: Sequence[Fit], failed: Sequence[NoFit]) -> None:
    """Print the answer for every allocator."""
    parts: list[RenderableType] = [profile_line(profile, moment=False)]
    for fit in fits:
        parts += ["", Text(one_line(allocator_text(fit.allocator)), style="bold")]
        parts.append(drawn_facts([*fit_facts(fit), *batch_facts(fit)]))
        if fit.alternatives:
            table = alternatives_table(fit)
            parts += ["", Text(table.title, style="bold"), fitted_table(table.trimmed())]
        if fit.pins:
            table = pins_table(fit)
            parts += ["", Text(table.title, style="bold"), fitted_table(table)]
    if failed:
        parts += ["", drawn_facts(no_fit_facts(failed))]
    show(parts)
