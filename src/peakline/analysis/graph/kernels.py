"""Kernels that follow edges: topological order, and the parts of a graph that go in circles."""

from __future__ import annotations

import numba as nb
import numpy as np

__all__ = ["components", "outgoing", "unreached"]


@nb.njit(cache=True, nogil=True)
def outgoing(sources, nodes):  # type: ignore[no-untyped-def]
    """Edges by the node they leave: ``order[first[n] : first[n + 1]]`` are those of node n."""
    first = np.zeros(nodes + 1, np.int64)
    for edge in range(sources.size):
        first[sources[edge] + 1] += 1
    for node in range(nodes):
        first[node + 1] += first[node]
    order = np.empty(sources.size, np.int64)
    filled = first[:-1].copy()
    for edge in range(sources.size):
        node = sources[edge]
        order[filled[node]] = edge
        filled[node] += 1
    return first, order


@nb.njit(cache=True, nogil=True)
def unreached(first, order, targets, is_control, is_back, is_loop_merge):  # type: ignore[no-untyped-def]
    """Which nodes never become ready when a node is taken as soon as its inputs have been.

    ``is_back`` marks edges that need not be waited for; a node of ``is_loop_merge`` waits for
    its control inputs and for one data input.
    """
    nodes = first.size - 1
    pending = np.zeros(nodes, np.int64)
    entered = np.zeros(nodes, np.bool_)
    for edge in range(targets.size):
        node = targets[edge]
        if not is_back[edge] and (is_control[edge] or not is_loop_merge[node]):
            pending[node] += 1
    ready = np.empty(nodes, np.int64)
    filled = 0
    for node in range(nodes):
        pending[node] += is_loop_merge[node]
        if pending[node] == 0:
            ready[filled] = node
            filled += 1
    stuck = np.ones(nodes, np.bool_)
    taken = 0
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
    return stuck


@nb.njit(cache=True, nogil=True)
def components(first, order, targets, use_edge, use_node):  # type: ignore[no-untyped-def]
    """The strongly connected component of every node in use (Tarjan 1972), -1 for others.

    Only edges of ``use_edge`` between nodes of ``use_node`` are followed. Components are
    numbered from 0; second, the number of nodes of each.
    """
    nodes = first.size - 1
    found = np.full(nodes, -1, np.int64)
    seen = np.full(nodes, -1, np.int64)
    low = np.zeros(nodes, np.int64)
    at = first[:-1].copy()
    path = np.empty(nodes, np.int64)
    open_nodes = np.empty(nodes, np.int64)
    sizes = np.zeros(nodes, np.int64)
    count, number, opened = 0, 0, 0
    for root in range(nodes):
        if not use_node[root] or seen[root] >= 0:
            continue
        depth = 0
        path[0] = root
        seen[root] = low[root] = number
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
                    seen[after] = low[after] = number
                    number += 1
                    open_nodes[opened] = after
                    opened += 1
                    depth += 1
                    path[depth] = after
                elif found[after] < 0:
                    low[node] = min(low[node], seen[after])
                continue
            if low[node] == seen[node]:
                while True:
                    opened -= 1
                    member = open_nodes[opened]
                    found[member] = count
                    sizes[count] += 1
                    if member == node:
                        break
                count += 1
            depth -= 1
            if depth >= 0:
                low[path[depth]] = min(low[path[depth]], low[node])
    return found, sizes[:count].copy()
