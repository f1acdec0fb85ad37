"""What memory is made of at any time, and at every moment that comes near the maximum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from peakline.analysis.growth_kernels import live_at_marks
from peakline.analysis.peak import AllocatorPeak, find_peaks
from peakline.analysis.savings_kernels import high_moments
from peakline.analysis.signatures import History

__all__ = ["HighMoment", "find_high_moments", "memory_at"]

NEAR = 0.95
"""A moment that takes this share of the peak or more is near it."""
APART = 0.85
"""Two such moments are separate when less than this share of the peak is in use between them."""
ALIKE = 0.9
"""Moments are alike when they have this share of their live bytes in common, by signature."""
_MOMENTS = 256
"""So many moments are compared."""


@dataclass(frozen=True)
class HighMoment:
    """A moment near the peak: what it was made of, and when memory was made of the same.

    ``memory`` is the fullest of them, explained like the peak (`AllocatorPeak`: its peak fields are
    those of the moment), ``times_ps`` when each of them was, ``steps`` the steps of their records.
    """

    memory: AllocatorPeak
    times_ps: tuple[int, ...]
    steps: tuple[int | None, ...]


def memory_at(
    history: History, time_ps: int, *, allocator: str | None = None
) -> tuple[AllocatorPeak, ...]:
    """What every allocator held at ``time_ps``, explained to the byte like the peak.

    That is after the last record at or before that time which says how much is in use. An
    allocator that has none by then is left out. Raises NotFoundError for an unknown allocator.
    """
    until = int(np.searchsorted(history.events.array("time_ps"), time_ps, "right"))
    chosen = np.zeros(history.rows, np.bool_)
    for number in range(len(history.lifetimes.allocators)):
        own = history.measured[:until] & (history.lifetimes.allocator[:until] == number)
        if own.any():
            chosen[until - 1 - int(own[::-1].argmax())] = True
    return find_peaks(
        history.events, allocator=allocator, eligible=chosen, lifetimes=history.lifetimes
    )


def find_high_moments(history: History, allocator: int, *, most: int = 5) -> tuple[HighMoment, ...]:
    """The moments of one allocator that come near its peak, those made of the same put together.

    ``allocator`` is its number in ``history.lifetimes.allocators``; at most ``most`` different
    ones are explained, the fullest first.
    """
    own = history.rows_of(allocator)
    mine = own[history.measured[own]]
    if not mine.size:
        return ()
    used = history.used
    peak = int(used[mine].max())
    rows = np.zeros(_MOMENTS, np.int64)
    found = high_moments(
        own,
        used,
        history.measured,
        int(np.ceil(NEAR * peak)),
        int(np.ceil(APART * peak)),
        rows,
    )
    rows = rows[: min(found, _MOMENTS)]
    live = _composition(history, allocator, rows)
    left = sorted(range(rows.size), key=lambda k: (-int(used[rows[k]]), k))
    groups: list[list[int]] = []
    while left and len(groups) < most:
        first = left[0]
        alike = [k for k in left if _in_common(live[:, first], live[:, k]) >= ALIKE]
        groups.append([first, *(k for k in alike if k != first)])
        left = [k for k in left if k not in groups[-1]]
    return tuple(_explain(history, allocator, rows, group) for group in groups)


def _explain(
    history: History, allocator: int, rows: npt.NDArray[np.int64], group: list[int]
) -> HighMoment:
    chosen = np.zeros(history.rows, np.bool_)
    chosen[rows[group[0]]] = True
    (memory,) = find_peaks(
        history.events,
        allocator=history.lifetimes.allocators[allocator],
        eligible=chosen,
        lifetimes=history.lifetimes,
    )
    events = history.events
    own = rows[sorted(group)]
    known = events.is_valid("step_id")[own].tolist()
    steps = events.array("step_id")[own].tolist()
    return HighMoment(
        memory,
        tuple(events.array("time_ps")[own].tolist()),
        tuple(step if ok else None for step, ok in zip(steps, known, strict=True)),
    )


def _composition(
    history: History, allocator: int, rows: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Bytes that live after each of ``rows``, per signature of the allocator."""
    signatures = history.signatures
    own = np.flatnonzero(signatures.allocator == allocator)
    place_of = np.full(len(signatures), -1, np.int32)
    place_of[own] = np.arange(own.size, dtype=np.int32)
    live = np.zeros((own.size, rows.size), np.int64)
    live_at_marks(
        history.lifetimes.kind,
        history.lifetimes.begin,
        signatures.codes,
        history.allocated,
        rows + 1,
        place_of,
        live,
    )
    return live


def _in_common(one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]) -> float:
    """The share of the larger's bytes that both have, by signature; 1 where neither has any."""
    larger = max(int(one.sum()), int(other.sum()))
    return float(np.minimum(one, other).sum()) / larger if larger else 1.0
