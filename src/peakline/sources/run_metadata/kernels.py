"""Sequential parts of reading allocation records."""

from __future__ import annotations

import numba as nb
import numpy as np

__all__ = ["first_in_first_out", "fit_by_number", "neighbours"]


@nb.njit(cache=True, nogil=True)
def first_in_first_out(group, is_free, order, partner):  # type: ignore[no-untyped-def]
    """Give each free the earliest allocation of its group that is left; -1 stays with the rest.

    ``order`` lists the rows group by group, each in its own order; ``partner`` comes as -1.
    """
    at = np.int64(0)
    while at < order.size:
        end = at
        head = at
        now = group[order[at]]
        while end < order.size and group[order[end]] == now:
            row = order[end]
            if is_free[row]:
                while head < end and is_free[order[head]]:
                    head += 1
                if head < end:
                    partner[row] = order[head]
                    partner[order[head]] = row
                    head += 1
            end += 1
        at = end


@nb.njit(cache=True, nogil=True)
def neighbours(domain, number, low, high):  # type: ignore[no-untyped-def]
    """Between which numbers one must lie: rows in time order within their domain, 0 for none."""
    last = np.int64(0)
    for row in range(domain.size):
        if row == 0 or domain[row] != domain[row - 1]:
            last = 0
        low[row] = last
        last = max(last, number[row])
    least = np.iinfo(np.int64).max
    following = least
    for row in range(domain.size - 1, -1, -1):
        if row == domain.size - 1 or domain[row] != domain[row + 1]:
            following = least
        high[row] = following
        if number[row] > 0:
            following = min(following, number[row])


@nb.njit(cache=True, nogil=True)
def fit_by_number(  # type: ignore[no-untyped-def]
    group, low, high, time, key_group, key_number, key_time, found
):
    """Give each row the first key of its group that is left, numbered between ``low`` and
    ``high`` and seen no earlier than ``time``; rows in order of group and time, keys of group
    and number; ``found`` comes as -1.
    """
    key = 0
    for row in range(group.size):
        while key < key_group.size and (
            key_group[key] < group[row]
            or (key_group[key] == group[row] and key_number[key] <= low[row])
        ):
            key += 1
        if (
            key < key_group.size
            and key_group[key] == group[row]
            and key_number[key] < high[row]
            and key_time[key] >= time[row]
        ):
            found[row] = key
            key += 1
