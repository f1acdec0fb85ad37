"""Graphs as GraphDef messages: nodes, their devices and inputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from peakline import schema
from peakline.tables import Columns, Profile

__all__ = ["partition_graphs"]


def partition_graphs(profile: Profile) -> Iterator[Any]:
    """The profile's partition graphs: names, op types, devices, inputs and versions of nodes.

    The tables hold attributes as text only, so nodes have none, and functions are left out.
    """
    graphs, nodes, edges = (profile.columns_or_empty(name) for name in ("graphs", "nodes", "edges"))
    names, kinds = graphs.names("graph").to_list(), graphs.names("kind").to_list()
    for row, (name, kind) in enumerate(zip(names, kinds, strict=True)):
        if kind == "partition":
            graph: Any = schema.message("tensorflow.GraphDef")()
            graph.versions.producer = int(graphs.array("producer")[row])
            graph.versions.min_consumer = int(graphs.array("min_consumer")[row])
            _add_nodes(graph, _of(nodes, name), _of(edges, name))
            yield graph


def _of(table: Columns, graph: str | None) -> Columns:
    """The rows of a graph that stand outside functions."""
    names = table.names("graph")
    own = (names.codes == names.code_of(graph or "")) & ~table.is_valid("function")
    return table.take(np.flatnonzero(own))


def _add_nodes(graph: Any, nodes: Columns, edges: Columns) -> None:
    inputs: dict[str, list[tuple[int, str]]] = {}
    for source, output, target, place, control, text in zip(
        edges.names("source").to_list(),
        edges.array("source_output").tolist(),
        edges.names("target").to_list(),
        edges.array("target_input").tolist(),
        edges.array("is_control").tolist(),
        edges.names("input").to_list(),
        strict=True,
    ):
        usual = f"^{source}" if control else f"{source}:{output}" if output else source
        inputs.setdefault(target or "", []).append((place, text or usual or ""))
    columns = [nodes.names(name).to_list() for name in ("name", "op", "device")]
    for name, op, device in zip(*columns, strict=True):
        node = graph.node.add(name=name, op=op, device=device)
        node.input.extend(text for _, text in sorted(inputs.get(name or "", ())))
