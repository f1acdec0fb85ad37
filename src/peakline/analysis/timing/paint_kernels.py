"""Sequential kernels over sorted intervals: what a line did at every moment, two sets in one."""

from __future__ import annotations

import numba as nb
import numpy as np

__all__ = ["merge", "paint"]

U = np.uint64  # an unsigned index needs no check for counting from the end


@nb.njit(cache=True, nogil=True)
def paint(start, end, code):  # type: ignore[no-untyped-def]
    """Pieces of time, in order and without overlap: their begins, ends and codes.

    Events are sorted by start, the longest first. A moment has the code of the event that began
    last of those that hold it: the innermost one, where events nest. Pieces of the same code that
    touch are one.
    """
    begins, ends, codes = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint8)
    # Counted first: memory that turns out to be too small has to be touched again.
    count = _walk(start, end, code, begins, ends, codes)
    begins, ends, codes = (
        np.empty(count, np.int64),
        np.empty(count, np.int64),
        np.empty(count, np.uint8),
    )
    _walk(start, end, code, begins, ends, codes)
    return begins, ends, codes


@nb.njit(cache=True, nogil=True)
def _walk(start, end, code, begins, ends, codes):  # type: ignore[no-untyped-def]
    """The number of pieces; with room for them the pieces, too."""
    write = begins.size > 0
    stack = np.empty(256, np.int64)
    top, count = 0, 0
    now, last_end, last_code = np.int64(0), np.int64(0), np.int64(-1)
    total = start.size
    for k in range(total + 1):
        until = start[U(k)] if k < total else np.iinfo(np.int64).max
        while top > 0 and now < until:
            event = stack[U(top - 1)]
            stop = min(end[U(event)], until)
            if stop > now:
                if last_code == code[U(event)] and last_end == now:
                    if write:
                        ends[U(count - 1)] = stop
                else:
                    if write:
                        begins[U(count)], ends[U(count)] = now, stop
                        codes[U(count)] = code[U(event)]
                    count += 1
                last_code, last_end = np.int64(code[U(event)]), stop
                now = stop
            if end[U(event)] <= now:
                top -= 1
        if k < total and end[U(k)] > start[U(k)]:
            now = start[U(k)]
            if top == stack.size:
                wider = np.empty(2 * top, np.int64)
                wider[:top] = stack
                stack = wider
            stack[U(top)] = k
            top += 1
    return count


@nb.njit(cache=True, nogil=True)
def merge(begin, end, other_begin, other_end):  # type: ignore[no-untyped-def]
    """The set that two sets (sorted, disjoint intervals) cover together."""
    most = begin.size + other_begin.size
    begins, ends = np.empty(most, np.int64), np.empty(most, np.int64)
    i, j, count = 0, 0, 0
    while i < begin.size or j < other_begin.size:
        if j == other_begin.size or (i < begin.size and begin[U(i)] <= other_begin[U(j)]):
            b, e = begin[U(i)], end[U(i)]
            i += 1
        else:
            b, e = other_begin[U(j)], other_end[U(j)]
            j += 1
        if count > 0 and b <= ends[U(count - 1)]:
            ends[U(count - 1)] = max(ends[U(count - 1)], e)
        else:
            begins[U(count)], ends[U(count)] = b, e
            count += 1
    return begins[:count], ends[:count]
