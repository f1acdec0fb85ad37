"""Sorted intervals: what a line did at every moment; what two sets cover, or one of them alone."""

from __future__ import annotations

import cython

__all__ = ["merge", "paint", "subtract"]


def paint(
    start: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    code: cython.const[cython.uchar][::1],
    begins: cython.longlong[::1],
    ends: cython.longlong[::1],
    codes: cython.uchar[::1],
    stack: cython.longlong[::1],
) -> int:
    """Pieces of time, in order and without overlap: their begins, ends and codes.

    Events are sorted by start, the longest first. A moment has the code of the event that began
    last of those that hold it: the innermost one, where events nest. Pieces of the same code that
    touch are one. Returns how many pieces there are, and writes them where ``begins`` is not empty;
    -1 where ``stack``, the open events, is too small: call again with more.
    """
    total: cython.longlong = start.shape[0]
    write: cython.bint = begins.shape[0] > 0
    top: cython.longlong = 0
    count: cython.longlong = 0
    now: cython.longlong = 0
    last_end: cython.longlong = 0
    last_code: cython.int = -1
    k: cython.longlong
    event: cython.longlong
    until: cython.longlong
    stop: cython.longlong
    with cython.nogil:
        for k in range(total + 1):
            until = start[k] if k < total else 0
            while top > 0 and (k == total or now < until):
                event = stack[top - 1]
                stop = end[event]
                if k < total and stop > until:
                    stop = until
                if stop > now:
                    if last_code == code[event] and last_end == now:
                        if write:
                            ends[count - 1] = stop
                    else:
                        if write:
                            begins[count], ends[count] = now, stop
                            codes[count] = code[event]
                        count += 1
                    last_code, last_end = code[event], stop
                    now = stop
                if end[event] <= now:
                    top -= 1
            if k < total and end[k] > start[k]:
                now = start[k]
                if top == stack.shape[0]:
                    count = -1
                    break
                stack[top] = k
                top += 1
    return count


def merge(
    begin: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    other_begin: cython.const[cython.longlong][::1],
    other_end: cython.const[cython.longlong][::1],
    begins: cython.longlong[::1],
    ends: cython.longlong[::1],
) -> int:
    """The set that two sets (sorted, disjoint intervals) cover together; how many intervals.

    ``begins`` and ``ends`` have room for as many as both sets have.
    """
    i: cython.longlong = 0
    j: cython.longlong = 0
    count: cython.longlong = 0
    b: cython.longlong
    e: cython.longlong
    with cython.nogil:
        while i < begin.shape[0] or j < other_begin.shape[0]:
            if j == other_begin.shape[0] or (i < begin.shape[0] and begin[i] <= other_begin[j]):
                b, e = begin[i], end[i]
                i += 1
            else:
                b, e = other_begin[j], other_end[j]
                j += 1
            if count > 0 and b <= ends[count - 1]:
                ends[count - 1] = max(ends[count - 1], e)
            else:
                begins[count], ends[count] = b, e
                count += 1
    return count


def subtract(
    begin: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    other_begin: cython.const[cython.longlong][::1],
    other_end: cython.const[cython.longlong][::1],
    begins: cython.longlong[::1],
    ends: cython.longlong[::1],
) -> int:
    """What lies in the first of two sets (sorted, disjoint intervals) alone; how many intervals.

    Pieces that touch are one. ``begins`` and ``ends`` have room for as many as both sets have.
    """
    i: cython.longlong
    j: cython.longlong = 0
    count: cython.longlong = 0
    b: cython.longlong
    e: cython.longlong
    with cython.nogil:
        for i in range(begin.shape[0]):
            b = begin[i]
            while b < end[i]:
                while j < other_begin.shape[0] and other_end[j] <= b:
                    j += 1
                e = end[i]
                if j < other_begin.shape[0] and other_begin[j] < e:
                    e = other_begin[j]
                if e > b:
                    if count > 0 and ends[count - 1] == b:
                        ends[count - 1] = e
                    else:
                        begins[count], ends[count] = b, e
                        count += 1
                if e == end[i]:
                    break
                b = max(b, other_end[j])
    return count
