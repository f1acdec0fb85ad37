"""`GraphTables`: the tables of any number of graphs that lie in one buffer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from peakline.formats.graph_def.attrs import read_function_attrs, read_node_attrs
from peakline.formats.graph_def.debug_info import read_node_frames
from peakline.formats.graph_def.functions import read_function_arguments, read_functions
from peakline.formats.graph_def.nodes import read_edges, read_graphs, read_nodes
from peakline.formats.graph_def.source import GraphSource, GraphSpan
from peakline.tables.columns import Columns
from peakline.wire import Buffer, Damage

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


class GraphTables:
    """The graphs at ``graphs`` in ``buffer``; each table is decoded when it is read.

    A span may be shorter than its graph where the file was cut: what is whole is read.
    """

    __retained__ = "_source"

    def __init__(self, buffer: Buffer, graphs: Sequence[GraphSpan]) -> None:
        self._source = GraphSource(buffer, graphs)

    def read(self, table: str) -> Columns:
        """One of `GRAPH_TABLES`; rows graph by graph, functions after the nodes outside them."""
        return _READ[table](self._source)

    @property
    def damage(self) -> Damage:
        """What the reads so far could not read, each place once however often it was met."""
        return self._source.damage
