"""Graphs as GraphDef messages: nodes, their devices and inputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from peakline import schema
from peakline.tables import Columns, Profile


def partition_graphs(profile: Profile) -> Iterator[Any]:
    """The profile's partition graphs: names, op types, devices, inputs and versions of nodes.

    The tables hold attributes as text only, so nodes have none, and functions are left out.
    """
    graphs, nodes, edges = (profile.columns_or_empty(name) for name in ("graphs", "nodes", "edges"))
    for name, kind, producer, consumer in graphs.each("graph", "kind", "producer", "min_consumer"):
        if kind == "partition":
            graph: Any = schema.message("tensorflow.GraphDef")()
            graph.versions.producer = producer
            graph.versions.min_consumer = consumer
            _add_nodes(graph, _of(nodes, name), _of(edges, name))
            yield graph


def _of(table: Columns, graph: str | None) -> Columns:
    """The rows of a graph that stand outside functions."""
    names = table.names("graph")
    own = (names.codes == names.code_of(graph or "")) & ~table.is_valid("function")
    return table.take(np.flatnonzero(own))


def _add_nodes(graph: Any, nodes: Columns, edges: Columns) -> None:
    inputs: dict[str, list[tuple[int, str]]] = {}
    for source, output, target, place, control, text in edges.each(
        "source", "source_output", "target", "target_input", "is_control", "input"
    ):
        usual = f"^{source}" if control else f"{source}:{output}" if output else source
        inputs.setdefault(target or "", []).append((place, text or usual or ""))
    for name, op, device in nodes.each("name", "op", "device"):
        node = graph.node.add(name=name, op=op, device=device)
        node.input.extend(text for _, text in sorted(inputs.get(name or "", ())))
