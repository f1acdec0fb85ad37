"""In how much memory the recorded program runs, and with which settings, in a report."""

from __future__ import annotations

from peakline.memory.fit.answer import fit_in
from peakline.memory.fit.choice import NoFit
from peakline.memory.fit.model import Fit
from peakline.render.document.fit import alternatives_table, fit_facts
from peakline.render.html.context import Part
from peakline.render.html.html import Markup, join, tag

_MOST_RECORDS = 200_000
_MOST_EVENTS = 4_000_000
"""A report takes no longer for it than for the rest: `peakline fit` searches on."""


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
    rows = part.history.rows_of(part.number).size
    if not 0 < rows <= _MOST_RECORDS or answer.step is not None:
        return None
    one = fit_in(part.context.profile, part.history, part.number, most_events=_MOST_EVENTS)
    return None if isinstance(one, NoFit) or not one.proof.proved else one
