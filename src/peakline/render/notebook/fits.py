"""What a notebook shows of how programs fit into memory: what ``peakline fit`` prints."""

from __future__ import annotations

from peakline.document import limits
from peakline.document.fit import NOTHING_TO_REPLAY, fit_headline, no_fit_facts
from peakline.document.model import more_text
from peakline.memory.fit.model import Fits
from peakline.render.notebook import fit
from peakline.render.notebook.pieces import line


def parts(fits: Fits) -> list[str]:
    """The answer of `Profile.fit`."""
    if not fits and not fits.failed:
        return [line(NOTHING_TO_REPLAY)]
    found = [line(fit_headline(fits))] if fits else []
    for one in fits[: limits.FITS.notebook]:
        found += fit.parts(one)
    left = len(fits) - limits.FITS.notebook
    found.append(line(more_text(left, where=": to_pandas()"), quiet=True) if left > 0 else "")
    for fact in no_fit_facts(fits.failed[: limits.FITS.notebook]):
        found.append(line(f"{fact.label} {fact.text}"))
    return found
