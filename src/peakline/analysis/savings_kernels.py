"""The compiled passes that `peakline.analysis.savings` and `peakline.analysis.moments` share."""

from __future__ import annotations

import numba as nb
import numpy as np

from peakline.analysis.lifetimes import ALLOCATION

__all__ = ["high_moments", "peaks_without"]


@nb.njit(cache=True, nogil=True)
def peaks_without(  # type: ignore[no-untyped-def]
    rows,
    kind,
    begin,
    codes,
    allocated,
    used,
    counted,
    in_group,
    numerator,
    denominator,
    only_older,
    peaks,
):
    """Fill ``peaks[group]`` with the largest memory in use if the group's buffers were smaller.

    ``in_group[code, group]`` says which signatures a group has. A group's buffers shrink by
    ``numerator / denominator`` of their bytes; where ``only_older`` they shrink by the average size
    of all but one of those that live. ``rows`` are the allocator's records, ``counted`` marks
    those of all records that can be the peak.
    """
    groups = in_group.shape[1]
    lowest = np.int64(0)
    live = np.zeros(groups, np.int64)
    count = np.zeros(groups, np.int64)
    for row in rows:
        first = begin[row]
        if first >= 0:
            code = codes[first]
            for group in range(groups):
                if in_group[code, group]:
                    live[group] -= allocated[first]
                    count[group] -= 1
        if kind[row] == ALLOCATION:
            code = codes[row]
            for group in range(groups):
                if in_group[code, group]:
                    live[group] += allocated[row]
                    count[group] += 1
        if not counted[row] or used[row] <= lowest:
            continue
        for group in range(groups):
            if only_older[group]:
                saved = live[group] - live[group] // count[group] if count[group] > 1 else 0
            else:
                saved = live[group] * numerator[group] // denominator[group]
            peaks[group] = max(peaks[group], used[row] - saved)
        # Less than what every group has reached changes nothing.
        lowest = peaks[0]
        for group in range(1, groups):
            lowest = min(lowest, peaks[group])


@nb.njit(cache=True, nogil=True)
def high_moments(rows, used, counted, near, apart, found):  # type: ignore[no-untyped-def]
    """Fill ``found`` with the rows of separate high moments, in time order; return how many.

    A high moment is the first fullest record of a stretch that reaches ``near`` bytes and ends
    where less than ``apart`` bytes are in use.
    """
    best = np.int64(-1)
    count = 0
    for row in rows:
        if not counted[row]:
            continue
        if used[row] >= near and (best < 0 or used[row] > used[best]):
            best = row
        if used[row] < apart and best >= 0:
            if count < found.size:
                found[count] = best
            count += 1
            best = np.int64(-1)
    if best >= 0:
        if count < found.size:
            found[count] = best
        count += 1
    return count
