"""The peak that is left where some buffers are smaller, or not there."""

from __future__ import annotations

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.memory.signatures import History


def peak_without(history: History, allocator: int, rows: Int64Array, goes: Int64Array) -> int:
    """The largest memory in use if ``goes`` bytes of the buffers that ``rows`` allocated were
    not there.
    """
    change = np.zeros(history.rows + 1, np.int64)
    np.add.at(change, rows, goes)
    ends = history.lifetimes.end[rows].astype(np.int64)
    np.add.at(change, np.where(ends < 0, history.rows, ends), -goes)
    own = history.rows_of(allocator)
    left = history.used[own] - np.cumsum(change)[own]
    counted: BoolArray = history.measured[own]
    return int(left[counted].max(initial=0))


def peak_without_signatures(history: History, allocator: int, rows: Int64Array) -> int:
    """The largest memory in use if none of the buffers of these allocations, nor others of their
    signatures, were there.
    """
    codes = history.signatures.codes
    own = history.rows_of(allocator)
    every = own[np.isin(codes[own], codes[rows][codes[rows] >= 0]) & (history.allocated[own] > 0)]
    return peak_without(history, allocator, every, history.allocated[every])
