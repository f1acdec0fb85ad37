"""Search for several literals at once."""

from __future__ import annotations

import cython

__all__ = ["next_hit"]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _next_hit(
    data: cython.const[cython.uchar][::1],
    start: cython.longlong,
    shift: cython.const[cython.uchar][::1],
    least: cython.longlong,
    text: cython.const[cython.uchar][::1],
    bounds: cython.const[cython.longlong][::1],
    chain: cython.const[cython.int][::1],
    following: cython.const[cython.int][::1],
) -> cython.longlong:
    """See `next_hit`."""
    at: cython.longlong = start + least - 1
    size: cython.longlong = data.shape[0]
    key: cython.int
    jump: cython.int
    begin: cython.longlong
    literal: cython.longlong
    first: cython.longlong
    length: cython.longlong
    same: cython.longlong
    while at < size:
        key = ((data[at - 2] << 10) ^ (data[at - 1] << 5) ^ data[at]) & 0x7FFF
        jump = shift[key]
        if jump:
            at += jump
            continue
        begin = at - least + 1
        literal = chain[key]
        while literal >= 0:
            first, length = bounds[literal], bounds[literal + 1] - bounds[literal]
            same = 0
            if begin + length <= size:
                while same < length and data[begin + same] == text[first + same]:
                    same += 1
            if same == length:
                return begin
            literal = following[literal]
        at += 1
    return -1


def next_hit(
    data: cython.const[cython.uchar][::1],
    start: cython.longlong,
    shift: cython.const[cython.uchar][::1],
    least: cython.longlong,
    text: cython.const[cython.uchar][::1],
    bounds: cython.const[cython.longlong][::1],
    chain: cython.const[cython.int][::1],
    following: cython.const[cython.int][::1],
) -> int:
    """Where the first literal begins in ``data[start:]``, or -1.

    Literal k is ``text[bounds[k]:bounds[k + 1]]``. A window of ``least`` bytes (the shortest
    literal, at least three) jumps by what its last three bytes allow: ``shift``, by the 15 bits
    that they are mixed into (Wu and Manber, "A fast algorithm for multi-pattern searching", 1994).
    Of the literals whose first ``least`` bytes end in the same bits ``chain`` has one by these
    bits, and ``following`` the next by its number; -1 ends them.
    """
    result: cython.longlong
    with cython.nogil:
        result = _next_hit(data, start, shift, least, text, bounds, chain, following)
    return result
