"""What encloses what among the events of a line."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import low64, unsigned64

__all__ = ["in_order", "nest", "regions", "resolve"]


def regions(
    begin: cython.const[cython.longlong][:],
    base: cython.longlong,
    marks: cython.const[cython.longlong][:],
    start: cython.longlong[::1],
    out: cython.longlong[:, ::1],
) -> int:
    """Begin and length of the thread-pool regions of one line, or of a part of it.

    Every stop after a start makes a region that reaches back to the latest start; a start at
    absolute time zero (``base + begin``) counts as none. ``marks`` holds starts (twice the
    event's number) and stops (plus one) in order; ``start`` the latest start before them (its
    begin and whether there is one), in and out. Writes the rows of ``out``, which has room for
    one per mark, and returns how many.
    """
    count: cython.longlong = 0
    k: cython.longlong
    at: cython.longlong
    with cython.nogil:
        for k in range(marks.shape[0]):
            at = begin[marks[k] >> 1]
            if marks[k] & 1 == 0:
                start[0] = at
                start[1] = low64(unsigned64(base) + unsigned64(at)) != 0
            elif start[1]:
                out[0, count] = start[0]
                out[1, count] = at - start[0]
                count += 1
    return count


def nest(
    begin: cython.const[cython.longlong][:],
    length: cython.const[cython.longlong][:],
    node: cython.const[cython.int][:],
    base: cython.longlong,
    region_begin: cython.const[cython.longlong][:],
    region_length: cython.const[cython.longlong][:],
    is_async: cython.const[cython.uchar][:],
    first_async: cython.longlong,
    parent: cython.int[:],
    owner: cython.int[:],
    stack: cython.ulonglong[:, ::1],
    stack_node: cython.longlong[::1],
    at: cython.longlong[::1],
) -> bool:
    """The nearest enclosing node of every node of one line, or of a part of it.

    Events in file order, with the regions (sorted: by begin, longest first) merged in. An event
    encloses a later one when both its ends do (inclusive) and it has not been closed by an event
    that it does not enclose. ``node`` is -1 for events that are no nodes: they enclose too, on
    behalf of what encloses them. Asynchronous nodes (``is_async[node - first_async]``, if not
    empty) neither enclose nor are enclosed. Writes ``parent[node]`` and, unless it is empty,
    ``owner[event]``: the node itself or its nearest enclosing node, or -1.

    ``stack`` (begin and end) and ``stack_node`` hold the open events and carry over from part to
    part; ``at`` the height, the next event and the next region, in and out. Returns False when
    the stack is full: call again with a larger one.
    """
    top: cython.longlong = at[0]
    e: cython.longlong = at[1]
    r: cython.longlong = at[2]
    n: cython.longlong
    above: cython.longlong
    b: cython.ulonglong
    size: cython.ulonglong
    end: cython.ulonglong
    rb: cython.ulonglong
    rl: cython.ulonglong
    is_region: cython.bint
    zero: cython.ulonglong = unsigned64(base)
    events: cython.longlong = begin.shape[0]
    extra: cython.longlong = region_begin.shape[0]
    room: cython.longlong = stack_node.shape[0]
    check_async: cython.bint = is_async.shape[0] > 0
    want_owner: cython.bint = owner.shape[0] > 0
    with cython.nogil:
        while e < events and top < room:
            b, size, n = unsigned64(begin[e]), unsigned64(length[e]), node[e]
            is_region = False
            if r < extra:
                rb, rl = unsigned64(region_begin[r]), unsigned64(region_length[r])
                if rb < b or (rb == b and rl > size):
                    b, size, n, is_region = rb, rl, -1, True
                    r += 1
            if not is_region:
                e += 1
                if check_async and n >= 0 and is_async[n - first_async]:
                    parent[n] = -1
                    if want_owner:
                        owner[e - 1] = n
                    continue
            b = low64(b + zero)
            end = low64(b + size)
            while top > 0 and not (stack[0, top - 1] <= b and end <= stack[1, top - 1]):
                top -= 1
            above = -1
            if top > 0:
                above = stack_node[top - 1]
            if n >= 0:
                parent[n] = above
                above = n
            if want_owner and not is_region:
                owner[e - 1] = above
            stack[0, top] = b
            stack[1, top] = end
            stack_node[top] = above
            top += 1
    at[0], at[1], at[2] = top, e, r
    return e == events


def resolve(
    noted: cython.int[:],
    first: cython.longlong,
    last: cython.longlong,
    node: cython.const[cython.int][:],
    owner: cython.const[cython.int][:],
) -> int:
    """Replace event numbers (``first`` to ``last``): n for the node n itself, -2 - n for an event
    inside of it, -1 for one inside of none. Stops at a later event; returns how many it did.
    """
    k: cython.longlong
    e: cython.longlong
    done: cython.longlong = noted.shape[0]
    with cython.nogil:
        for k in range(noted.shape[0]):
            if noted[k] >= last:
                done = k
                break
            e = noted[k] - first
            if node[e] >= 0:
                noted[k] = node[e]
            else:
                noted[k] = -2 - owner[e] if owner[e] >= 0 else -1
    return done


def in_order(
    begin: cython.const[cython.longlong][:],
    length: cython.const[cython.longlong][:],
    last: cython.longlong[::1],
) -> bool:
    """Whether events are sorted by begin, longest first (unsigned), after ``last`` (begin and
    length of the event before them, and whether there is one), which is updated.
    """
    b: cython.ulonglong = unsigned64(last[0])
    size: cython.ulonglong = unsigned64(last[1])
    next_b: cython.ulonglong
    next_size: cython.ulonglong
    known: cython.bint = last[2] != 0
    is_sorted: cython.bint = True
    e: cython.longlong
    count: cython.longlong = begin.shape[0]
    with cython.nogil:
        for e in range(count):
            next_b, next_size = unsigned64(begin[e]), unsigned64(length[e])
            if known and (next_b < b or (next_b == b and next_size > size)):
                is_sorted = False
                break
            b, size, known = next_b, next_size, True
    if is_sorted and count:
        last[0], last[1], last[2] = begin[count - 1], length[count - 1], 1
    return is_sorted
