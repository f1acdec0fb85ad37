"""Sequential kernels over the events of a trace: order, nesting, self time."""

from __future__ import annotations

import numba as nb
import numpy as np

__all__ = ["MOST_ROWS", "nest_lines", "own_times", "timed"]

U = np.uint64  # an unsigned index needs no check for counting from the end

MOST_ROWS = 4096
"""Rows that the events of one line are spread over at most; what would need more shares the
last."""


@nb.njit(cache=True, nogil=True)
def timed(start, duration, first, farthest, end):  # type: ignore[no-untyped-def]
    """Write the end of every event: of one with a negative duration its start, of one beyond the
    clock ``farthest``.

    Returns per line (``first[k]:first[k + 1]``) whether an event begins before the one in front of
    it, or at the same time and lasts longer; and the first start and the last end of all.
    """
    found = np.zeros(first.size - 1, np.bool_)
    least, most = np.int64(0), np.int64(0)
    for line in range(first.size - 1):
        odd, before, lasted = False, np.iinfo(np.int64).min, np.iinfo(np.int64).max
        for e in range(first[line], first[line + 1]):
            b, length = np.int64(start[U(e)]), np.int64(duration[U(e)])
            # Of signed numbers the compiler takes for granted that no sum is too large.
            stop = np.int64(U(b) + U(length))
            if stop < b:
                stop = b if length < 0 else np.int64(farthest)
            end[U(e)] = stop
            odd |= b < before or (b == before and length > lasted)
            before, lasted = b, length
            least, most = min(least, b), max(most, stop)
        found[line] = odd
    return found, least, most


@nb.njit(cache=True, nogil=True)
def own_times(start, end, event, first, nests, total, own):  # type: ignore[no-untyped-def]
    """Of the events ``event`` (places, those of line k ``first[k]:first[k + 1]``) how long each
    took, and its duration without what its direct children among them cover; as `nest_lines`.
    """
    stack = np.empty((3, 256), np.int64)  # number, end, how far its children have covered it
    for line in range(first.size - 1):
        top = np.int64(0)
        for k in range(first[line], first[line + 1]):
            e = event[U(k)]
            b, stop = start[U(e)], end[U(e)]
            total[U(k)] = stop - b
            own[U(k)] = stop - b
            while top > 0 and stack[1, U(top - 1)] < stop:
                top -= 1
            if top > 0:
                seen = stack[2, U(top - 1)]
                if stop > seen:
                    own[U(stack[0, U(top - 1)])] -= stop - max(b, seen)
                    stack[2, U(top - 1)] = stop
            if stop == b or not nests[line]:
                continue
            if top == stack.shape[1]:
                wider = np.empty((3, 2 * top), np.int64)
                wider[:, :top] = stack
                stack = wider
            stack[0, U(top)], stack[1, U(top)], stack[2, U(top)] = k, stop, b
            top += 1


@nb.njit(cache=True, nogil=True)
def nest_lines(start, end, first, nests, parent, row, own):  # type: ignore[no-untyped-def]
    """Nesting of the events of every line that ``nests``; each line sorted by start, longest first.

    An event lies in the innermost open event that ends no sooner than it does; an instant encloses
    nothing. Writes ``parent``
    (the index of that event, -1), ``row`` (0 for an event in none; one below the parent's, further
    down where one that overlaps it in part is in the way) and ``own``: its duration without what
    its direct children cover.
    """
    stack = np.empty(256, np.int64)
    covered = np.empty(256, np.int64)
    row_end = np.empty(MOST_ROWS, np.int64)
    for line in range(first.size - 1):
        top, rows = 0, 0
        for e in range(first[line], first[line + 1]):
            b, stop = start[U(e)], end[U(e)]
            own[U(e)] = stop - b
            while top > 0 and end[U(stack[U(top - 1)])] < stop:
                top -= 1
            above, at = np.int64(-1), 0
            if top > 0:
                above = stack[U(top - 1)]
                at = row[U(above)] + 1
                seen = covered[U(top - 1)]
                if stop > seen:
                    own[U(above)] -= stop - max(b, seen)
                    covered[U(top - 1)] = stop
            while at < rows and at < MOST_ROWS - 1 and row_end[U(at)] > b:
                at += 1
            at = min(at, MOST_ROWS - 1)
            while rows <= at:
                row_end[U(rows)] = np.iinfo(np.int64).min
                rows += 1
            row_end[U(at)] = stop
            parent[U(e)], row[U(e)] = above, at
            if stop == b or not nests[line]:
                continue
            if top == stack.size:
                wider = np.empty(2 * top, np.int64)
                wider[:top] = stack
                stack = wider
                wider = np.empty(2 * top, np.int64)
                wider[:top] = covered
                covered = wider
            stack[U(top)], covered[U(top)] = e, b
            top += 1
