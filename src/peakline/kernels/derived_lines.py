"""Lines of the trace viewer that are made of what events of a device say."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.viewer_layout import SHORTER

__all__ = ["expand", "pair_transfers"]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _shrink(
    level: cython.longlong,
    touched: cython.longlong,
    last: cython.const[cython.longlong][::1],
    begin: cython.const[cython.longlong][::1],
    end: cython.longlong[::1],
) -> cython.void:
    """Make events of one length that lie in each other a little shorter, from ``level`` down."""
    deepest: cython.longlong = level
    top: cython.longlong
    most: cython.longlong
    by: cython.longlong = 0
    seen_begin: cython.longlong = -1
    seen_end: cython.longlong = -1
    k: cython.longlong
    e: cython.longlong
    if level >= touched or last[level] < 0:
        return
    while deepest < touched and last[deepest] >= 0:
        deepest += 1
    deepest -= 1
    if deepest <= level:
        return
    top = last[deepest]
    most = (end[top] - begin[top]) // SHORTER - 1
    for k in range(level, deepest + 1):
        e = last[k]
        if by < most and seen_begin == begin[e] and seen_end == end[e]:
            by += 1
        seen_begin, seen_end = begin[e], end[e]
        if by:
            end[e] = seen_end - SHORTER * by


def expand(
    start: cython.const[cython.longlong][::1],
    stop: cython.const[cython.longlong][::1],
    path: cython.const[cython.longlong][::1],
    first: cython.const[cython.longlong][::1],
    codes: cython.const[cython.longlong][::1],
    group: cython.const[cython.longlong][::1],
    cut: cython.const[cython.uchar][::1],
    is_gpu: cython.bint,
    at_end: cython.bint,
    begin: cython.longlong[::1],
    end: cython.longlong[::1],
    code: cython.longlong[::1],
    own: cython.longlong[::1],
    last: cython.longlong[::1],
    opened: cython.uchar[::1],
) -> int:
    """Events of a derived line, from source events by start; returns how many there are.

    Source event ``e`` goes through the names ``codes[first[p]:first[p + 1]]`` of its ``path`` p
    (-1: none), outermost first: an event of that name and ``group`` (-1: none) that is the last of
    its level grows, else a new one opens. ``cut`` closes all before the event. Writes begin, end,
    name and group (``own``) of every event, for which there is room for a name of every source
    event, and for each source event whether it ``opened`` (given as 0) or closed the outermost
    level. ``last`` (given as -1) has a place per level.
    """
    count: cython.longlong = 0
    touched: cython.longlong = 0
    e: cython.longlong
    b: cython.longlong
    s: cython.longlong
    g: cython.longlong
    lo: cython.longlong
    hi: cython.longlong
    k: cython.longlong
    level: cython.longlong
    name: cython.longlong
    o: cython.longlong
    with cython.nogil:
        for e in range(start.shape[0]):
            if cut[e]:
                _shrink(0, touched, last, begin, end)
                for k in range(touched):
                    last[k] = -1
                opened[e] = True
            if path[e] < 0:
                continue
            b, s, g = start[e], stop[e], group[e]
            lo, hi = first[path[e]], first[path[e] + 1]
            for level in range(hi - lo):
                touched = max(touched, level + 1)
                name, o = codes[lo + level], last[level]
                if (
                    o >= 0
                    and code[o] == name
                    and own[o] == g
                    and (is_gpu or g >= 0 or end[o] + 2 * (end[o] - begin[o]) >= b)
                ):
                    begin[o] = min(begin[o], b)
                    end[o] = max(end[o], s)
                    continue
                _shrink(level, touched, last, begin, end)
                for k in range(level, touched):
                    last[k] = -1
                if level == 0:
                    opened[e] = True
                begin[count], end[count], code[count], own[count] = b, s, name, g
                last[level] = count
                count += 1
            if hi > lo:
                _shrink(hi - lo, touched, last, begin, end)
                for k in range(hi - lo, touched):
                    last[k] = -1
        if at_end:
            _shrink(0, touched, last, begin, end)
    return count


def pair_transfers(
    start: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    name: cython.const[cython.longlong][::1],
    is_start: cython.const[cython.uchar][::1],
    following: cython.longlong[::1],
    head: cython.longlong[::1],
    tail: cython.longlong[::1],
    frontier: cython.longlong[::1],
    opens: cython.longlong[::1],
    closes: cython.longlong[::1],
    rows: cython.longlong[::1],
) -> int:
    """Starts and ends of transfers, by time, matched first in, first out, by ``name``.

    Writes per transfer its start's and its end's place, and the row on which it overlaps none: of
    those that are free the one that was in use last. Returns how many transfers there are.
    ``following`` (per event), ``head`` and ``tail`` (per name) are given as -1; ``frontier`` has a
    place per row that there may be.
    """
    used: cython.longlong = 0
    count: cython.longlong = 0
    e: cython.longlong
    n: cython.longlong
    o: cython.longlong
    k: cython.longlong
    b: cython.longlong
    s: cython.longlong
    row: cython.longlong
    least: cython.longlong
    with cython.nogil:
        for e in range(start.shape[0]):
            n = name[e]
            if is_start[e]:
                if head[n] < 0:
                    head[n] = e
                else:
                    following[tail[n]] = e
                tail[n] = e
                continue
            if head[n] < 0:
                continue
            o = head[n]
            head[n] = following[o]
            b = start[o]
            s = max(b, end[e])
            row, least = -1, b
            for k in range(used):
                if frontier[k] <= least:
                    row, least = k, frontier[k]
            if row < 0:
                if used < frontier.shape[0]:
                    frontier[used] = s
                    used += 1
                row = used - 1
            frontier[row] = max(frontier[row], s)
            opens[count], closes[count], rows[count] = o, e, row
            count += 1
    return count
