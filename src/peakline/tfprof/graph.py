"""The graph that tfprof's views stand on: node names, op types, inputs and a few attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.tables import Columns, Names, Profile

FULL_GRAPHS = ("graph_def", "meta_graph")
"""Kinds of graphs that a user wrote; ``partition`` is what the runtime made of one."""

_PARTITION = "partition"

_ATTRIBUTES = ("shape", "_output_shapes", "value", "data_format", "ksize", "strides", "transpose_a")


@dataclass(frozen=True, eq=False)
class OpGraph:
    """Nodes by number, and their inputs sorted by node and place in its list of inputs.

    ``sources`` are node numbers, -1 for an input that is no node of the graph.
    """

    names: Sequence[str] = ()
    ops: Sequence[str] = ()
    targets: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    places: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    sources: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    ports: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    attributes: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    frames: Mapping[int, Sequence[str]] = field(default_factory=dict)

    def attribute(self, name: str) -> Mapping[int, str]:
        """The text of an attribute by node, for the nodes that have it."""
        return self.attributes.get(name, {})


def read_graph(profile: Profile, *, full_only: bool = False) -> OpGraph | None:
    """The graph in ``profile``: the first that a user wrote, else all partitions together.

    None without one. A name that occurs twice means its first node, as in tfprof. Functions'
    bodies are no part of it.
    """
    if "nodes" not in profile.tables:
        return None
    nodes = profile.columns("nodes")
    chosen = _chosen_graphs(profile, nodes, full_only)
    if not chosen:
        return None
    rows = np.flatnonzero(_is_in(nodes.names("graph"), chosen) & _outside_functions(nodes))
    name, graph = nodes.names("name"), nodes.names("graph")
    _, first = np.unique(name.codes[rows], return_index=True)
    rows = rows[np.sort(first)]
    names = [name.values[code] for code in name.codes[rows].tolist()]
    op = nodes.names("op")
    result = _Rows(
        number={text: number for number, text in enumerate(names)},
        graph=[graph.values[code] for code in graph.codes[rows].tolist()],
        chosen=chosen,
    )
    return OpGraph(
        names=names,
        ops=[op.values[code] for code in op.codes[rows].tolist()],
        **_inputs(profile, result),
        attributes=_attributes(profile, result),
        frames=_frames(profile, result),
    )


@dataclass(frozen=True, eq=False)
class _Rows:
    """Which rows of the graph tables are of the nodes: by name and graph."""

    number: Mapping[str, int]
    graph: Sequence[str]
    chosen: frozenset[str]

    def nodes(self, table: Columns, name: str) -> Int64Array:
        """The node that each row of ``table`` is about, -1 for none of them."""
        column, graph = table.names(name), table.names("graph")
        result = column.per_row(lambda text: self.number.get(text, -1), np.int64, -1)
        if len(self.chosen) > 1:
            # A name may stand in several partitions: only its first node counts.
            codes = {text: code for code, text in enumerate(graph.values)}
            own = np.array([*(codes.get(text, -2) for text in self.graph), -2], np.int64)
            result = np.where(own[result] == graph.codes, result, -1)
        else:
            result = np.where(_is_in(graph, self.chosen), result, -1)
        return np.asarray(np.where(_outside_functions(table), result, -1))


def _chosen_graphs(profile: Profile, nodes: Columns, full_only: bool) -> frozenset[str]:
    if "graphs" not in profile.tables:
        return frozenset() if full_only else frozenset(nodes.names("graph").values[:1])
    graphs = profile.columns("graphs")
    by_kind: dict[str | None, list[str]] = {}
    for name, kind in graphs.each("graph", "kind"):
        by_kind.setdefault(kind, []).append(name or "")
    for kind in FULL_GRAPHS:
        if kind in by_kind:
            return frozenset(by_kind[kind][:1])
    return frozenset() if full_only else frozenset(by_kind.get(_PARTITION, ()))


def _is_in(column: Names, wanted: frozenset[str]) -> BoolArray:
    return column.per_row(wanted.__contains__, np.bool_)


def _outside_functions(table: Columns) -> BoolArray:
    if "function" not in table:
        return np.ones(table.rows, np.bool_)
    return np.asarray(~table.is_valid("function"))


def _inputs(profile: Profile, result: _Rows) -> dict[str, Int64Array]:
    edges = profile.columns("edges")
    target = result.nodes(edges, "target")
    rows = np.flatnonzero(target >= 0)
    place = edges.array("target_input").astype(np.int64)
    rows = rows[np.lexsort((place[rows], target[rows]))]
    source = edges.names("source").per_row(lambda text: result.number.get(text, -1), np.int64, -1)
    return {
        "targets": target[rows],
        "places": place[rows],
        "sources": source[rows],
        "ports": np.maximum(edges.array("source_output")[rows].astype(np.int64), 0),
    }


def _attributes(profile: Profile, result: _Rows) -> dict[str, dict[int, str]]:
    if "node_attrs" not in profile.tables:
        return {}
    attrs = profile.columns("node_attrs")
    name = attrs.names("attr")
    attrs = attrs.take(_is_in(name, frozenset(_ATTRIBUTES)))
    node = result.nodes(attrs, "name")
    known = node >= 0
    if "shape" in name.values:
        # An attribute of this name that holds no shape (a tensor's, say) is another thing.
        is_shape = _is_in(attrs.names("kind"), frozenset({"shape"}))
        known &= is_shape | (attrs.names("attr").codes != name.code_of("shape"))
    texts: dict[str, dict[int, str]] = {}
    columns = attrs.take(known).each("attr", "value")
    for number, (attribute, text) in zip(node[known].tolist(), columns, strict=True):
        texts.setdefault(attribute, {})[number] = text
    return texts


def _frames(profile: Profile, result: _Rows) -> dict[int, list[str]]:
    """The labels of the frames that made each node, the outermost first."""
    if "node_frames" not in profile.tables:
        return {}
    frames = profile.columns("node_frames")
    # The key holds the function after the node; outside functions that is empty.
    numbers = frames.names("node").per_row(
        lambda text: result.number.get(text.removesuffix("@"), -1), np.int64, -1
    )
    node = np.where(_is_in(frames.names("graph"), result.chosen), numbers, -1)
    rows = np.flatnonzero(node >= 0)
    rows = rows[np.lexsort((-frames.array("depth")[rows], node[rows]))]
    labels: dict[int, list[str]] = {}
    label = cache(_label)  # nodes share their frames
    places = frames.take(rows).each("file", "line", "function")
    for number, place in zip(node[rows].tolist(), places, strict=True):
        labels.setdefault(number, []).append(label(*place))
    return labels


def _label(file: str, line: int, function: str) -> str:
    """The name of a frame, as tfprof makes it; the length of a function's counts in bytes."""
    encoded = function.encode()
    if len(encoded) >= 20:
        function = encoded[:17].decode("utf-8", "replace") + "..."
    return f"{file.rsplit('/', 1)[-1]}:{line}:{function}"
