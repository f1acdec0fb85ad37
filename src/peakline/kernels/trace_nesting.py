"""Ends, nesting and self time of the events of a trace, line by line."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import low64, signed64, unsigned64
    from peakline.kernels.trace_layout import MOST_ROWS

__all__ = ["depths", "ends", "nearest", "nest", "self_times"]


def depths(parent: cython.const[cython.int][::1], depth: cython.int[::1]) -> None:
    """Write how many events enclose each, by its ``parent`` as `nest` writes it: an earlier one."""
    e: cython.longlong
    with cython.nogil:
        for e in range(parent.shape[0]):
            depth[e] = depth[parent[e]] + 1 if parent[e] >= 0 else 0


def nearest(
    parent: cython.const[cython.int][::1],
    wanted: cython.const[cython.uchar][::1],
    result: cython.int[::1],
) -> None:
    """Write the innermost event that is ``wanted`` of each and those around it, -1 for none; by
    ``parent`` as `nest` writes it.
    """
    e: cython.longlong
    with cython.nogil:
        for e in range(parent.shape[0]):
            if wanted[e]:
                result[e] = e
            else:
                result[e] = result[parent[e]] if parent[e] >= 0 else -1


def ends(
    start: cython.const[cython.longlong][::1],
    duration: cython.const[cython.longlong][::1],
    first: cython.const[cython.longlong][::1],
    farthest: cython.longlong,
    end: cython.longlong[::1],
    odd: cython.uchar[::1],
) -> tuple[int, int]:
    """Write the end of every event: of one with a negative duration its start, of one beyond the
    clock ``farthest``.

    Sets per line (``first[k]:first[k + 1]``) in ``odd`` whether an event begins before the one in
    front of it, or at the same time and lasts longer. Returns the first start and the last end of
    all, 0 among them.
    """
    line: cython.longlong
    e: cython.longlong
    b: cython.longlong
    length: cython.longlong
    stop: cython.longlong
    before: cython.longlong
    lasted: cython.longlong
    least: cython.longlong = 0
    most: cython.longlong = 0
    is_odd: cython.bint
    with cython.nogil:
        for line in range(first.shape[0] - 1):
            is_odd, before, lasted = False, 0, 0
            for e in range(first[line], first[line + 1]):
                b, length = start[e], duration[e]
                stop = signed64(low64(unsigned64(b) + unsigned64(length)))
                if stop < b:
                    stop = b if length < 0 else farthest
                end[e] = stop
                if e > first[line] and (b < before or (b == before and length > lasted)):
                    is_odd = True
                before, lasted = b, length
                least = min(least, b)
                most = max(most, stop)
            odd[line] = is_odd
    return least, most


def self_times(
    start: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    event: cython.const[cython.int][::1],
    first: cython.const[cython.longlong][::1],
    nests: cython.const[cython.uchar][::1],
    total: cython.longlong[::1],
    own: cython.longlong[::1],
    stack: cython.longlong[:, ::1],
) -> bool:
    """Of the events ``event`` (places, those of line k ``first[k]:first[k + 1]``) how long each
    took, and its duration without what its direct children among them cover; as `nest`.

    ``stack`` is room for the events that are open at a time: their number, their end, and how far
    their children have covered them. Returns False where it is too small: call again with more.
    """
    line: cython.longlong
    k: cython.longlong
    e: cython.longlong
    b: cython.longlong
    stop: cython.longlong
    seen: cython.longlong
    top: cython.longlong
    has_room: cython.bint = True
    with cython.nogil:
        for line in range(first.shape[0] - 1):
            top = 0
            for k in range(first[line], first[line + 1]):
                e = event[k]
                b, stop = start[e], end[e]
                total[k] = stop - b
                own[k] = stop - b
                while top > 0 and stack[1, top - 1] < stop:
                    top -= 1
                if top > 0:
                    seen = stack[2, top - 1]
                    if stop > seen:
                        own[stack[0, top - 1]] -= stop - (max(seen, b))
                        stack[2, top - 1] = stop
                if stop == b or not nests[line]:
                    continue
                if top == stack.shape[1]:
                    has_room = False
                    break
                stack[0, top], stack[1, top], stack[2, top] = k, stop, b
                top += 1
            if not has_room:
                break
    return has_room


def nest(
    start: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    first: cython.const[cython.longlong][::1],
    nests: cython.const[cython.uchar][::1],
    parent: cython.int[::1],
    row: cython.ushort[::1],
    own: cython.longlong[::1],
    row_end: cython.longlong[::1],
    stack: cython.longlong[:, ::1],
) -> bool:
    """Nesting of the events of every line that ``nests``; each line sorted by start, longest first.

    An event lies in the innermost open event that ends no sooner than it does; an instant encloses
    nothing. Writes ``parent`` (the index of that event, -1), ``row`` (0 for an event in none; one
    below the parent's, further down where one that overlaps it in part is in the way) and ``own``:
    its duration without what its direct children cover. ``row`` and ``own`` may be empty: then they
    are not wanted.

    ``row_end`` has `MOST_ROWS` places; ``stack`` is room for the events that are open at a time and
    for how far their children have covered them. Returns False where it is too small: call again
    with more.
    """
    line: cython.longlong
    e: cython.longlong
    b: cython.longlong
    stop: cython.longlong
    seen: cython.longlong
    above: cython.longlong
    at: cython.longlong
    top: cython.longlong
    rows: cython.longlong
    one: cython.ulonglong = 1
    lowest: cython.longlong = signed64(one << 63)
    draws: cython.bint = row.shape[0] > 0
    measures: cython.bint = own.shape[0] > 0
    has_room: cython.bint = True
    with cython.nogil:
        for line in range(first.shape[0] - 1):
            top, rows = 0, 0
            for e in range(first[line], first[line + 1]):
                b, stop = start[e], end[e]
                if measures:
                    own[e] = stop - b
                while top > 0 and end[stack[0, top - 1]] < stop:
                    top -= 1
                above = -1
                if top > 0:
                    above = stack[0, top - 1]
                    seen = stack[1, top - 1]
                    if measures and stop > seen:
                        own[above] -= stop - (max(seen, b))
                        stack[1, top - 1] = stop
                parent[e] = above
                if draws:
                    at = row[above] + 1 if above >= 0 else 0
                    while at < rows and at < MOST_ROWS - 1 and row_end[at] > b:
                        at += 1
                    at = min(at, MOST_ROWS - 1)
                    while rows <= at:
                        row_end[rows] = lowest
                        rows += 1
                    row_end[at] = stop
                    row[e] = at
                if stop == b or not nests[line]:
                    continue
                if top == stack.shape[1]:
                    has_room = False
                    break
                stack[0, top], stack[1, top] = e, b
                top += 1
            if not has_room:
                break
    return has_room
