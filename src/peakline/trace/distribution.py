"""How the values of many groups are spread."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from peakline.arrays import AnyArray, Int64Array


def deviation(values: AnyArray) -> float:
    """The standard deviation of ``values`` as their median absolute deviation estimates it, which
    few that lie far off do not move: 1.4826 times that, were they normal.
    """
    return 1.4826 * float(np.median(np.abs(values - np.median(values))))


def median_error(spread: float, count: int) -> float:
    """The standard error of the median of ``count`` normal values of that standard deviation."""
    return 1.2533 * spread / math.sqrt(count)


@dataclass(frozen=True, eq=False)
class Distribution:
    """One entry per group, int64; 0 where the group is empty.

    ``median`` and ``p95`` are values that occur: at least half (19 of 20) are no larger.
    """

    count: Int64Array
    total: Int64Array
    shortest: Int64Array
    median: Int64Array
    p95: Int64Array
    longest: Int64Array


def distribution(group: AnyArray, values: Int64Array, groups: int) -> Distribution:
    """The spread of ``values`` within each of ``groups``; ``group`` says which each is in."""
    count = np.bincount(group, minlength=groups).astype(np.int64)
    narrow: Any = np.uint16 if groups <= 1 << 16 else group.dtype
    ordered = values[np.argsort(group.astype(narrow, copy=False), kind="stable")]
    ends = np.cumsum(count)
    starts = ends - count
    total = np.zeros(groups, np.int64)
    used = np.flatnonzero(count)
    for lo, hi in zip(starts[used].tolist(), ends[used].tolist(), strict=True):
        ordered[lo:hi].sort()
    if used.size:
        total[used] = np.add.reduceat(ordered, starts[used])

    def at(place: AnyArray) -> Int64Array:
        result = np.zeros(groups, np.int64)
        result[used] = ordered[starts[used] + place[used]]
        return result

    return Distribution(
        count, total, at(np.zeros(groups, np.int64)), at((count - 1) // 2),
        at((19 * count + 19) // 20 - 1), at(count - 1),
    )  # fmt: skip


def distinct(*columns: AnyArray) -> tuple[Int64Array, Int64Array]:
    """The distinct combinations of columns, in the order in which they occur.

    Gives the first row of each, and which of them every row has.
    """
    place = np.zeros(columns[0].size, np.int64)
    for column in columns:
        if not column.size or (column == column[0]).all():
            continue
        values, codes = np.unique(column, return_inverse=True)
        _, place = np.unique(place * values.size + codes, return_inverse=True)
    _, first, place = np.unique(place, return_index=True, return_inverse=True)
    order = np.argsort(first)
    number = np.empty(order.size, np.int64)
    number[order] = np.arange(order.size)
    return first[order], number[place]
