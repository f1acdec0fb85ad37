"""The views: scope and graph are nodes by the parts of their names, and by data flow; op and code
are nodes grouped by type, and by the line of Python that made them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.deadline import check_deadline, checked
from peakline.tables import Names
from peakline.tfprof.forest import Forest
from peakline.tfprof.model import OpNodes, OpStats
from peakline.tfprof.options import EVERYTHING, MEASURES, Options, matches_any, times_matched
from peakline.tfprof.shown import ROOT, Shown, Tree, passes_minima, passes_names, show, sort_key

_GRADIENT = " (gradient)"


class _Groups:
    """Nodes in groups, and what each group's members in account cost together."""

    def __init__(self, nodes: OpNodes, groups: Sequence[Sequence[int]], options: Options) -> None:
        times = nodes.times_accounted(options.account_type_regexes)
        # A node counts once per pattern that takes it, as in the original.
        weighted = nodes.measures * times[:, None]
        self.members = [[node for node in group if times[node]] for group in groups]
        self.own = np.zeros((len(groups), len(MEASURES)), np.int64)
        for place, group in checked(enumerate(self.members)):
            if group:
                self.own[place] = weighted[group].sum(axis=0)
        takes_all = options.account_type_regexes == EVERYTHING
        self.accounted = np.array([takes_all or bool(group) for group in self.members], np.bool_)


def op_view(stats: OpStats, options: Options) -> Shown:
    """One row per op type, each below the one before it (tfprof_op.cc).

    The totals of a row are its own and those of all rows after it.
    """
    nodes = stats.at(options.step)
    names, groups = _by_op(nodes)
    grouped = _Groups(nodes, groups, options)
    sizes = [len(members) for members in grouped.members]
    key = sort_key(options.order_by, names, grouped.own, sizes)
    order = sorted(np.flatnonzero(grouped.accounted).tolist(), key=key)
    listed = [names[place] for place in order]
    totals = _running(grouped.own[order])
    root = totals[0] if order else np.zeros(len(MEASURES), np.int64)
    chosen = _listed(options, listed, totals, [sizes[place] for place in order])
    totals = totals[chosen]
    rows = [order[place] for place in chosen]
    if options.account_displayed_op_only:
        totals = _running(grouped.own[rows])
        root = totals[0] if rows else np.zeros(len(MEASURES), np.int64)
    count = len(rows) + 1
    return Shown(
        nodes=nodes,
        names=[ROOT, *(names[place] for place in rows)],
        depth=np.arange(count, dtype=np.int64),
        item=np.full(count, -1, np.int64),
        own=np.vstack([np.zeros((1, len(MEASURES)), np.int64), grouped.own[rows]]),
        totals=np.vstack([root[None], totals]),
        accounted=np.arange(count) > 0,
        members=[[], *(grouped.members[place] for place in rows)],
    )


def _by_op(nodes: OpNodes) -> tuple[list[str], list[list[int]]]:
    groups: dict[str, list[int]] = {}
    for node, code in checked(enumerate(nodes.ops.codes.tolist())):
        groups.setdefault(nodes.ops.values[code], []).append(node)
    names = sorted(groups)
    return names, [groups[name] for name in names]


def _running(own: Int64Array) -> Int64Array:
    """Per row, its own and all after it."""
    return np.asarray(np.cumsum(own[::-1], axis=0)[::-1])


def _listed(
    options: Options, names: Sequence[str], totals: Int64Array, sizes: Sequence[int]
) -> list[int]:
    """Which rows are shown: from the start to the first trimmed one, and not hidden."""
    start = 0
    if options.start_name_regexes not in {(), EVERYTHING}:
        matched = np.flatnonzero(matches_any(names, options.start_name_regexes))
        start = int(matched[0]) if matched.size else len(names)
    trimmed = np.flatnonzero(matches_any(names, options.trim_name_regexes)[start:])
    end = start + int(trimmed[0]) if trimmed.size else len(names)
    end = min(end, start + options.max_depth + 1)
    shown = (
        passes_minima(options, totals, totals)
        & passes_names(options, names)
        & (np.array(sizes, np.int64) >= options.min_occurrence)
    )
    return [place for place in range(start, end) if shown[place]]


def code_view(stats: OpStats, options: Options) -> Shown | None:
    """Nodes at the end of the Python calls that made them (tfprof_code.cc).

    Nodes of a gradient stand at the calls of what they are the gradient of. None without traces.
    """
    nodes = stats.at(options.step)
    if not stats.graph.frames:
        return None
    labels, parents, groups = _calls(stats)
    forest, order = Forest.build(parents, range(len(parents))).sort()
    grouped = _Groups(nodes, [sorted(groups[row]) for row in order.tolist()], options)
    grouped.accounted[0] = False
    forest, rows = forest.keep(forest.totals(grouped.accounted.astype(np.int64)) > 0)
    own = grouped.own[rows]
    members = {int(forest.item[place]): grouped.members[row] for place, row in enumerate(rows)}
    tree = Tree(
        forest=forest,
        names=[labels[item] for item in forest.item.tolist()],
        own=own,
        accounted=grouped.accounted[rows],
        totals=forest.totals(own),
        members=members.__getitem__,
    )
    return show(nodes, tree, options)


def _calls(stats: OpStats) -> tuple[list[str], list[int], list[list[int]]]:
    """Per call: its label, who called it, and the nodes that it made."""
    labels, parents, groups = [ROOT], [-1], [[]]  # type: tuple[list[str], list[int], list[list[int]]]
    place: dict[tuple[int, str], int] = {}

    def leaf(frames: Sequence[str], suffix: str = "") -> list[int]:
        row = 0
        for frame in frames:
            key = (row, frame + suffix)
            if key not in place:
                place[key] = len(labels)
                labels.append(key[1])
                parents.append(row)
                groups.append([])
            row = place[key]
        return groups[row]

    forward: dict[str, Sequence[str]] = {}
    gradients: dict[str, list[int]] = {}
    for node, name in checked(enumerate(stats.names)):
        frames = stats.graph.frames.get(int(stats.order[node]))
        if not frames:
            continue
        of = _forward_name(name)
        if of is not None:
            gradients.setdefault(of, []).append(node)
        else:
            forward[name] = frames
            leaf(frames).append(node)
    for name in sorted(gradients):
        if name in forward:
            leaf(forward[name], _GRADIENT).extend(gradients[name])
    return labels, parents, groups


def _forward_name(name: str) -> str | None:
    """What a node is a gradient of: ``gradients/NAME_grad/...`` anywhere in its name."""
    prefix, suffix = name.find("gradients/"), name.find("_grad/")
    if prefix < 0 or suffix < 0:
        return None
    start = prefix + len("gradients/")
    if suffix == start:
        return None
    return name[start:suffix] if suffix > start else name[start:]


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
