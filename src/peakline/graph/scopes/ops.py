"""Graphs of ops (graph.proto) and bodies of functions as trees: the scopes are in the names."""

from __future__ import annotations

import numpy as np

from peakline.arrays import Int64Array
from peakline.graph.index import GraphIndex, Scope, index_of
from peakline.graph.scopes.grouping import group_large
from peakline.graph.scopes.model import Edges, ScopedGraph
from peakline.graph.scopes.nesting import Items, nest, without_single
from peakline.graph.scopes.paths import Paths, split_paths
from peakline.graph.scopes.tree import Tree
from peakline.tables import Columns, Names, Profile
from peakline.tables.once import once

ARGUMENT, RESULT = "_Arg", "_Retval"
"""The ops that stand for what a function is given and returns, as the runtime calls them."""


@once
def _index(profile: Profile) -> GraphIndex:
    return index_of(profile)


def op_graph(profile: Profile, graph: str, function: str | None, kind: str) -> ScopedGraph:
    """A graph of ops, or with ``function`` the body of one of its functions."""
    index = _index(profile)
    wanted = Scope(graph, function)
    number = index.scopes.index(wanted) if wanted in index.scopes else -1
    rows = np.flatnonzero(index.node_scope == number)
    listed = index.nodes.take(rows)
    arguments = _arguments(index.arguments, graph, function)
    roles = arguments.names("role").to_list()
    size = rows.size + arguments.rows
    names = [name or "" for name in listed.names("name").to_list()]
    names += [name or "" for name in arguments.names("name").to_list()]
    kinds = [RESULT if role == "output" else ARGUMENT for role in roles]
    ops = _extended(listed.names("op"), kinds)
    devices = _extended(listed.names("device"), [""] * arguments.rows)
    edges = _edges(index, number, rows, arguments)
    paths = split_paths(names)
    items = Items.of_nodes(np.arange(size), np.zeros(size, np.int64), 0)
    nest(items, paths, np.arange(size), np.zeros(size, np.int64), own_scope=True)
    without_single(items)
    _group(items, paths, ops, size)
    tree = Tree(
        size, items.parent, items.kind, items.first, items.path, items.inside, 0, items.ends,
        paths, ops.to_list(),
    )  # fmt: skip
    return ScopedGraph(
        profile, graph, function, kind, tree, np.append(rows, np.full(arguments.rows, -1)),
        Names(np.arange(size, dtype=np.int32), names), ops, devices, ops,
        Names.constant(None, size), edges,
        np.full(size, -1), None,
    )  # fmt: skip


def _group(items: Items, paths: Paths, ops: Names, size: int) -> None:
    inside = np.append(items.inside, 0)
    begin = np.where(items.parent < 0, 0, inside[items.parent])
    end = items.inside.copy()
    end[:size] = paths.counts
    stem = paths.stem(items.path, np.minimum(begin, end), end)
    group_large(items, stem, np.asarray(ops.codes, np.int64))


def _extended(column: Names, more: list[str]) -> Names:
    """A column with more rows, whose texts are few."""
    if not more:
        return column
    extra = Names.encode(more)
    codes = np.append(column.codes, extra.codes + len(column.values))
    return Names(codes.astype(np.int32), [*column.values, *extra.values])


def _arguments(table: Columns, graph: str, function: str | None) -> Columns:
    """The arguments and results of a function, in order."""
    if function is None:
        return table.take(np.zeros(0, np.int64))
    graphs, functions, roles = (table.names(name) for name in ("graph", "function", "role"))
    mine = (graphs.codes == graphs.code_of(graph)) & (
        functions.codes == functions.code_of(function)
    )
    return table.take(mine & (roles.codes != roles.code_of("control_output")))


def _edges(index: GraphIndex, number: int, rows: Int64Array, arguments: Columns) -> Edges:
    """The edges among the nodes, and those from arguments and to results."""
    mine = np.flatnonzero(index.edge_scope == number)
    place = np.full(index.nodes.rows + 1, -1, np.int64)
    place[rows] = np.arange(rows.size)
    source, target = place[index.source_row[mine]], place[index.target_row[mine]]
    listed = index.edges
    output, slot = listed.array("source_output")[mine], listed.array("target_input")[mine]
    control = listed.array("is_control")[mine].astype(np.bool_)
    if arguments.rows:
        given, results = (
            _given(index, mine, rows.size, arguments),
            _returned(index, number, place, rows.size, arguments),
        )
        source = np.where(source < 0, given, source)
        source = np.append(source, results[0])
        target = np.append(target, results[1])
        output = np.append(output, np.zeros(results[0].size, np.int64))
        slot = np.append(slot, np.zeros(results[0].size, np.int64))
        control = np.append(control, np.zeros(results[0].size, np.bool_))
    whole = (source >= 0) & (target >= 0)
    return Edges(
        source[whole], target[whole], output[whole], slot[whole], control[whole],
        np.full(int(whole.sum()), -1),
    )  # fmt: skip


def _given(index: GraphIndex, mine: Int64Array, nodes: int, arguments: Columns) -> Int64Array:
    """Per edge the number of the argument that it comes from; -1 for none."""
    names = index.strings.codes(arguments.names("name"))
    is_input = arguments.names("role").per_row("input".__eq__, np.bool_)
    by_name = {
        name: nodes + row
        for row, (name, given) in enumerate(zip(names.tolist(), is_input.tolist(), strict=True))
        if given
    }
    found = [by_name.get(name, -1) for name in index.edge_source[mine].tolist()]
    return np.array(found, np.int64)


def _returned(
    index: GraphIndex, number: int, place: Int64Array, nodes: int, arguments: Columns
) -> tuple[Int64Array, Int64Array]:
    """Edges from nodes and arguments to the results of a function."""
    own = {
        name: nodes + row
        for row, (name, role) in enumerate(arguments.each("name", "role"))
        if role == "input"
    }
    ends: list[tuple[int, int]] = []
    for row, (role, text) in enumerate(arguments.each("role", "source")):
        if role != "output" or not text:
            continue
        name, colon, _ = text.partition(":")
        code = np.array([index.strings.code(name)], np.int64)
        node = int(place[index.find_nodes(np.array([number]), code)[0]]) if colon else -1
        source = node if node >= 0 else own.get(name, -1)
        if source >= 0:
            ends.append((source, nodes + row))
    found = np.array(ends, np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]
