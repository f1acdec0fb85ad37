"""How a program fits into memory, as a person reads it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from peakline.memory.fit.model import Fit, NoFit
from peakline.render.document.fit import (
    NOTHING_TO_REPLAY,
    alternatives_table,
    batch_facts,
    fit_facts,
    fit_headline,
    no_fit_facts,
    pins_table,
    together_fact,
)
from peakline.render.terminal.headline import headed
from peakline.render.terminal.screen import Text, drawn, drawn_facts, show
from peakline.text import allocator_text

if TYPE_CHECKING:
    from peakline.api import Profile


def print_fit(profile: Profile, fits: Sequence[Fit], failed: Sequence[NoFit]) -> None:
    """Print the answer for every allocator."""
    if not (fits or failed):
        show([Text(f"{profile.path}: {NOTHING_TO_REPLAY}", hang=2)])
        return
    parts = headed(fit_headline(fits), profile)
    for fit in fits:
        parts += ["", Text(allocator_text(fit.allocator), "bold")]
        parts.append(drawn_facts([*fit_facts(fit), *batch_facts(fit)]))
        if fit.alternatives:
            table = alternatives_table(fit)
            parts += ["", Text(table.title, "bold"), drawn(table.trimmed())]
        if fit.pins:
            table = pins_table(fit)
            parts += ["", Text(table.title, "bold"), drawn(table)]
    if failed:
        parts += ["", drawn_facts(no_fit_facts(failed))]
    show(parts)


def print_together(together: Iterable[dict[str, object]]) -> None:
    """Print what several recordings of a program say of each allocator."""
    for summed in together:
        show(["", Text(f"{summed['allocator']}, {together_fact(summed).text}", hang=2)])
