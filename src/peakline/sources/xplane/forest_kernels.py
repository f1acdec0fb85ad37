"""Kernels over the forest of events: joining its parts, and spreading groups over it."""

from __future__ import annotations

import numba as nb
import numpy as np

__all__ = ["adjacency", "enclosing_step", "match_keys", "overlapping_group", "spread"]


@nb.njit(cache=True, nogil=True)
def adjacency(tail, head, first, nodes):  # type: ignore[no-untyped-def]
    """Heads by tail: ``heads[starts[n] : starts[n + 1]]``, in the order given.

    ``first`` holds one more edge per node, ``first[n] -> n``, put before the others; -1 for none.
    """
    starts = np.zeros(nodes + 1, np.int64)
    for n in range(first.size):
        if first[n] >= 0:
            starts[first[n] + 1] += 1
    for k in range(tail.size):
        starts[tail[k] + 1] += 1
    for n in range(nodes):
        starts[n + 1] += starts[n]
    heads = np.empty(starts[nodes], np.int32)
    at = np.empty(nodes, np.int64)
    for n in range(nodes):
        at[n] = starts[n]
    for n in range(first.size):
        if first[n] >= 0:
            heads[at[first[n]]] = n
            at[first[n]] += 1
    for k in range(tail.size):
        heads[at[tail[k]]] = head[k]
        at[tail[k]] += 1
    return starts, heads


@nb.njit(cache=True, nogil=True)
def spread(  # type: ignore[no-untyped-def]
    roots, is_loop, level, is_root, own_parent,
    nest_parent, up_starts, up_heads, down_starts, down_heads,
    group, next_group, check_only, opened,
):  # fmt: skip
    """Let each root in turn open the next group and give it to all below that has none.

    An ordinary root opens none when it has a group already or when a root of its level is among
    its ancestors (``own_parent``: it is its own). Nodes from ``nest_parent.size`` on stand for
    contexts. Writes ``group`` (-1: none) and ``opened``, the roots that opened one (with
    ``check_only`` those that could before any has), and returns how many.
    """
    count = 0
    queue = np.empty(group.size, np.int32)  # every node enters once at most
    stamp = np.zeros(group.size, np.int32)
    events = nest_parent.size
    for r in range(roots.size):
        root = roots[r]
        if not is_loop:
            if group[root] >= 0 or own_parent[root]:
                continue
            blocked = False
            mark = np.int32(r + 1)
            stamp[root] = mark
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


@nb.njit(cache=True, nogil=True)
def match_keys(producers, consumers):  # type: ignore[no-untyped-def]
    """Number the distinct keys of ``producers``; which number each end has (-1: no producer)."""
    size = 16
    while size < 2 * producers.size:
        size *= 2
    slots = np.full(size, -1, np.int32)
    keys = np.empty(producers.size, np.uint64)
    of_producer = np.empty(producers.size, np.int32)
    of_consumer = np.full(consumers.size, -1, np.int32)
    count = 0
    for k in range(producers.size):
        at = np.int64(producers[k] & np.uint64(size - 1))
        while slots[at] >= 0 and keys[slots[at]] != producers[k]:
            at = (at + 1) & (size - 1)
        if slots[at] < 0:
            slots[at] = count
            keys[count] = producers[k]
            count += 1
        of_producer[k] = slots[at]
    for k in range(consumers.size):
        at = np.int64(consumers[k] & np.uint64(size - 1))
        while slots[at] >= 0 and keys[slots[at]] != consumers[k]:
            at = (at + 1) & (size - 1)
        of_consumer[k] = slots[at]
    return count, of_producer, of_consumer


@nb.njit(cache=True, nogil=True)
def enclosing_step(step_begin, step_end, begin, end):  # type: ignore[no-untyped-def]
    """Per event the step that encloses it, or -1; the search only moves forward."""
    out = np.full(begin.size, -1, np.int64)
    at = 0
    for e in range(begin.size):
        while at < step_begin.size and step_end[at] <= begin[e]:
            at += 1
        if at == step_begin.size:
            break
        if step_begin[at] <= begin[e] and end[e] <= step_end[at]:
            out[e] = at
    return out


@nb.njit(cache=True, nogil=True)
def overlapping_group(step_begin, step_end, groups, begin, end, is_guide, none):  # type: ignore[no-untyped-def]
    """Per event the group of the step that overlaps it: the one found last, else the next.

    With ``is_guide`` the events are the steps themselves: what one gets, later ones may pass on.
    """
    out = np.full(begin.size, none, np.int64)
    at, current, group = -1, -1, none
    for e in range(begin.size):
        b, stop = begin[e], end[e]
        if current < 0 or not (step_begin[current] <= stop and b <= step_end[current]):
            current, group = -1, none
            if at >= 0 and step_begin[at] <= stop and b <= step_end[at]:
                current = at
            else:
                k = at + 1
                while k < step_begin.size and not step_begin[k] > stop:
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
    return out
