"""Topological order, and the parts of a graph that go in circles."""

from __future__ import annotations

import cython

__all__ = ["components", "unreached"]


def unreached(
    first: cython.const[cython.longlong][::1],
    order: cython.const[cython.longlong][::1],
    targets: cython.const[cython.longlong][::1],
    is_control: cython.const[cython.uchar][::1],
    is_back: cython.const[cython.uchar][::1],
    is_loop_merge: cython.const[cython.uchar][::1],
    stuck: cython.uchar[::1],
    pending: cython.longlong[::1],
    entered: cython.uchar[::1],
    ready: cython.longlong[::1],
) -> None:
    """Mark in ``stuck`` (given as 1) the nodes that never become ready, a node being taken as soon
    as its inputs have been.

    The edges that leave node n are ``order[first[n] : first[n + 1]]``. ``is_back`` marks edges that
    need not be waited for; a node of ``is_loop_merge`` waits for its control inputs and for one
    data input. ``pending``, ``entered`` (given as 0) and ``ready`` are room for a number per node.
    """
    nodes: cython.longlong = first.shape[0] - 1
    filled: cython.longlong = 0
    taken: cython.longlong = 0
    edge: cython.longlong
    node: cython.longlong
    after: cython.longlong
    at: cython.longlong
    with cython.nogil:
        for edge in range(targets.shape[0]):
            node = targets[edge]
            if not is_back[edge] and (is_control[edge] or not is_loop_merge[node]):
                pending[node] += 1
        for node in range(nodes):
            if is_loop_merge[node]:
                pending[node] += 1
            if pending[node] == 0:
                ready[filled] = node
                filled += 1
        while taken < filled:
            node = ready[taken]
            taken += 1
            stuck[node] = False
            for at in range(first[node], first[node + 1]):
                edge = order[at]
                if is_back[edge]:
                    continue
                after = targets[edge]
                if is_loop_merge[after] and not is_control[edge]:
                    if entered[after]:
                        continue
                    entered[after] = True
                pending[after] -= 1
                if pending[after] == 0:
                    ready[filled] = after
                    filled += 1


def components(
    first: cython.const[cython.longlong][::1],
    order: cython.const[cython.longlong][::1],
    targets: cython.const[cython.longlong][::1],
    use_edge: cython.const[cython.uchar][::1],
    use_node: cython.const[cython.uchar][::1],
    result: cython.longlong[::1],
    sizes: cython.longlong[::1],
    seen: cython.longlong[::1],
    low: cython.longlong[::1],
    at: cython.longlong[::1],
    path: cython.longlong[::1],
    open_nodes: cython.longlong[::1],
) -> int:
    """The strongly connected component of every node in use (Tarjan 1972) into ``result``.

    Only edges of ``use_edge`` between nodes of ``use_node`` are followed. Components are numbered
    from 0, ``sizes`` (given as 0) gets the nodes of each, and their number returns. ``result`` and
    ``seen`` are given as -1, ``at`` as ``first`` without its end; ``low``, ``path`` and
    ``open_nodes`` are room for a number per node.
    """
    nodes: cython.longlong = first.shape[0] - 1
    count: cython.longlong = 0
    number: cython.longlong = 0
    opened: cython.longlong = 0
    depth: cython.longlong
    root: cython.longlong
    node: cython.longlong
    edge: cython.longlong
    after: cython.longlong
    member: cython.longlong
    with cython.nogil:
        for root in range(nodes):
            if not use_node[root] or seen[root] >= 0:
                continue
            depth = 0
            path[0] = root
            seen[root] = number
            low[root] = number
            number += 1
            open_nodes[opened] = root
            opened += 1
            while depth >= 0:
                node = path[depth]
                if at[node] < first[node + 1]:
                    edge = order[at[node]]
                    at[node] += 1
                    after = targets[edge]
                    if not use_edge[edge] or not use_node[after]:
                        continue
                    if seen[after] < 0:
                        seen[after] = number
                        low[after] = number
                        number += 1
                        open_nodes[opened] = after
                        opened += 1
                        depth += 1
                        path[depth] = after
                    elif result[after] < 0 and seen[after] < low[node]:
                        low[node] = seen[after]
                    continue
                if low[node] == seen[node]:
                    while True:
                        opened -= 1
                        member = open_nodes[opened]
                        result[member] = count
                        sizes[count] += 1
                        if member == node:
                            break
                    count += 1
                depth -= 1
                if depth >= 0 and low[node] < low[path[depth]]:
                    low[path[depth]] = low[node]
    return count
