"""The compiled pass that `peakline.analysis.savings` is made of."""

from __future__ import annotations

import numba as nb
import numpy as np

from peakline.analysis.lifetimes import ALLOCATION

__all__ = ["ALL", "ALL_BUT_ONE", "FROM_BEFORE", "OF_THE_STEP", "peaks_without"]

ALL, ALL_BUT_ONE, OF_THE_STEP, FROM_BEFORE = range(4)
"""Which of a group's live buffers shrink: all, all but one of average size, those made in the step
that runs, those made before it (or before the profile)."""


@nb.njit(cache=True, nogil=True)
def peaks_without(  # type: ignore[no-untyped-def]
    rows,
    kind,
    begin,
    codes,
    allocated,
    used,
    was_there,
    starts,
    counted,
    in_group,
    numerator,
    denominator,
    which,
    peaks,
):
    """Fill ``peaks[group]`` with the largest memory in use if the group's buffers were smaller.

    ``in_group[code, group]`` says which signatures a group has. A group's buffers shrink by
    ``numerator / denominator`` of their bytes, those that ``which[group]`` says; of `ALL_BUT_ONE`
    all bytes go. ``rows`` are the allocator's records, ``starts`` the first records of the steps,
    ascending. Of all records, ``was_there`` marks those whose buffer is from before the profile and
    ``counted`` those that can be the peak.
    """
    groups = in_group.shape[1]
    lowest = np.int64(0)
    live = np.zeros(groups, np.int64)
    made = np.zeros(groups, np.int64)
    count = np.zeros(groups, np.int64)
    step_start = np.int64(0)
    passed = 0
    for row in rows:
        if passed < starts.size and starts[passed] <= row:
            while passed < starts.size and starts[passed] <= row:
                step_start = starts[passed]
                passed += 1
            made[:] = 0
        first = begin[row]
        if first >= 0:
            code = codes[first]
            for group in range(groups):
                if in_group[code, group]:
                    live[group] -= allocated[first]
                    count[group] -= 1
                    if first >= step_start and not was_there[first]:
                        made[group] -= allocated[first]
        if kind[row] == ALLOCATION:
            code = codes[row]
            for group in range(groups):
                if in_group[code, group]:
                    live[group] += allocated[row]
                    count[group] += 1
                    if not was_there[row]:
                        made[group] += allocated[row]
        if not counted[row] or used[row] <= lowest:
            continue
        for group in range(groups):
            if which[group] == ALL_BUT_ONE:
                saved = live[group] - live[group] // count[group] if count[group] > 1 else 0
            else:
                saved = live[group]
                if which[group] == OF_THE_STEP:
                    saved = made[group]
                elif which[group] == FROM_BEFORE:
                    saved -= made[group]
                saved = saved * numerator[group] // denominator[group]
            peaks[group] = max(peaks[group], used[row] - saved)
        # Less than what every group has reached changes nothing.
        lowest = peaks[0]
        for group in range(1, groups):
            lowest = min(lowest, peaks[group])
