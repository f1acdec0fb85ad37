"""The graphs of a profile that can be shown, and each as a tree of scopes, made once.

Of graphs of ops (graph.proto) and bodies of functions the scopes are in the names, and a node that
calls a function holds its body.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.errors import NotFoundError
from peakline.graph.scopes.bodies import Bodies, expanded
from peakline.graph.scopes.model import Copy, ScopedGraph
from peakline.graph.scopes.paths import Paths, split_paths
from peakline.graph.scopes.programs import program_graph
from peakline.graph.scopes.tree import BODY, Items, Tree, group_large, nest, without_single
from peakline.hlo.graphs import KIND as HLO
from peakline.hlo.graphs import labels_of
from peakline.hlo.op_times import op_times
from peakline.tables import Names, Profile
from peakline.tables.once import once


@once
def _bodies(profile: Profile, graph: str) -> Bodies:
    return Bodies(profile, graph)


def op_graph(profile: Profile, graph: str, function: str | None, kind: str) -> ScopedGraph:
    """A graph of ops, or with ``function`` the body of one of its functions."""
    bodies = _bodies(profile, graph)
    result = expanded(bodies, function)
    body, copies = result.body, result.copies
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


@dataclass(frozen=True)
class GraphName:
    """A graph that can be shown: a graph, a function's body where ``function`` is one, or a
    compiled program. ``nodes`` counts what is shown of it.
    """

    graph: str
    function: str | None
    kind: str
    nodes: int


@once
def graph_names(profile: Profile) -> tuple[GraphName, ...]:
    """All graphs of a profile, each before its functions; the largest programs first."""
    if profile.programs():
        modules = profile.columns("hlo_modules", frozenset(("module_id", "instructions")))
        counts = modules.array("instructions").tolist()
        labels = labels_of(profile)
        programs = [GraphName(*one) for one in zip(
            labels, [None] * len(labels), [HLO] * len(labels), counts, strict=True,
        )]  # fmt: skip
        programs.sort(key=lambda one: -one.nodes)
        return tuple(programs)
    graphs = profile.columns_or_empty("graphs")
    functions = profile.columns_or_empty("functions")
    inside: dict[str, list[GraphName]] = {}
    for graph, name, nodes in functions.each("graph", "name", "nodes"):
        listed = inside.setdefault(graph or "", [])
        listed.append(GraphName(graph or "", name or "", "function", nodes))
    result: list[GraphName] = []
    for graph, kind, nodes in graphs.each("graph", "kind", "nodes"):
        result.append(GraphName(graph or "", None, kind or "", nodes))
        result += sorted(inside.pop(graph or "", ()), key=lambda one: one.function or "")
    return tuple(result)


def default_graph(profile: Profile) -> GraphName | None:
    """The graph that is shown where none is named: the program that took longest, else the largest
    graph; None where there is none.
    """
    names = graph_names(profile)
    if not names:
        return None
    if names[0].kind == HLO:
        labels = labels_of(profile)
        spent = {
            labels[number]: sum(one.self_ps for one in result.values())
            for number, result in op_times(profile).items()
        }
        return max(names, key=lambda one: (spent.get(one.graph, 0), one.nodes))
    return max(names, key=lambda one: (one.function is None, one.nodes))


def scoped_graph(
    profile: Profile, graph: str | None = None, function: str | None = None
) -> ScopedGraph:
    """A graph of the profile with its tree, made once; without a name the default one.

    Raises NotFoundError for one that the profile has not.
    """
    names = graph_names(profile)
    if graph is None:
        result = default_graph(profile)
        if result is None:
            raise NotFoundError(f"no graph in {profile.path}")
        if function is None:
            graph, function = result.graph, result.function
        else:
            graph = result.graph
    known = next((one for one in names if (one.graph, one.function) == (graph, function)), None)
    if known is None:
        wanted = f"graph {graph!r}" if function is None else f"function {function!r} in {graph!r}"
        listed = ", ".join(repr(one.graph) for one in names if one.function is None)[:400]
        raise NotFoundError(f"no {wanted} in this profile; there is: {listed or 'none'}")
    return _make(profile, known.graph, known.function, known.kind)


@once
def _make(profile: Profile, graph: str, function: str | None, kind: str) -> ScopedGraph:
    if kind == HLO:
        return program_graph(profile, labels_of(profile).index(graph))
    return op_graph(profile, graph, function, kind)
