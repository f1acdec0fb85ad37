"""Begins and ends of ops, matched as XProf matches them."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import low64

__all__ = ["match_activities"]


def match_activities(
    begin: cython.const[cython.ulonglong][::1],
    end: cython.const[cython.ulonglong][::1],
    by_begin: cython.const[cython.longlong][::1],
    by_end: cython.const[cython.longlong][::1],
    counted: cython.uchar[::1],
    own: cython.ulonglong[::1],
    stack: cython.longlong[::1],
    children: cython.ulonglong[::1],
) -> None:
    """Begins and ends of one line's ops, matched with a stack in the order of their times.

    ``begin`` and ``end`` are in file order; ``by_begin`` and ``by_end`` sort them, stably. At one
    time the event that comes first in the file comes first, with its begin and then its end. An end
    takes ops off the stack until its own; without its own that is all of them. Sets ``counted``
    where an end found its begin, and ``own`` to the duration without the counted children, modulo
    2^64. ``stack`` and ``children`` are room for a number per op.
    """
    count: cython.longlong = begin.shape[0]
    top: cython.longlong = 0
    at_begin: cython.longlong = 0
    at_end: cython.longlong = 0
    opening: cython.longlong
    closing: cython.longlong
    length: cython.ulonglong
    opens: cython.bint
    with cython.nogil:
        while at_end < count:
            closing = by_end[at_end]
            opens = False
            if at_begin < count:
                opening = by_begin[at_begin]
                opens = begin[opening] < end[closing] or (
                    begin[opening] == end[closing] and opening <= closing
                )
                if opens:
                    stack[top], children[top] = opening, 0
                    top += 1
                    at_begin += 1
                    continue
            at_end += 1
            while top > 0:
                top -= 1
                if stack[top] == closing:
                    length = low64(end[closing] - begin[closing])
                    counted[closing] = True
                    own[closing] = low64(length - children[top])
                    if top > 0:
                        children[top - 1] = low64(children[top - 1] + length)
                    break
