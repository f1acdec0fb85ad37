"""The graphs of a profile that can be shown, and each as a tree of scopes, made once."""

from __future__ import annotations

from dataclasses import dataclass

from peakline.errors import NotFoundError
from peakline.graph.scopes.model import ScopedGraph
from peakline.graph.scopes.ops import op_graph
from peakline.graph.scopes.programs import program_graph
from peakline.hlo.graphs import KIND as HLO
from peakline.hlo.graphs import labels_of
from peakline.hlo.op_times import op_times
from peakline.tables import Profile
from peakline.tables.once import once


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
    found: list[GraphName] = []
    for graph, kind, nodes in graphs.each("graph", "kind", "nodes"):
        found.append(GraphName(graph or "", None, kind or "", nodes))
        found += sorted(inside.pop(graph or "", ()), key=lambda one: one.function or "")
    return tuple(found)


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
            labels[number]: sum(one.self_ps for one in found.values())
            for number, found in op_times(profile).items()
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
        found = default_graph(profile)
        if found is None:
            raise NotFoundError(f"no graph in {profile.path}")
        if function is None:
            graph, function = found.graph, found.function
        else:
            graph = found.graph
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
