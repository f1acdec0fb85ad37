"""Rows that share a key: numbering keys of several columns, and places within them."""

from __future__ import annotations

import numpy as np

from peakline.arrays import AnyArray, Int64Array


def same(*columns: AnyArray) -> Int64Array:
    """A number per row, equal where all columns are; from 0, without gaps."""
    rows = columns[0].size
    order = np.lexsort(columns[::-1])
    new = np.zeros(rows, np.bool_)
    for column in columns:
        sorted_ = column[order]
        new[1:] |= sorted_[1:] != sorted_[:-1]
    numbers = np.empty(rows, np.int64)
    numbers[order] = np.cumsum(new)
    return numbers


def place_in_group(group: AnyArray) -> Int64Array:
    """How many rows before each one have its group."""
    order = np.argsort(group, kind="stable")
    sorted_ = group[order]
    new = np.ones(group.size, np.bool_)
    new[1:] = sorted_[1:] != sorted_[:-1]
    at = np.arange(group.size, dtype=np.int64)
    place = np.empty(group.size, np.int64)
    place[order] = at - np.maximum.accumulate(np.where(new, at, 0))
    return place
