"""How often buffers of a kind come and go."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import signed64
    from peakline.kernels.memory_layout import ALLOCATION, UNTRACKED_ALLOCATION

__all__ = ["count_churn"]

Rows = cython.fused_type(cython.int, cython.longlong)
"""Row numbers: 32 bits where that is enough."""


def count_churn(
    kind: cython.const[cython.uchar][::1],
    begin: cython.const[Rows][::1],
    codes: cython.const[cython.int][::1],
    allocated: cython.const[cython.longlong][::1],
    was_there: cython.const[cython.uchar][::1],
    starts: cython.const[cython.longlong][::1],
    short: cython.longlong,
    counts: cython.longlong[:, ::1],
    live: cython.longlong[::1],
) -> None:
    """Add up ``counts[code]``, with the columns of `peakline.kernels.memory_layout.CHURN_FIELDS`.

    ``starts`` are the first records of the steps, ascending; a buffer that ends ``short`` records
    or fewer after it began is short. ``was_there`` marks the records whose buffer is from before
    the profile: it was not allocated in it. ``live`` (given as 0) is room for a count per code.
    """
    step_start: cython.longlong = 0
    passed: cython.longlong = 0
    row: cython.longlong
    first: cython.longlong
    code: cython.longlong
    with cython.nogil:
        for row in range(kind.shape[0]):
            while passed < starts.shape[0] and starts[passed] <= row:
                step_start = starts[passed]
                passed += 1
            first = begin[row]
            if first >= 0 and not was_there[first]:
                code = codes[first]
                live[code] -= 1
                counts[code, 2] += passed > 0 and first >= step_start
                counts[code, 3] += row - first <= short
            if was_there[row]:
                continue
            if kind[row] == ALLOCATION or kind[row] == UNTRACKED_ALLOCATION:
                code = codes[row]
                counts[code, 0] += 1
                counts[code, 1] = signed64(counts[code, 1] + allocated[row])
                if kind[row] == ALLOCATION:
                    live[code] += 1
                    counts[code, 4] = max(counts[code, 4], live[code])
