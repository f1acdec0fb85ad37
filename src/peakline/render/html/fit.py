"""In how much memory the recorded program runs, and with which settings, in a report."""

from __future__ import annotations

from peakline.memory.fit.answer import quick_fit
from peakline.memory.fit.model import Fit
from peakline.render.document.fit import alternatives_table, fit_facts
from peakline.render.html.context import Part
from peakline.render.html.html import Markup, join, tag


def fit(part: Part) -> Markup | None:
    """What the replay says; nothing where the recording does not prove itself, unless memory is
    scarce.
    """
    found = _found(part)
    if found is None:
        return None
    tables = part.context.tables
    words = "By a replay of the recorded allocations (peakline fit)."
    shown = [tag("p", words), tables.facts("what the replay says", fit_facts(found))]
    if found.alternatives:
        shown.append(tables.write(alternatives_table(found).trimmed()))
    return join(shown)


def _found(part: Part) -> Fit | None:
    answer = part.context.answer
    scarce = [one for one in answer.fits if one.allocator == part.peak.allocator]
    if scarce:
        return scarce[0]
    if answer.step is not None:
        return None
    found = quick_fit(part.context.profile, part.history, part.number)
    return found if found is not None and found.proof.proved else None
