"""Graphs of ops (graph.proto) and bodies of functions as trees: the scopes are in the names, and
a node that calls a function holds its body.
"""

from __future__ import annotations

import numpy as np

from peakline.graph.scopes.bodies import Bodies
from peakline.graph.scopes.calls import expanded
from peakline.graph.scopes.grouping import group_large
from peakline.graph.scopes.model import Copy, ScopedGraph
from peakline.graph.scopes.nesting import Items, nest, without_single
from peakline.graph.scopes.paths import Paths, split_paths
from peakline.graph.scopes.tree import BODY, Tree
from peakline.tables import Names, Profile
from peakline.tables.once import once


@once
def _bodies(profile: Profile, graph: str) -> Bodies:
    return Bodies(profile, graph)


def op_graph(profile: Profile, graph: str, function: str | None, kind: str) -> ScopedGraph:
    """A graph of ops, or with ``function`` the body of one of its functions."""
    bodies = _bodies(profile, graph)
    found = expanded(bodies, function)
    body, copies = found.body, found.copies
    size, names = body.size, body.names
    paths = split_paths(names)
    items = Items.of_nodes(np.arange(size), np.zeros(size, np.int64), 0)
    named = _hold(items, copies)
    nest(items, paths, np.arange(size), np.zeros(size, np.int64), own_scope=True)
    number_of = without_single(items)
    named = {int(number_of[item]): text for item, text in named.items()}
    _group(items, paths, body.ops, size)
    tree = Tree(
        size, items.parent, items.kind, items.first, items.path, items.inside, 0, items.ends,
        paths, body.ops, named=named,
    )  # fmt: skip
    listed = Names.encode(names) if copies else Names(np.arange(size, dtype=np.int32), names)
    return ScopedGraph(
        profile, graph, function, kind, tree, body.rows, listed, body.ops, body.devices, body.ops,
        Names.constant(None, size), body.edges, np.full(size, -1), None, copies,
    )  # fmt: skip


def _hold(items: Items, copies: tuple[Copy, ...]) -> dict[int, str]:
    """Put the copies of bodies into the nodes that call them; returns the names of bodies.

    Where a node calls several functions, each has an item of its own.
    """
    if not copies:
        return {}
    several = [copy for copy in copies if not copy.is_alone]
    callers, starts = (
        np.array([getattr(copy, name) for copy in several], np.int64)
        for name in ("caller", "start")
    )
    none = np.full(callers.size, -1)
    made = items.add(BODY, callers, starts, none, np.zeros(callers.size, np.int64)).tolist()
    holder = {copy.start: item for copy, item in zip(several, made, strict=True)}
    for copy in copies:
        inside = slice(copy.start, copy.start + copy.size)
        items.parent[inside] = holder.get(copy.start, copy.caller)
    return {item: f"{copy.attr}: {copy.function}" for copy, item in zip(several, made, strict=True)}


def _group(items: Items, paths: Paths, ops: Names, size: int) -> None:
    inside = np.append(items.inside, 0)
    begin = np.where(items.parent < 0, 0, inside[items.parent])
    end = items.inside.copy()
    end[:size] = paths.counts
    stem = paths.stem(items.path, np.minimum(begin, end), end)
    group_large(items, stem, np.asarray(ops.codes, np.int64))
