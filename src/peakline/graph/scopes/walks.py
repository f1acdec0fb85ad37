"""From node to node: what is around one, the shortest path to an input or an output, and nodes by
name, op, device or where the framework made them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.graph.scopes.model import Edges, ScopedGraph
from peakline.tables.columns import Names

_GIVEN = frozenset(
    ("Placeholder", "PlaceholderV2", "PlaceholderWithDefault", "_Arg", "IteratorGetNext",
     "IteratorV2", "parameter", "infeed")
)  # fmt: skip
"""Ops by which data comes into a graph."""
MOST_AROUND = 200


class Walks:
    """Walks through a graph, also into and out of the bodies of computations: the operand of a
    fusion leads to the parameter inside, the body's root to the fusion.
    """

    def __init__(self, graph: ScopedGraph) -> None:
        self._graph = graph
        edges = graph.edges
        inner, inside = edges.every_inner.T
        given, result = edges.every_result.T
        results, held = (np.concatenate(pair) for pair in (
            (graph.root[graph.root >= 0], result),
            (np.flatnonzero(graph.root >= 0), edges.source[given]),
        ))  # fmt: skip
        more = inner.size + held.size
        nothing = np.zeros(more, np.int64)
        self._edges = Edges(
            np.concatenate([edges.source, edges.source[inner], results]),
            np.concatenate([edges.target, inside, held]),
            np.append(edges.output, nothing), np.append(edges.place, nothing),
            np.append(edges.is_control, np.zeros(more, np.bool_)),
            np.full(edges.source.size + more, -1), np.full(edges.source.size + more, -1),
        )  # fmt: skip

    def around(self, node: int, depth: int, most: int = MOST_AROUND) -> tuple[Int64Array, int]:
        """The nodes at most ``depth`` edges away, the nearest first, and how many more are."""
        seen = np.zeros(self._graph.nodes, np.bool_)
        seen[node] = True
        result, front = [np.array([node])], np.array([node])
        for _ in range(depth):
            after = self._edges.target[self._edges.out_of(front)]
            before = self._edges.source[self._edges.into(front)]
            front = np.unique(np.append(after, before))
            front = front[~seen[front]]
            if not front.size:
                break
            seen[front] = True
            result.append(front)
        every = np.concatenate(result)
        return every[:most], max(every.size - most, 0)

    def path(self, node: int, *, to_inputs: bool) -> list[int]:
        """A shortest path of data from an input of the graph to a node, or from a node to one of
        its results, in order; just the node where it is an end itself.

        Inputs are what is given to the graph, where none leads to the node what has no inputs.
        """
        goal = self._given if to_inputs else self._last
        result = self._search(node, goal, backward=to_inputs)
        if not result and to_inputs:
            result = self._search(node, self._first, backward=True)
        result = result or [node]
        return result[::-1] if to_inputs else result

    def _search(self, node: int, goal: BoolArray, *, backward: bool) -> list[int]:
        edges = self._edges
        came = np.full(self._graph.nodes, -2)
        came[node] = -1
        front = np.array([node])
        while front.size:
            ends = front[goal[front]]
            if ends.size:
                return self._back(came, int(ends[0]))
            some = edges.into(front) if backward else edges.out_of(front)
            some = some[~edges.is_control[some]]
            here, there = edges.source[some], edges.target[some]
            if not backward:
                here, there = there, here
            front, first = np.unique(here, return_index=True)
            fresh = came[front] == -2
            came[front[fresh]] = there[first[fresh]]
            front = front[fresh]
        return []

    @staticmethod
    def _back(came: AnyArray, at: int) -> list[int]:
        result: list[int] = []
        while at >= 0:
            result.append(at)
            at = int(came[at])
        return result[::-1]

    @cached_property
    def _given(self) -> BoolArray:
        """Nodes that are given to the graph; of a program the parameters of its entry."""
        given = self._graph.ops.per_row(_GIVEN.__contains__, np.bool_)
        given[self._edges.target[~self._edges.is_control]] = False
        result: BoolArray = given
        return result

    @cached_property
    def _first(self) -> BoolArray:
        """Nodes without inputs of data."""
        result = np.ones(self._graph.nodes, np.bool_)
        result[self._edges.target[~self._edges.is_control]] = False
        return result

    @cached_property
    def _last(self) -> BoolArray:
        """Nodes whose results nothing uses."""
        result = np.ones(self._graph.nodes, np.bool_)
        result[self._edges.source[~self._edges.is_control]] = False
        return result


@dataclass(frozen=True, eq=False)
class Found:
    """Nodes in order, those first whose name is or ends with the text; and how many there are."""

    nodes: Int64Array
    total: int


def search(graph: ScopedGraph, text: str, most: int) -> Found:
    """The nodes with ``text``, in any case, in their name, op, device or the framework's name."""
    wanted = text.casefold()
    columns = (graph.names, graph.ops, graph.devices, graph.origins)
    result = np.zeros(graph.nodes, np.bool_)
    for column in columns:
        result |= _has(column, wanted)
    rows = np.flatnonzero(result)
    total = int(rows.size)
    ends = np.array([name.casefold().endswith(wanted) for name in graph.names.values], np.bool_)
    if ends.size:
        best = ends[graph.names.codes[rows]]
        rows = np.append(rows[best], rows[~best])
    return Found(rows[:most], total)


def _has(column: Names, wanted: str) -> BoolArray:
    return column.per_row(lambda text: wanted in text.casefold(), np.bool_)
