"""The forest of events: joining its parts, and spreading groups over it."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import signed64

__all__ = [
    "adjacency",
    "enclosing_step",
    "last_before",
    "match_keys",
    "overlapping_group",
    "spread",
]


def adjacency(
    tail: cython.const[cython.int][::1],
    head: cython.const[cython.int][::1],
    first: cython.const[cython.int][::1],
    starts: cython.int[::1],
    heads: cython.int[::1],
) -> None:
    """Heads by tail: ``heads[starts[n] : starts[n + 1]]``, in the order given.

    ``first`` holds one more edge per node, ``first[n] -> n``, put before the others; -1 for none.
    ``starts`` comes zeroed, two longer than there are nodes; ``heads`` has room for all edges.
    """
    n: cython.longlong
    k: cython.longlong
    at: cython.longlong
    with cython.nogil:
        # Counted two places further, summed up to where each begins one place further: what is
        # put there moves that to where the next one begins.
        for n in range(first.shape[0]):
            if first[n] >= 0:
                starts[first[n] + 2] += 1
        for k in range(tail.shape[0]):
            starts[tail[k] + 2] += 1
        for n in range(2, starts.shape[0]):
            starts[n] += starts[n - 1]
        for n in range(first.shape[0]):
            if first[n] >= 0:
                at = starts[first[n] + 1]
                heads[at] = n
                starts[first[n] + 1] = at + 1
        for k in range(tail.shape[0]):
            at = starts[tail[k] + 1]
            heads[at] = head[k]
            starts[tail[k] + 1] = at + 1


def spread(
    roots: cython.const[cython.int][::1],
    is_loop: cython.bint,
    level: cython.const[cython.int][::1],
    is_root: cython.const[cython.uchar][::1],
    own_parent: cython.const[cython.uchar][::1],
    nest_parent: cython.const[cython.int][::1],
    up_starts: cython.const[cython.int][::1],
    up_heads: cython.const[cython.int][::1],
    down_starts: cython.const[cython.int][::1],
    down_heads: cython.const[cython.int][::1],
    group: cython.int[::1],
    next_group: cython.longlong,
    check_only: cython.bint,
    opened: cython.int[::1],
    queue: cython.int[::1],
    stamp: cython.int[::1],
) -> int:
    """Let each root in turn open the next group and give it to all below that has none.

    An ordinary root opens none when it has a group already or when a root of its level is among
    its ancestors (``own_parent``: it is its own). Nodes from ``nest_parent.size`` on stand for
    contexts. Writes ``group`` (-1: none) and ``opened``, the roots that opened one (with
    ``check_only`` those that could before any has), and returns how many.

    ``queue`` and ``stamp`` are as long as ``group``; ``stamp`` comes zeroed.
    """
    count: cython.longlong = 0
    events: cython.longlong = nest_parent.shape[0]
    r: cython.longlong
    k: cython.longlong
    root: cython.longlong
    n: cython.longlong
    size: cython.longlong
    at: cython.longlong
    above: cython.longlong
    below: cython.longlong
    extra: cython.longlong
    mark: cython.longlong
    blocked: cython.bint
    with cython.nogil:
        for r in range(roots.shape[0]):
            root = roots[r]
            if not is_loop:
                if group[root] >= 0 or own_parent[root]:
                    continue
                blocked = False
                mark = r + 1
                stamp[root] = mark
                # Every node enters once at most.
                queue[0] = root
                size, at = 1, 0
                while at < size and not blocked:
                    n = queue[at]
                    at += 1
                    extra = 1 if n < events and nest_parent[n] >= 0 else 0
                    for k in range(up_starts[n] - extra, up_starts[n + 1]):
                        above = nest_parent[n] if k < up_starts[n] else up_heads[k]
                        if stamp[above] == mark:
                            continue
                        stamp[above] = mark
                        if above < events and is_root[above] and level[above] == level[root]:
                            blocked = True
                            break
                        queue[size] = above
                        size += 1
                if blocked:
                    continue
            opened[count] = root
            count += 1
            if check_only:
                continue
            if group[root] < 0:
                group[root] = next_group
                queue[0] = root
                size = 1
                while size > 0:
                    size -= 1
                    n = queue[size]
                    for k in range(down_starts[n], down_starts[n + 1]):
                        below = down_heads[k]
                        if group[below] < 0:
                            group[below] = next_group
                            queue[size] = below
                            size += 1
            next_group += 1
    return count


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _slot_of(
    key: cython.ulonglong,
    slots: cython.const[cython.int][::1],
    keys: cython.const[cython.ulonglong][::1],
) -> cython.longlong:
    """The slot that holds the number of ``key``, or the empty one where it belongs."""
    mask: cython.longlong = slots.shape[0] - 1
    at: cython.longlong = signed64(key) & mask
    while slots[at] >= 0 and keys[slots[at]] != key:
        at = (at + 1) & mask
    return at


def match_keys(
    producers: cython.const[cython.ulonglong][::1],
    consumers: cython.const[cython.ulonglong][::1],
    slots: cython.int[::1],
    keys: cython.ulonglong[::1],
    of_producer: cython.int[::1],
    of_consumer: cython.int[::1],
) -> int:
    """Number the distinct keys of ``producers``; which number each end has (-1: no producer).

    ``slots`` comes full of -1; there are a power of two of them, at least twice as many as
    producers, and some. ``keys`` has room for one per producer. Returns how many keys there are.
    """
    count: cython.longlong = 0
    k: cython.longlong
    at: cython.longlong
    with cython.nogil:
        for k in range(producers.shape[0]):
            at = _slot_of(producers[k], slots, keys)
            if slots[at] < 0:
                slots[at] = count
                keys[count] = producers[k]
                count += 1
            of_producer[k] = slots[at]
        for k in range(consumers.shape[0]):
            of_consumer[k] = slots[_slot_of(consumers[k], slots, keys)]
    return count


def last_before(
    order: cython.const[cython.longlong][::1],
    key: cython.const[cython.longlong][::1],
    node: cython.const[cython.int][::1],
    thread: cython.const[cython.int][::1],
    begin: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    cause: cython.longlong[::1],
) -> None:
    """For each consumer the producer of its key that began last before it.

    Rows are producers, then consumers; ``order`` sorts them by key, then time, producers first.
    ``thread``, ``begin`` and ``end`` are those of what a producer is part of: where that shares
    time with an earlier one of another thread, nothing says whose the consumer is. ``cause``
    (given as -1, one per consumer) is the producer, -2 where that is open; no node is its own.
    """
    producers: cython.longlong = thread.shape[0]
    k: cython.longlong
    row: cython.longlong
    last: cython.longlong = -1
    before: cython.longlong = -1
    result: cython.longlong
    first: cython.longlong = -1
    second: cython.longlong = -1
    other: cython.longlong
    with cython.nogil:
        for k in range(order.shape[0]):
            row = order[k]
            if k == 0 or key[row] != key[order[k - 1]]:
                last, before, first, second = -1, -1, -1, -1
            if row < producers:
                last, before = row, last
                # Of two threads the producers that last longest: one of them is another's.
                if first < 0 or thread[row] == thread[first]:
                    if first < 0 or end[row] > end[first]:
                        first = row
                elif end[row] > end[first]:
                    first, second = row, first
                elif second < 0 or end[row] > end[second]:
                    second = row
                continue
            result = last
            if result >= 0 and node[result] == node[row]:
                result = before
            if result < 0:
                continue
            other = second if thread[first] == thread[result] else first
            cause[row - producers] = result if other < 0 or end[other] <= begin[result] else -2


def enclosing_step(
    step_begin: cython.const[cython.ulonglong][::1],
    step_end: cython.const[cython.ulonglong][::1],
    begin: cython.const[cython.ulonglong][::1],
    end: cython.const[cython.ulonglong][::1],
    out: cython.longlong[::1],
) -> None:
    """Per event the step that encloses it; ``out`` comes full of -1, for none.

    The search only moves forward.
    """
    at: cython.longlong = 0
    e: cython.longlong
    steps: cython.longlong = step_begin.shape[0]
    with cython.nogil:
        for e in range(begin.shape[0]):
            while at < steps and step_end[at] <= begin[e]:
                at += 1
            if at == steps:
                break
            if step_begin[at] <= begin[e] and end[e] <= step_end[at]:
                out[e] = at


def overlapping_group(
    step_begin: cython.const[cython.ulonglong][::1],
    step_end: cython.const[cython.ulonglong][::1],
    groups: cython.longlong[::1],
    begin: cython.const[cython.ulonglong][::1],
    end: cython.const[cython.ulonglong][::1],
    is_guide: cython.bint,
    none: cython.longlong,
    out: cython.longlong[::1],
) -> None:
    """Per event the group of the step that overlaps it: the one found last, else the next;
    ``none`` where there is none.

    With ``is_guide`` the events are the steps themselves: what one gets, later ones may pass on.
    """
    at: cython.longlong = -1
    current: cython.longlong = -1
    group: cython.longlong = none
    e: cython.longlong
    k: cython.longlong
    b: cython.ulonglong
    stop: cython.ulonglong
    steps: cython.longlong = step_begin.shape[0]
    with cython.nogil:
        for e in range(begin.shape[0]):
            b, stop = begin[e], end[e]
            if current < 0 or not (step_begin[current] <= stop and b <= step_end[current]):
                current, group = -1, none
                if at >= 0 and step_begin[at] <= stop and b <= step_end[at]:
                    current = at
                else:
                    k = at + 1
                    while k < steps and not step_begin[k] > stop:
                        if step_end[k] >= b:
                            at = k
                            if step_begin[k] <= stop and b <= step_end[k]:
                                current = k
                            break
                        k += 1
                if current >= 0:
                    group = groups[current]
            out[e] = group
            if is_guide and groups[e] == none:
                groups[e] = group
