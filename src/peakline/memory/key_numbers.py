"""The distinct rows of a table of keys, numbered."""

from __future__ import annotations

import secrets

import numpy as np

from peakline.arrays import Int32Array, Int64Array
from peakline.kernels.key_numbers import number

_ROOM = 512
"""So many distinct keys have room at first."""


def number_keys(
    keys: Int64Array,
) -> tuple[Int32Array, Int64Array]:
    """Number the distinct rows of ``keys`` (three columns) in order of first appearance.

    Returns the number of every row, and the first row of each.
    """
    seed = secrets.randbits(64)
    numbers = np.empty(len(keys), np.int32)
    first = np.empty(_ROOM, np.int64)
    table = np.full(2 * _ROOM, -1, np.int64)
    at = np.zeros(2, np.int64)
    while not number(keys, numbers, table, first, at, seed):
        count = first.size
        table = np.full(8 * count, -1, np.int64)
        # Enter what is known again: its numbers are the same.
        known, unused = np.empty(count, np.int64), np.empty(count, np.int32)
        number(keys[first], unused, table, known, np.zeros(2, np.int64), seed)
        first = np.concatenate([first, np.empty(3 * count, np.int64)])
    return numbers, first[: at[1]]
