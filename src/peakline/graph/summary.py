"""What graphs hold: how many nodes and edges, which ops, on which devices, for which readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from peakline.arrays import BoolArray
from peakline.tables import Profile
from peakline.tables.columns import Columns, Names


@dataclass(frozen=True)
class GraphRow:
    """One graph. ``nodes`` and ``edges`` are those outside functions."""

    graph: str
    kind: str
    tags: str
    nodes: int
    edges: int
    functions: int
    producer: int
    min_consumer: int
    bad_consumers: tuple[int, ...]

    def as_json(self) -> dict[str, object]:
        """The document."""
        tags = self.tags.split(",") if self.tags else []
        return {**vars(self), "tags": tags, "bad_consumers": list(self.bad_consumers)}


@dataclass(frozen=True)
class LargestGraph:
    """The graph with the most nodes, functions included: what it alone holds, as `GraphSummary`."""

    graph: str
    ops: dict[str, int]
    devices: dict[str, int]
    function_ops: dict[str, int]


@dataclass(frozen=True)
class GraphSummary:
    """All graphs of a profile.

    Sums are over all graphs: a file may hold one graph several times (an events file has it as it
    was written and as it ran), and then counts it as often.

    An edge is one input of a node, control inputs included. ``ops`` and ``devices`` count nodes
    outside functions by type and by requested device, ``function_ops`` those in function
    bodies; the most frequent come first. ``largest`` is None without nodes.
    """

    graphs: tuple[GraphRow, ...]
    ops: dict[str, int]
    devices: dict[str, int]
    function_ops: dict[str, int]
    function_edges: int
    largest: LargestGraph | None

    @property
    def nodes(self) -> int:
        """Nodes outside functions, of all graphs."""
        return sum(self.ops.values())

    @property
    def edges(self) -> int:
        """Inputs of nodes outside functions, of all graphs."""
        return sum(graph.edges for graph in self.graphs)

    @property
    def functions(self) -> int:
        """Functions, of all graphs."""
        return sum(graph.functions for graph in self.graphs)

    @property
    def function_nodes(self) -> int:
        """Nodes in function bodies, of all graphs."""
        return sum(self.function_ops.values())

    @property
    def producer(self) -> int:
        """Version of the newest writer of the graphs; 0 without any."""
        return max((graph.producer for graph in self.graphs), default=0)

    @property
    def min_consumer(self) -> int:
        """The oldest reader that may read all graphs; 0 without any."""
        return max((graph.min_consumer for graph in self.graphs), default=0)

    def as_json(self) -> dict[str, object]:
        """The document, without the errors of a check."""
        return {
            "nodes": self.nodes,
            "edges": self.edges,
            "functions": self.functions,
            "ops": self.ops,
            "producer": self.producer,
            "min_consumer": self.min_consumer,
            "devices": self.devices,
            "function_nodes": self.function_nodes,
            "function_edges": self.function_edges,
            "function_ops": self.function_ops,
            "graphs": [graph.as_json() for graph in self.graphs],
        }


def summarize_graphs(profile: Profile) -> GraphSummary:
    """Count what the graphs of ``profile`` hold."""
    graphs = profile.columns_or_empty("graphs")
    nodes, edges = profile.columns_or_empty("nodes"), profile.columns_or_empty("edges")
    outside = nodes.names("function").codes < 0
    edge_outside = edges.names("function").codes < 0
    per_graph = _counts(edges.names("graph"), edge_outside)
    return GraphSummary(
        graphs=tuple(_row(graph, per_graph) for graph in graphs.to_pylist()),
        ops=_counts(nodes.names("op"), outside),
        devices=_counts(nodes.names("device"), outside),
        function_ops=_counts(nodes.names("op"), ~outside),
        function_edges=int((~edge_outside).sum()),
        largest=_largest(nodes, outside),
    )


def _largest(nodes: Columns, outside: BoolArray) -> LargestGraph | None:
    """Of graphs of one size the first in the file."""
    if nodes.rows == 0:
        return None
    graph = nodes.names("graph")
    code = int(np.argmax(np.bincount(graph.codes)))
    mine = graph.codes == code
    return LargestGraph(
        graph=graph.values[code],
        ops=_counts(nodes.names("op"), mine & outside),
        devices=_counts(nodes.names("device"), mine & outside),
        function_ops=_counts(nodes.names("op"), mine & ~outside),
    )


def _row(graph: dict[str, Any], edges: dict[str, int]) -> GraphRow:
    bad = tuple(int(version) for version in graph["bad_consumers"].split(",") if version)
    known = {name: graph[name] for name in GraphRow.__annotations__ if name in graph}
    return GraphRow(**known | {"edges": edges.get(graph["graph"], 0), "bad_consumers": bad})


def _counts(names: Names, rows: BoolArray) -> dict[str, int]:
    """Rows by name, the most frequent first."""
    codes = names.codes[rows]
    result: dict[str, int] = {}
    for code, count in zip(*np.unique(codes[codes >= 0], return_counts=True), strict=True):
        name = names.values[int(code)]
        result[name] = result.get(name, 0) + int(count)
    return dict(sorted(result.items(), key=lambda one: (-one[1], one[0])))
