"""In how much memory the recorded program runs, against what it may need."""

from __future__ import annotations

from dataclasses import replace

from peakline.check.verdict import Check, Limits, held, unmeasured
from peakline.memory.fit.answer import fits_of
from peakline.memory.fit.model import Fit, NoFit
from peakline.tables import Profile
from peakline.text import size_text

_NAME = "limit"


def limit_checks(profile: Profile, limits: Limits, allocator: str | None) -> list[Check]:
    """The limit from which on all fit, for each allocator; none without one that is allowed.

    What cannot be replayed, or is no proof of the recorded addresses, fails and says why.
    """
    allowed = limits.max_limit_bytes
    if allowed is None:
        return []
    found, failed = fits_of(profile, allocator=allocator)
    if not found and not failed:
        return [unmeasured(_NAME, allocator or "", allowed, "no memory events in this profile")]
    checks = [*(_held(one, allowed) for one in found), *(_not(one, allowed) for one in failed)]
    return [replace(check, unit=limits.unit_of(_NAME)) for check in checks]


def _held(fit: Fit, allowed: int) -> Check:
    safe = fit.limits.safe_from
    if not fit.proof.proved:
        return unmeasured(_NAME, fit.allocator, allowed, fit.proof.reason)
    if safe is None:
        return unmeasured(_NAME, fit.allocator, allowed, "no limit was found that fits")
    how = "exact for the recorded order" if fit.exact else f"a bound: {fit.reason}"
    reason = f"it runs from {size_text(safe)} on, {size_text(allowed)} allowed ({how})"
    check = held(_NAME, fit.allocator, safe, allowed, reason)
    if check.passed or not any(low <= allowed <= (high or low) for low, high in fit.limits.fits):
        return check
    return replace(check, reason=f"{check.reason}; at that limit it runs, with a little more not")


def _not(one: NoFit, allowed: int) -> Check:
    return unmeasured(_NAME, one.allocator, allowed, one.reason)
