"""Compiled passes that `peakline.analysis.growth` is made of."""

from __future__ import annotations

import numba as nb
import numpy as np

from peakline.analysis.lifetimes import ALLOCATION

__all__ = ["concordance", "crossing_bytes", "live_at_marks", "median_slope"]


@nb.njit(cache=True, nogil=True)
def crossing_bytes(kind, end, codes, weight, marks, crossing):  # type: ignore[no-untyped-def]
    """Add to ``crossing[code]`` the bytes of every buffer that lives across one of ``marks``.

    ``marks`` are record numbers, ascending; a buffer lives across one when it begins before it
    and does not end before it.
    """
    passed = 0
    for row in range(kind.size):
        while passed < marks.size and marks[passed] <= row:
            passed += 1
        if passed == marks.size:
            return
        if kind[row] == ALLOCATION and (end[row] < 0 or end[row] >= marks[passed]):
            crossing[codes[row]] += weight[row]


@nb.njit(cache=True, nogil=True)
def live_at_marks(kind, begin, codes, weight, marks, place_of, live):  # type: ignore[no-untyped-def]
    """Fill ``live[place, k]`` with the bytes that live at mark ``k``, per ``place_of[code]``.

    A code with place -1 is left out. ``live`` (given as 0) has a row per place.
    """
    passed = 0
    for row in range(kind.size):
        while passed < marks.size and marks[passed] <= row:
            passed += 1
        if passed == marks.size:
            break
        first = begin[row]
        if first >= 0 and place_of[codes[first]] >= 0:
            live[place_of[codes[first]], passed] -= weight[first]
        if kind[row] == ALLOCATION and place_of[codes[row]] >= 0:
            live[place_of[codes[row]], passed] += weight[row]
    for place in range(live.shape[0]):
        for mark in range(1, live.shape[1]):
            live[place, mark] += live[place, mark - 1]


@nb.njit(cache=True, nogil=True)
def median_slope(values):  # type: ignore[no-untyped-def]
    """The median of the slopes between all pairs of places (Theil-Sen), 0 for fewer than two."""
    count = values.size
    if count < 2:
        return 0.0
    slopes = np.empty(count * (count - 1) // 2, np.float64)
    at = 0
    for first in range(count):
        for second in range(first + 1, count):
            slopes[at] = (values[second] - values[first]) / (second - first)
            at += 1
    return float(np.median(slopes))


@nb.njit(cache=True, nogil=True)
def concordance(values):  # type: ignore[no-untyped-def]
    """The share of pairs of places that rise less the share that fall; -1 to 1, 0 without pairs."""
    count = values.size
    balance = 0
    for first in range(count):
        for second in range(first + 1, count):
            if values[second] > values[first]:
                balance += 1
            elif values[second] < values[first]:
                balance -= 1
    pairs = count * (count - 1) // 2
    return balance / pairs if pairs else 0.0
