"""The compiled pass that `peakline.analysis.churn` is made of."""

from __future__ import annotations

import numba as nb

from peakline.analysis.lifetimes import ALLOCATION, UNTRACKED_ALLOCATION

__all__ = ["CHURN_FIELDS", "count_churn"]

CHURN_FIELDS = ("allocations", "bytes", "same_step", "short", "most_live")
"""Columns per signature: allocations, their bytes, how many were freed in the step that made them
and how many after few records, and the most that lived at a time."""


@nb.njit(cache=True, nogil=True)
def count_churn(  # type: ignore[no-untyped-def]
    kind, begin, codes, allocated, was_there, starts, short, counts, live
):
    """Add up ``counts[code]``, with the columns of `CHURN_FIELDS`.

    ``starts`` are the first records of the steps, ascending; a buffer that ends ``short`` records
    or fewer after it began is short. ``was_there`` marks the records whose buffer is from before
    the profile: it was not allocated in it. ``live`` (given as 0) is room for a count per code.
    """
    step_start = 0
    passed = 0
    for row in range(kind.size):
        while passed < starts.size and starts[passed] <= row:
            step_start = starts[passed]
            passed += 1
        first = begin[row]
        if first >= 0 and not was_there[first]:
            code = codes[first]
            live[code] -= 1
            counts[code, 2] += passed > 0 and first >= step_start
            counts[code, 3] += row - first <= short
        if was_there[row]:
            continue
        if kind[row] == ALLOCATION or kind[row] == UNTRACKED_ALLOCATION:
            code = codes[row]
            counts[code, 0] += 1
            counts[code, 1] += allocated[row]
            if kind[row] == ALLOCATION:
                live[code] += 1
                counts[code, 4] = max(counts[code, 4], live[code])
