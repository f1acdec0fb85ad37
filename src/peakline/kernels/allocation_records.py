"""Allocation records of StepStats: which free belongs to which allocation, and to which id."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import signed64

__all__ = ["first_in_first_out", "fit_by_number", "neighbours"]


def first_in_first_out(
    group: cython.const[cython.longlong][::1],
    is_free: cython.const[cython.uchar][::1],
    order: cython.const[cython.longlong][::1],
    partner: cython.longlong[::1],
) -> None:
    """Give each free the earliest allocation of its group that is left; -1 stays with the rest.

    ``order`` lists the rows group by group, each in its own order; ``partner`` comes as -1.
    """
    at: cython.longlong = 0
    end: cython.longlong
    head: cython.longlong
    row: cython.longlong
    now: cython.longlong
    count: cython.longlong = order.shape[0]
    with cython.nogil:
        while at < count:
            end = at
            head = at
            now = group[order[at]]
            while end < count and group[order[end]] == now:
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


def neighbours(
    domain: cython.const[cython.longlong][::1],
    number: cython.const[cython.longlong][::1],
    low: cython.longlong[::1],
    high: cython.longlong[::1],
) -> None:
    """Between which numbers one must lie: rows in time order within their domain, 0 for none."""
    last: cython.longlong = 0
    one: cython.ulonglong = 1
    least: cython.longlong = signed64((one << 63) - 1)
    following: cython.longlong = least
    row: cython.longlong
    count: cython.longlong = domain.shape[0]
    with cython.nogil:
        for row in range(count):
            if row == 0 or domain[row] != domain[row - 1]:
                last = 0
            low[row] = last
            last = max(last, number[row])
        row = count - 1
        while row >= 0:
            if row == count - 1 or domain[row] != domain[row + 1]:
                following = least
            high[row] = following
            if number[row] > 0 and number[row] < following:
                following = number[row]
            row -= 1


def fit_by_number(
    group: cython.const[cython.longlong][::1],
    low: cython.const[cython.longlong][::1],
    high: cython.const[cython.longlong][::1],
    time: cython.const[cython.longlong][::1],
    key_group: cython.const[cython.longlong][::1],
    key_number: cython.const[cython.longlong][::1],
    key_time: cython.const[cython.longlong][::1],
    result: cython.longlong[::1],
) -> None:
    """Give each row the first key of its group that is left, numbered between ``low`` and
    ``high`` and seen no earlier than ``time``; rows in order of group and time, keys of group
    and number; ``result`` comes as -1.
    """
    key: cython.longlong = 0
    row: cython.longlong
    keys: cython.longlong = key_group.shape[0]
    with cython.nogil:
        for row in range(group.shape[0]):
            while key < keys and (
                key_group[key] < group[row]
                or (key_group[key] == group[row] and key_number[key] <= low[row])
            ):
                key += 1
            if (
                key < keys
                and key_group[key] == group[row]
                and key_number[key] < high[row]
                and key_time[key] >= time[row]
            ):
                result[row] = key
                key += 1
