"""`GraphTables`: the tables of any number of graphs in one buffer, with their nodes and edges."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from peakline.arrays import AnyArray
from peakline.formats.graph_def.attrs import read_function_attrs, read_node_attrs
from peakline.formats.graph_def.debug_info import read_node_frames
from peakline.formats.graph_def.functions import read_function_arguments, read_functions
from peakline.formats.graph_def.source import GraphSource, NodePart
from peakline.formats.graph_def.values import message_texts
from peakline.kernels.graph_fields import parse_inputs
from peakline.tables.columns import Columns, Names
from peakline.wire import Interner, Spans, joined


def read_graphs(source: GraphSource) -> Columns:
    """Table ``graphs``."""
    decoded = source.decode_graphs(
        "versions.producer", "versions.min_consumer", "versions.bad_consumers", "version", "node.@"
    )
    libraries, graph_of = source.decode_libraries("function.@")
    graphs = source.graphs
    count = len(graphs)
    versions = decoded["versions"]
    numbers = {name: np.zeros(count, np.int64) for name in ("producer", "min_consumer")}
    for name, column in numbers.items():
        column[versions.parent] = versions.array(name)
    bad: list[list[str]] = [[] for _ in range(count)]
    refused = decoded["versions.bad_consumers"]
    for graph, version in zip(
        versions.parent[refused.parent].tolist(), refused.array("value").tolist(), strict=True
    ):
        bad[graph].append(str(version))
    functions = graph_of[libraries["function"].parent]
    return Columns(
        {
            "graph": source.graph_names(np.arange(count)),
            "kind": Names.encode([graph.kind for graph in graphs]),
            "tags": Names.encode([graph.tags for graph in graphs]),
            **numbers,
            "bad_consumers": Names.encode([",".join(versions) for versions in bad]),
            "version": decoded[""].array("version").astype(np.int64),
            "nodes": np.bincount(decoded["node"].parent, minlength=count).astype(np.int64),
            "functions": np.bincount(functions, minlength=count).astype(np.int64),
        }
    )


def read_nodes(source: GraphSource) -> Columns:
    """Table ``nodes``."""
    debug = "experimental_debug_info"
    fields = {"original_nodes": "original_node_names", "original_functions": "original_func_names"}
    parts = source.node_parts(
        "name", "op", "device", "experimental_type", *(f"{debug}.{f}" for f in fields.values())
    )
    origins = Interner()
    types: list[str] = []

    def columns(part: NodePart) -> dict[str, AnyArray]:
        nodes, buffer = part.table(), source.buffer
        full_type, known = message_texts(
            source, nodes.spans("experimental_type"), "tensorflow.FullTypeDef"
        )
        offset = len(types)
        types.extend(known)
        made = {
            "graph": part.graph,
            "name": source.names.add(buffer, nodes.spans("name")),
            "op": source.ops.add(buffer, nodes.spans("op")),
            "device": source.devices.add(buffer, nodes.spans("device")),
            "function": part.function,
            "full_type": np.where(full_type < 0, -1, full_type + offset).astype(np.int32),
        }
        above = part.table(debug).parent
        for column, field in fields.items():
            names = part.table(f"{debug}.{field}")
            codes = np.full(nodes.rows, -1, np.int32)
            if names.rows:
                parents = above[names.parent]
                text, where = joined(buffer, names.spans("value"), parents, nodes.rows)
                rows = np.unique(parents)
                codes[rows] = origins.add(text, where.take(rows))
            made[column] = codes
        return made

    result = source.one_table(parts, columns)
    return Columns(
        {
            "graph": source.graph_names(result["graph"]),
            "name": Names(result["name"], source.names.values),
            "op": Names(result["op"], source.ops.values),
            "device": Names(result["device"], source.devices.values),
            "function": Names(result["function"], source.names.values),
            "original_nodes": Names(result["original_nodes"], origins.values),
            "original_functions": Names(result["original_functions"], origins.values),
            "full_type": Names(result["full_type"], types),
        }
    )


def read_edges(source: GraphSource) -> Columns:
    """Table ``edges``."""
    arguments, unusual = Interner(), Interner()

    def columns(part: NodePart) -> dict[str, AnyArray]:
        buffer, inputs = source.buffer, part.table("input")
        targets = source.names.add(buffer, part.table().spans("name"))
        spans, count = inputs.spans("value"), inputs.rows
        start, length = spans.start.astype(np.int64), spans.length.astype(np.int64)
        source_start, source_length, argument_start, argument_length = (
            np.empty(count, np.int64) for _ in range(4)
        )
        output = np.empty(count, np.int32)
        control, usual = np.empty(count, np.bool_), np.empty(count, np.bool_)
        parse_inputs(
            buffer, start, length, bool(part.path != "node"), source_start, source_length,
            output, control, argument_start, argument_length, usual,
        )  # fmt: skip
        # The place of every input among those of its node, which are neighbours.
        node, rows = inputs.parent, np.arange(count)
        opens = np.append(True, node[1:] != node[:-1])[:count]
        place = (rows - np.maximum.accumulate(np.where(opens, rows, 0))).astype(np.int32)
        argument, text = np.full(count, -1, np.int32), np.full(count, -1, np.int32)
        rows = np.flatnonzero(argument_length >= 0)
        argument[rows] = arguments.add(buffer, Spans(argument_start, argument_length).take(rows))
        rows = np.flatnonzero(~usual)
        text[rows] = unusual.add(buffer, Spans(start, length).take(rows))
        return {
            "graph": part.graph[inputs.parent],
            "source": source.names.add(buffer, Spans(source_start, source_length)),
            "source_output": output,
            "target": targets[inputs.parent],
            "target_input": place,
            "is_control": control,
            "function": part.function[inputs.parent],
            "source_argument": argument,
            "input": text,
        }

    result = source.one_table(source.node_parts("name", "input"), columns)
    return Columns(
        {
            "graph": source.graph_names(result["graph"]),
            "source": Names(result["source"], source.names.values),
            "source_output": result["source_output"],
            "target": Names(result["target"], source.names.values),
            "target_input": result["target_input"],
            "is_control": result["is_control"],
            "function": Names(result["function"], source.names.values),
            "source_argument": Names(result["source_argument"], arguments.values),
            "input": Names(result["input"], unusual.values),
        }
    )


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
