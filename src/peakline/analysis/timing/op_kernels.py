"""The sequential kernel that counts ops as XProf does."""

from __future__ import annotations

import numba as nb
import numpy as np

__all__ = ["match_activities"]

U = np.uint64  # an unsigned index needs no check for counting from the end


@nb.njit(cache=True, nogil=True)
def match_activities(begin, end, by_begin, by_end, counted, own):  # type: ignore[no-untyped-def]
    """Begins and ends of one line's ops, matched with a stack in the order of their times.

    ``begin`` and ``end`` are uint64, in file order; ``by_begin`` and ``by_end`` sort them, stably.
    At one time the event that comes first in the file comes first, with its begin and then its
    end. An end takes ops off the stack until its own; without its own that is all of them. Sets
    ``counted`` where an end found its begin, and ``own`` to the duration without the counted
    children, modulo 2^64.
    """
    count = begin.size
    stack = np.empty(count, np.int64)
    children = np.empty(count, np.uint64)
    top, at_begin, at_end = 0, 0, 0
    while at_end < count:
        closing = by_end[U(at_end)]
        opens = False
        if at_begin < count:
            opening = by_begin[U(at_begin)]
            opens = begin[U(opening)] < end[U(closing)] or (
                begin[U(opening)] == end[U(closing)] and opening <= closing
            )
        if opens:
            stack[U(top)], children[U(top)] = opening, U(0)
            top += 1
            at_begin += 1
            continue
        at_end += 1
        while top > 0:
            top -= 1
            if stack[U(top)] == closing:
                length = end[U(closing)] - begin[U(closing)]
                counted[U(closing)] = True
                own[U(closing)] = length - children[U(top)]
                if top > 0:
                    children[U(top - 1)] += length
                break
