"""Which buffers live across given moments, and what they come to at each of them.

A *mark* is the number of a record: the moment just before it. A buffer lives across a mark when it
begins before it and does not end before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, Int32Array, Int64Array, IntpArray
from peakline.kernels.memory_layout import ALLOCATION
from peakline.memory.signatures import History


def marks_passed(marks: Int64Array, rows: int) -> Int32Array:
    """For each of ``rows`` records how many of ``marks`` (ascending) are at it or before it."""
    bounds = np.clip(np.maximum.accumulate(marks), 0, rows)
    lengths = np.diff(bounds, prepend=0, append=rows)
    return np.repeat(np.arange(bounds.size + 1, dtype=np.int32), lengths)


def live_sums(
    group: AnyArray, first: AnyArray, until: AnyArray, weight: Int64Array, groups: int, moments: int
) -> Int64Array:
    """Shape (groups, moments): the sums of ``weight`` of what lives, by ``group``.

    Each lives at the moments from number ``first`` up to, not including, number ``until``, which is
    ``moments`` for what lives at the last one too.
    """
    change = np.zeros((groups, moments + 1), np.int64)
    # Flat places: twice as fast as pairs of them.
    row = group.astype(np.int64) * (moments + 1)
    np.add.at(change.reshape(-1), row + first, weight)
    np.subtract.at(change.reshape(-1), row + until, weight)
    return np.cumsum(change[:, :-1], axis=1)


@dataclass(frozen=True, eq=False)
class Crossing:
    """The buffers that live across one or more of ``marks`` marks.

    ``rows`` are the records that begin them, ascending. Each lives across the marks from number
    ``first`` up to, not including, number ``until``.
    """

    marks: int
    rows: IntpArray
    first: Int32Array
    until: Int32Array

    def live_at_marks(self, place: AnyArray, places: int, weight: Int64Array) -> Int64Array:
        """The sums of ``weight`` at each mark, ``places`` rows of one entry per mark.

        ``place`` and ``weight`` are per buffer; one with place -1 is left out.
        """
        own = place >= 0
        lives = self.first[own], self.until[own]
        return live_sums(place[own], *lives, weight[own], places, self.marks)


def find_crossing(history: History, allocator: int, marks: Int64Array) -> Crossing:
    """The buffers of one allocator, given by its number, that live across any of ``marks``."""
    lifetimes = history.lifetimes
    own = history.rows_of(allocator)
    begins = own[lifetimes.kind[own] == ALLOCATION]
    passed = marks_passed(marks, history.rows)
    end = lifetimes.end[begins]
    first = passed[begins]
    until = np.where(end < 0, np.int32(marks.size), passed[end])
    crosses = first < until
    return Crossing(int(marks.size), begins[crosses], first[crosses], until[crosses])
