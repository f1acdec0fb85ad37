"""In how much memory a program runs that nearly filled it, or more than filled it."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from peakline.memory.fit.model import Fit
from peakline.memory.peak import AllocatorPeak
from peakline.memory.signatures import History
from peakline.tables import Profile

SCARCE = 0.7
"""Memory is scarce where the peak takes this share of the capacity or more, or a request failed."""
_MOST_RECORDS = 200_000
"""A replay of more takes longer than the rest of the answer: `peakline fit` says it, ..."""
_MOST_EVENTS = 4_000_000
"""... as it does where the search over limits takes longer."""
_MOST = 4


def scarce_fits(
    profile: Profile,
    history: History,
    peaks: Iterable[AllocatorPeak],
    failed: Collection[str],
) -> tuple[Fit, ...]:
    """The answers for allocators whose memory is scarce; ``failed`` are those that say so."""
    found: list[Fit] = []
    for peak in peaks:
        capacity = peak.capacity_bytes or 0
        is_scarce = peak.allocator in failed or 0 < SCARCE * capacity <= peak.peak_bytes
        if not is_scarce or len(found) == _MOST:
            continue
        one = quick_fit(profile, history, history.lifetimes.allocators.index(peak.allocator))
        if one is not None:
            found.append(one)
    return tuple(found)


def quick_fit(profile: Profile, history: History, number: int) -> Fit | None:
    """The answer for one allocator where it takes no longer than other answers; None where it would
    or where nothing can be replayed. Raises as `check_deadline`.
    """
    if not 0 < history.rows_of(number).size <= _MOST_RECORDS:
        return None
    from peakline.memory.fit.answer import fit_in
    from peakline.memory.fit.model import NoFit

    found = fit_in(profile, history, number, most_events=_MOST_EVENTS)
    return None if isinstance(found, NoFit) else found
