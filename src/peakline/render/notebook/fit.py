"""What a notebook shows of how a program fits into memory."""

from __future__ import annotations

from peakline.document.fit import alternatives_table, batch_facts, fit_facts, pins_table
from peakline.memory.fit.model import Fit
from peakline.render.notebook.pieces import drawn, facts, headed
from peakline.text import allocator_text


def parts(fit: Fit) -> list[str]:
    """One of the answers of `Profile.fit`."""
    found = [headed(allocator_text(fit.allocator)), facts([*fit_facts(fit), *batch_facts(fit)])]
    if fit.alternatives:
        found.append(drawn(alternatives_table(fit).trimmed()))
    return [*found, drawn(pins_table(fit))]
