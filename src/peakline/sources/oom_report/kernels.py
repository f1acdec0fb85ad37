"""Search for several literals at once."""

from __future__ import annotations

import numba as nb
import numpy as np

__all__ = ["next_hit"]

_KEYS = 0x7FFF
"""The last of the keys that `shift` is indexed with; three bytes are mixed into one."""


@nb.njit(cache=True, nogil=True)
def next_hit(data, start, shift, least, text, bounds):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """Where the first literal begins in ``data[start:]``, or -1.

    A window of ``least`` bytes (the shortest literal) jumps by what its last three bytes allow
    (Wu and Manber, "A fast algorithm for multi-pattern searching", 1994).
    """
    at = start + least - 1
    while at < data.size:
        key = (
            (np.int64(data[at - 2]) << 10) ^ (np.int64(data[at - 1]) << 5) ^ np.int64(data[at])
        ) & _KEYS
        jump = shift[key]
        if jump:
            at += jump
            continue
        begin = at - least + 1
        for literal in range(bounds.size - 1):
            first, length = bounds[literal], bounds[literal + 1] - bounds[literal]
            if begin + length > data.size:
                continue
            same = 0
            while same < length and data[begin + same] == text[first + same]:
                same += 1
            if same == length:
                return begin
        at += 1
    return -1
