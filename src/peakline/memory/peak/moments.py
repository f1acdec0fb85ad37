"""What memory is made of at any time, and at every moment that comes near the maximum."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import Float64Array, Int32Array, Int64Array, IntpArray
from peakline.deadline import checked
from peakline.memory.crossings import find_crossing
from peakline.memory.peak.explained import AllocatorPeak, find_peaks
from peakline.memory.signatures import History
from peakline.shown import Brief

NEAR = 0.95
"""A moment that takes this share of the peak or more is near it."""
APART = 0.85
"""Two such moments are separate when less than this share of the peak is in use between them."""
ALIKE = 0.9
"""Moments are alike when they have this share of their live bytes in common, by signature."""
_MOMENTS = 256
"""So many moments are compared: up to `_DISTINCT` that differ at a glance, the others evenly."""
_DISTINCT = 192
_BLOCK = 8192
"""So many signatures are compared at a time, which bounds the memory it takes."""


@dataclass(frozen=True, repr=False)
class HighMoment(Brief):
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
        history.events,
        allocator=allocator,
        eligible=chosen,
        lifetimes=history.lifetimes,
        descriptions=history.descriptions,
    )


def find_high_moments(history: History, allocator: int, *, most: int = 5) -> tuple[HighMoment, ...]:
    """The moments of one allocator that come near its peak, those made of the same put together.

    ``allocator`` is its number in ``history.lifetimes.allocators``; at most ``most`` different
    ones are explained, the fullest first. Of more than 256 moments, 256 are compared, from the
    whole of the time, those before all that differ in their bytes or in what was allocated last.
    """
    own = history.rows_of(allocator)
    mine = own[history.measured[own]]
    if not mine.size:
        return ()
    used = history.used
    peak = int(used[mine].max())
    rows = _high(mine, used[mine], int(np.ceil(NEAR * peak)), int(np.ceil(APART * peak)))
    rows = rows[_compared(used[rows], history.signatures.codes[rows])]
    live = _Composition(history, allocator, rows)
    left = sorted(range(rows.size), key=lambda k: (-int(used[rows[k]]), k))
    groups: list[list[int]] = []
    while left and len(groups) < most:
        first = left[0]
        common = live.in_common(first)
        alike = [k for k in left if common[k] >= ALIKE]
        groups.append([first, *(k for k in alike if k != first)])
        left = [k for k in left if k not in groups[-1]]
    return tuple(_explain(history, allocator, rows, group) for group in groups)


def _high(rows: IntpArray, used: Int64Array, near: int, apart: int) -> IntpArray:
    """Those of ``rows`` that are separate high moments, in time order.

    That is the first fullest record of a stretch that reaches ``near`` bytes and ends where less
    than ``apart`` bytes are in use.
    """
    high = np.flatnonzero(used >= near)
    if not high.size:
        return rows[:0]
    stretch = np.cumsum(used < apart)[high]
    starts = np.flatnonzero(np.diff(stretch, prepend=-1))
    fullest = np.maximum.reduceat(used[high], starts)
    number = np.repeat(np.arange(starts.size), np.diff(starts, append=high.size))
    is_fullest = np.flatnonzero(used[high] == fullest[number])
    first = np.flatnonzero(np.diff(number[is_fullest], prepend=-1))
    return rows[high[is_fullest[first]]]


def _explain(history: History, allocator: int, rows: Int64Array, group: list[int]) -> HighMoment:
    chosen = np.zeros(history.rows, np.bool_)
    chosen[rows[group[0]]] = True
    (memory,) = find_peaks(
        history.events,
        allocator=history.lifetimes.allocators[allocator],
        eligible=chosen,
        lifetimes=history.lifetimes,
        descriptions=history.descriptions,
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


def _compared(used: Int64Array, codes: Int32Array) -> IntpArray:
    """The places of the moments that are compared, ascending; the first fullest among them.

    A run of many steps repeats a few moments over and over: those with the same bytes in use and
    the same signature allocated last are taken for repetitions, so that a late one of something
    else is not lost among them.
    """
    if used.size <= _MOMENTS:
        return np.arange(used.size)
    order = np.lexsort((np.arange(used.size), codes, used))
    differs = (np.diff(used[order], prepend=-1) != 0) | (np.diff(codes[order], prepend=-2) != 0)
    distinct = order[differs]
    fullest = np.lexsort((distinct, -used[distinct]))
    chosen = distinct[fullest[:_DISTINCT]]
    others = np.setdiff1d(np.arange(used.size), chosen)
    evenly = np.linspace(0, others.size - 1, _MOMENTS - chosen.size).astype(np.intp)
    return np.sort(np.concatenate([chosen, others[evenly]]))


class _Composition:
    """What lives after each of ``rows``, in bytes per signature of the allocator."""

    def __init__(self, history: History, allocator: int, rows: Int64Array) -> None:
        self._crossing = find_crossing(history, allocator, rows + 1)
        self._weight = history.allocated[self._crossing.rows]
        self._codes = history.signatures.codes[self._crossing.rows]
        self._signatures = len(history.signatures)
        together = np.zeros(self._codes.size, np.int64)
        self._total = self._crossing.live_at_marks(together, 1, self._weight)[0]

    def in_common(self, one: int) -> Float64Array:
        """Per moment the share of its bytes or of those of moment ``one`` that both have.

        The larger of the two counts; 1 where neither has any.
        """
        # Only what lives at that moment can be common to both.
        here = (self._crossing.first <= one) & (self._crossing.until > one)
        codes = np.unique(self._codes[here])
        place_of = np.full(self._signatures, -1, np.int64)
        place_of[codes] = np.arange(codes.size)
        places = place_of[self._codes]
        common = np.zeros(self._total.size, np.int64)
        for start in checked(range(0, codes.size, _BLOCK)):
            count = min(_BLOCK, codes.size - start)
            place = np.where((places >= start) & (places < start + count), places - start, -1)
            live = self._crossing.live_at_marks(place, count, self._weight)
            common += np.minimum(live, live[:, one : one + 1]).sum(axis=0)
        larger = np.maximum(self._total, self._total[one])
        return np.where(larger > 0, common / np.maximum(larger, 1), 1.0)
