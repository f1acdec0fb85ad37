"""Cycles: nodes that wait for each other, but for loops through NextIteration into Merge.

As ``GraphConstructor`` does it (tensorflow/core/common_runtime/graph_constructor.cc): nodes are
taken when all their inputs have been; a Merge with an input from a NextIteration waits for one
data input only. What can never be taken is in a cycle or behind one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from peakline.arrays import AnyArray
from peakline.graph.index import GraphIndex
from peakline.graph.rules import BrokenRule, broken_at, quoted
from peakline.kernels.graph_order import components, unreached

_NEXT_ITERATION = ("NextIteration", "RefNextIteration")
_MERGE = ("Merge", "RefMerge", "_XlaMerge")
_MOST_NAMED = 10


def check_cycles(index: GraphIndex) -> Iterator[BrokenRule]:
    """Every set of nodes that cannot run because they wait for each other."""
    count = index.nodes.rows
    whole = np.flatnonzero((index.source_row >= 0) & (index.target_row >= 0))
    sources, targets = index.source_row[whole], index.target_row[whole]
    control = index.edges.array("is_control")[whole].astype(np.bool_)
    ops = index.nodes.names("op")
    is_next = np.array([op in _NEXT_ITERATION for op in ops.values], np.bool_)[ops.codes]
    is_merge = np.array([op in _MERGE for op in ops.values], np.bool_)[ops.codes]
    back = ~control & is_next[sources] & is_merge[targets]
    loop_merge = np.zeros(count, np.bool_)
    loop_merge[targets[back]] = True

    # The edges that leave node n are order[first[n] : first[n + 1]].
    order = np.argsort(sources, kind="stable")
    first = np.append(0, np.cumsum(np.bincount(sources, minlength=count)))
    stuck, entered = np.ones(count, np.bool_), np.zeros(count, np.bool_)
    room = np.zeros((2, count), np.int64)
    unreached(first, order, targets, control, back, loop_merge, stuck, room[0], entered, room[1])
    if not stuck.any():
        return
    # The component of every node, -1 for what is in none, and how many nodes each has.
    result, seen = np.full((2, count), -1, np.int64)
    sizes, low, path, open_nodes = np.zeros((4, count), np.int64)
    components(
        first, order, targets, ~back, stuck,
        result, sizes, seen, low, first[:-1].copy(), path, open_nodes,
    )  # fmt: skip
    inside = (result[sources] >= 0) & (result[sources] == result[targets]) & ~back
    edges = np.flatnonzero(inside)
    component = result[sources[edges]]
    edges = edges[np.argsort(component, kind="stable")]
    circular, starts = np.unique(np.sort(component), return_index=True)
    stops = np.append(starts, edges.size)[1:]
    for number, start, stop in zip(circular.tolist(), starts.tolist(), stops.tolist(), strict=True):
        circle = edges[start:stop]
        around = _shortest_cycle(sources[circle], targets[circle])
        yield _cycle(index, around, int(sizes[number]), is_next)
    entries = np.zeros(count, np.bool_)
    entries[targets[~back & ~control]] = True
    for node in np.flatnonzero(stuck & loop_merge & ~entries).tolist():
        message = "every data input comes from a NextIteration: the loop has no way in"
        yield broken_at(index, node, "cycle", message)


def _shortest_cycle(sources: AnyArray, targets: AnyArray) -> list[int]:
    """A shortest way from the first node of a component back to itself, along its edges."""
    start = int(sources.min())
    after: dict[int, list[int]] = {}
    for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
        after.setdefault(source, []).append(target)
    came_from: dict[int, int] = {}
    front = [start]
    while start not in came_from:
        reached: list[int] = []
        for node in front:
            for target in after.get(node, ()):
                if target not in came_from:
                    came_from[target] = node
                    reached.append(target)
        front = reached
    path, node = [], came_from[start]
    while node != start:
        path.append(node)
        node = came_from[node]
    return [start, *reversed(path)]


def _cycle(index: GraphIndex, path: list[int], size: int, is_next: AnyArray) -> BrokenRule:
    names = [index.nodes.names("name")[node] or "" for node in path]
    shown = [*map(quoted, names)]
    if len(names) > _MOST_NAMED:
        middle, half = f"({len(names) - _MOST_NAMED} more)", _MOST_NAMED // 2
        shown[half:-half] = [middle]
    text = " -> ".join([*shown, quoted(names[0])])
    message = f"{len(path)} node{'s' if len(path) > 1 else ''} in a cycle: {text}"
    if size > len(path):
        message += f", one of several among {size} nodes"
    if is_next[path].any():
        message += "; a loop goes from NextIteration straight into a data input of Merge"
    return broken_at(index, path[0], "cycle", message)
