"""The views scope and graph: nodes by the parts of their names, and by data flow."""

from __future__ import annotations

import numpy as np

from peakline.arrays import BoolArray
from peakline.deadline import check_deadline, checked
from peakline.tables import Names
from peakline.tfprof.forest import Forest
from peakline.tfprof.model import OpNodes, OpStats
from peakline.tfprof.options import MEASURES, Options
from peakline.tfprof.patterns import times_matched
from peakline.tfprof.shown import ROOT, Shown, Tree, show

SCOPE_PARENT = "_kTFScopeParent"
"""The type of a scope that is no node itself, and of the root of the scope view."""

GRAPH_PARENT = "_TFGraphParent"
"""The type of the root of the graph view."""

DEEPEST_SCOPE = 64
"""So many scopes around a node are rows of their own: a row has its whole name, so that the rows of
one name of n parts would take n squared bytes.
"""


def scope_view(stats: OpStats, options: Options) -> Shown:
    """Nodes below the scopes that their names stand in (tfprof_scope.cc).

    Of the scopes of a name the first `DEEPEST_SCOPE` are rows; the node stands in the last of them.
    """
    nodes = stats.at(options.step)
    forest, names = _scopes(nodes)
    patterns = options.account_type_regexes
    is_scope = bool(times_matched([Names.constant(SCOPE_PARENT, 1)], patterns)[0])
    accounted = np.append(nodes.times_accounted(patterns) > 0, is_scope)[forest.item]
    accounted[0] = False
    # A scope stays for what is accounted below it.
    forest, rows = forest.keep(forest.totals(accounted.astype(np.int64)) > 0)
    names = [names[row] for row in rows.tolist()]
    return show(nodes, _tree(nodes, forest, names, accounted[rows]), options)


def graph_view(stats: OpStats, options: Options) -> Shown:
    """Every node below the first node that takes its output (tfprof_graph.cc).

    First means the way of a depth-first walk from the nodes that nobody takes anything from, by
    name, along the inputs in their order. Nodes on circles that no such node leads to are absent.
    """
    nodes = stats.at(options.step)
    forest = _data_flow(stats)
    accounted = np.append(nodes.times_accounted(options.account_type_regexes) > 0, False)
    forest, _ = forest.keep(accounted[forest.item])
    names = [ROOT, *(nodes.names[item] for item in forest.item[1:].tolist())]
    is_node = np.arange(forest.rows) > 0
    return show(nodes, _tree(nodes, forest, names, is_node), options)


def _tree(nodes: OpNodes, forest: Forest, names: list[str], accounted: BoolArray) -> Tree:
    # A scope that is no node counts as one definition, and costs nothing.
    scope = np.zeros(len(MEASURES), np.int64)
    scope[MEASURES.index("definition_count")] = 1
    own = np.vstack([nodes.measures, scope])[forest.item]
    own[0] = 0
    return Tree(forest, names, own, accounted, forest.totals(own))


def _scopes(nodes: OpNodes) -> tuple[Forest, list[str]]:
    """The tree of names; the item of a scope that is no node is -1."""
    number = {name: node for node, name in enumerate(nodes.names)}
    names = set(number)
    for name in checked(nodes.names):
        scope = _scope_of(name)
        while scope is not None and scope not in names:
            names.add(scope)
            scope = _scope_of(scope)
    # With the separator before every other character, a scope comes right before what it holds.
    ordered = [ROOT, *sorted(names, key=lambda name: name.replace("/", "\0"))]
    row = {name: place for place, name in enumerate(ordered) if place}
    parents = [-1]
    for name in checked(ordered[1:]):
        scope = _scope_of(name)
        parents.append(0 if scope is None else row[scope])
    return Forest.build(parents, [-1, *(number.get(name, -1) for name in ordered[1:])]), ordered


def _scope_of(name: str) -> str | None:
    """The scope that ``name`` stands in; None for the root."""
    if name.count("/") > DEEPEST_SCOPE:
        return "/".join(name.split("/", DEEPEST_SCOPE)[:DEEPEST_SCOPE])
    scope, slash, _ = name.rpartition("/")
    return scope if slash else None


def too_deep(stats: OpStats) -> int:
    """How many nodes stand in more scopes than the scope view has rows for."""
    return sum(name.count("/") > DEEPEST_SCOPE for name in stats.names)


def _data_flow(stats: OpStats) -> Forest:
    graph, places = stats.graph, stats.places
    count = len(stats.names)
    known = graph.sources >= 0
    target = places[graph.targets[known]]
    source = places[graph.sources[known]]
    order = np.argsort(target, kind="stable")
    sources = source[order].tolist()
    first = np.searchsorted(target[order], np.arange(count + 1)).tolist()
    is_root = np.ones(count, np.bool_)
    is_root[source] = False
    parents, items = [-1], [-1]
    seen = [False] * count
    # What is to be visited, with the row of who leads there; the next one last.
    pending = [(node, 0) for node in reversed(np.flatnonzero(is_root).tolist())]
    while pending:
        node, parent = pending.pop()
        if seen[node]:
            continue
        check_deadline()
        seen[node] = True
        row = len(items)
        parents.append(parent)
        items.append(node)
        pending += [(child, row) for child in reversed(sources[first[node] : first[node + 1]])]
    return Forest.build(parents, items)
