"""Sizes that no memory can have are no sizes: a damaged or hostile file must not skew sums."""

from __future__ import annotations

import numpy as np

from peakline.tables.columns import Columns

MOST_BYTES = 2**48
"""No memory is larger: what processors can address is at most about that."""

_SIZES = (
    "requested_bytes",
    "allocated_bytes",
    "in_use_bytes",
    "reserved_bytes",
    "free_bytes",
    "peak_bytes",
)


def without_implausible(events: Columns) -> tuple[Columns, int]:
    """``allocator_events`` with every size below 0 or above `MOST_BYTES` as null.

    The number is how many records had one; where it is 0 the table is the same.
    """
    wrong = np.zeros(events.rows, np.bool_)
    valid = dict(events.valid)
    for name in _SIZES:
        sizes, known = events.array(name), events.is_valid(name)
        odd = known & ((sizes < 0) | (sizes > MOST_BYTES))
        if odd.any():
            valid[name] = known & ~odd
            wrong |= odd
    count = int(np.count_nonzero(wrong))
    return (Columns(events.data, valid), count) if count else (events, 0)
