"""Lines made of what events of a device tell: compiled, since each event depends on the last."""

from __future__ import annotations

import numba as nb
import numpy as np

__all__ = ["expand", "pair_transfers"]

_NONE = -1
_SHORTER = 1000
"""Picoseconds by which an event is drawn shorter than the one it lies in."""


@nb.njit(cache=True, nogil=True)
def _shrink(level, touched, last, begin, end):  # type: ignore[no-untyped-def]
    """Make events of one length that lie in each other a little shorter, from ``level`` down."""
    if level >= touched or last[level] < 0:
        return
    deepest = level
    while deepest < touched and last[deepest] >= 0:
        deepest += 1
    deepest -= 1
    if deepest <= level:
        return
    top = last[deepest]
    most = (end[top] - begin[top]) // _SHORTER - 1
    by, seen_begin, seen_end = 0, np.int64(-1), np.int64(-1)
    for k in range(level, deepest + 1):
        e = last[k]
        if by < most and seen_begin == begin[e] and seen_end == end[e]:
            by += 1
        seen_begin, seen_end = begin[e], end[e]
        if by:
            end[e] = seen_end - _SHORTER * by


@nb.njit(cache=True, nogil=True)
def expand(start, stop, path, first, codes, group, cut, is_gpu, at_end):  # type: ignore[no-untyped-def]
    """Events of a derived line, from source events by start.

    Source event ``e`` goes through the names ``codes[first[p]:first[p + 1]]`` of its ``path`` p
    (-1: none), outermost first: an event of that name and ``group`` (-1: none) that is the last of
    its level grows, else a new one opens. ``cut`` closes all before the event. Returns begin, end,
    name and group of every event, and for each source event whether it opened or closed the
    outermost level.
    """
    room = 0
    deepest = 0
    for e in range(start.size):
        if path[e] >= 0:
            size = first[path[e] + 1] - first[path[e]]
            room += size
            deepest = max(deepest, size)
    begin, end = np.empty(room, np.int64), np.empty(room, np.int64)
    code, own = np.empty(room, np.int64), np.empty(room, np.int64)
    last = np.full(deepest + 1, _NONE, np.int64)
    opened = np.zeros(start.size, np.bool_)
    count, touched = 0, 0
    for e in range(start.size):
        if cut[e]:
            _shrink(0, touched, last, begin, end)
            last[:touched] = _NONE
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
                begin[o], end[o] = min(begin[o], b), max(end[o], s)
                continue
            _shrink(level, touched, last, begin, end)
            last[level:touched] = _NONE
            if level == 0:
                opened[e] = True
            begin[count], end[count], code[count], own[count] = b, s, name, g
            last[level] = count
            count += 1
        if hi > lo:
            _shrink(hi - lo, touched, last, begin, end)
            last[hi - lo : touched] = _NONE
    if at_end:
        _shrink(0, touched, last, begin, end)
    return begin[:count], end[:count], code[:count], own[:count], opened


@nb.njit(cache=True, nogil=True)
def pair_transfers(start, end, name, is_start, names, most_rows):  # type: ignore[no-untyped-def]
    """Starts and ends of transfers, by time, matched first in, first out, by ``name``.

    Returns per transfer its start's and its end's place, and the row on which it overlaps none:
    of those that are free the one that was in use last.
    """
    size = start.size
    following = np.full(size, _NONE, np.int64)
    head, tail = np.full(names, _NONE, np.int64), np.full(names, _NONE, np.int64)
    opens, closes, rows = (
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
    )
    frontier = np.empty(most_rows, np.int64)
    used, count = 0, 0
    for e in range(size):
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
        b, s = start[o], max(start[o], end[e])
        row, least = _NONE, b
        for k in range(used):
            if frontier[k] <= least:
                row, least = k, frontier[k]
        if row < 0:
            if used < most_rows:
                frontier[used] = s
                used += 1
            row = used - 1
        frontier[row] = max(frontier[row], s)
        opens[count], closes[count], rows[count] = o, e, row
        count += 1
    return opens[:count], closes[:count], rows[:count]
