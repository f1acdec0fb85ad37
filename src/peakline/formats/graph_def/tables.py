"""`GraphTables`: the tables of any number of graphs that lie in one buffer."""

from __future__ import annotations

from collections.abc import Callable

from peakline.formats.graph_def.attrs import read_function_attrs, read_node_attrs
from peakline.formats.graph_def.debug_info import read_node_frames
from peakline.formats.graph_def.functions import read_function_arguments, read_functions
from peakline.formats.graph_def.nodes import read_edges, read_graphs, read_nodes
from peakline.formats.graph_def.source import GraphSource
from peakline.tables.columns import Columns

_READ: dict[str, Callable[[GraphSource], Columns]] = {
    "graphs": read_graphs,
    "nodes": read_nodes,
    "edges": read_edges,
    "node_attrs": read_node_attrs,
    "functions": read_functions,
    "function_arguments": read_function_arguments,
    "function_attrs": read_function_attrs,
    "node_frames": read_node_frames,
}

GRAPH_TABLES = frozenset(_READ)
"""The tables that any source with graphs can fill."""


class GraphTables(GraphSource):
    """The tables of graphs; each is decoded when it is read.

    A span may be shorter than its graph where the file was cut: what is whole is read.
    """

    def read(self, table: str) -> Columns:
        """One of `GRAPH_TABLES`; rows graph by graph, functions after the nodes outside them."""
        return _READ[table](self)
