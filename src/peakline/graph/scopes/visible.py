"""What of a graph is visible with some scopes open: at most so many items, and edges among them.

Everything else is counted in the item that holds it, so that what is shown adds up to the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.graph.index import short_name
from peakline.graph.scopes.model import Edges, ScopedGraph
from peakline.graph.scopes.tree import Tree
from peakline.tables.columns import Names
from peakline.tables.joins import ranges

MOST_ITEMS = 500
MOST_EDGES = 4000
_ENOUGH = 4
_NESTED = 40


@dataclass(frozen=True, eq=False)
class Visible:
    """``items`` are in order, those that hold others before them; ``is_open`` says which those are.

    ``stands_for`` is per item of the tree the one that shows it, the tree's size for none.
    ``opened`` are the items that are open, ``refused`` those that would make too many.
    """

    tree: Tree
    items: Int64Array
    is_open: BoolArray
    stands_for: Int64Array
    opened: tuple[int, ...]
    refused: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Joined:
    """Edges between visible items, those of most bytes first: ``edges`` that each stands for,
    ``controls`` of them that only order, and of the others the sum of the ``bytes`` that are known
    and how many are ``unknown``. ``example`` is the edge with most bytes. ``left_out`` counts those
    that are too many to be shown.
    """

    source: Int64Array
    target: Int64Array
    edges: Int64Array
    controls: Int64Array
    bytes: Int64Array
    unknown: Int64Array
    example: Int64Array
    left_out: int


def opened_first(tree: Tree) -> list[int]:
    """What is open at first: as long as there is next to nothing to see, the largest scope."""
    opened: list[int] = []
    shown = tree.children(-1)
    counts = tree.child_counts
    totals = tree.totals(np.ones(tree.nodes, np.int64))
    while shown.size < _ENOUGH:
        holds = shown[counts[shown] > 0]
        if not holds.size:
            break
        largest = int(holds[np.argmax(totals[holds])])
        opened.append(largest)
        shown = np.append(shown[shown != largest], tree.children(largest))
    return opened


def visible(tree: Tree, wanted: Sequence[int], most: int = MOST_ITEMS) -> Visible:
    """What is visible with the items ``wanted`` open, as far as they fit; outer ones come first."""
    is_open = np.zeros(tree.size + 1, np.bool_)
    total, refused, opened = tree.children(-1).size, list[int](), list[int]()
    distinct = dict.fromkeys(one for one in wanted if 0 <= one < tree.size)
    for item in sorted(distinct, key=lambda one: len(tree.ancestors(one))):
        parent, more = int(tree.parent[item]), int(tree.child_counts[item])
        if not more or (parent >= 0 and not is_open[parent]):
            continue
        if total + more > most:
            refused.append(item)
            continue
        is_open[item] = True
        opened.append(item)
        total += more
    stands_for = np.arange(tree.size)
    shown: list[Int64Array] = []
    for level in tree.levels:
        holder = tree.parent[level]
        free = (holder < 0) | is_open[holder]
        # An item in a closed one: that, or what that stands for.
        stands_for[level] = np.where(free, level, stands_for[holder])
        shown.append(level[free])
    items = np.concatenate(shown) if shown else np.zeros(0, np.int64)
    return Visible(tree, items, is_open[items], stands_for, tuple(opened), tuple(refused))


def joined_edges(graph: ScopedGraph, shown: Visible, *, sizes: bool = True) -> Joined:
    """The edges between visible items; without ``sizes`` nothing is known of bytes.

    What leads to an open item that holds the body of a computation leads to the parameter inside,
    and what comes from its result comes from the body's root.
    """
    edges, tree = graph.edges, graph.tree
    is_open = np.zeros(tree.size + 1, np.bool_)
    is_open[list(shown.opened)] = True
    size = graph.sizes.bytes if sizes else np.where(edges.is_control, 0, -1)
    within = is_open[edges.source] & (edges.result >= 0)
    source = np.where(within, edges.result, edges.source)
    for _ in range(_NESTED):
        inside = is_open[source] & (graph.root[source] >= 0) & ~edges.is_control
        if not inside.any():
            break
        source = np.where(inside, graph.root[source], source)
    target = np.where(is_open[edges.target] & (edges.inner >= 0), edges.inner, edges.target)
    edge, source, target = _forked(edges, is_open, source, target)
    begin, end = shown.stands_for[source], shown.stands_for[target]
    apart = np.flatnonzero((begin != end) & (begin < tree.size) & (end < tree.size))
    key = begin[apart] * np.int64(tree.size) + end[apart]
    pairs, place = np.unique(key, return_inverse=True)
    count = np.bincount(place, minlength=pairs.size)
    control = edges.is_control[edge[apart]]
    controls = np.bincount(place[control], minlength=pairs.size)
    weight = size[edge[apart]]
    is_known = weight >= 0
    total = np.zeros(pairs.size, np.int64)
    np.add.at(total, place[is_known], weight[is_known])
    unknown = np.bincount(place[~is_known], minlength=pairs.size)
    example = np.zeros(pairs.size, np.int64)
    order = np.lexsort((weight, ~control))
    example[place[order]] = edge[apart[order]]
    most = np.lexsort((-count, -total))[:MOST_EDGES]
    return Joined(
        pairs[most] // tree.size, pairs[most] % tree.size, count[most], controls[most],
        total[most], unknown[most], example[most], int(pairs.size - most.size),
    )  # fmt: skip


def _forked(
    edges: Edges, is_open: BoolArray, source: Int64Array, target: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Per drawn edge its number, source and target: one to each open branch of a choice, and one
    from each.
    """
    edge = np.arange(source.size)
    more = edges.more_result[is_open[edges.source[edges.more_result[:, 0]]]]
    if more.size:
        edge, source = np.append(edge, more[:, 0]), np.append(source, more[:, 1])
        target = np.append(target, target[more[:, 0]])
    more = edges.more_inner[is_open[edges.target[edges.more_inner[:, 0]]]]
    if more.size:
        order = np.argsort(edge, kind="stable")
        first, last = (np.searchsorted(edge[order], more[:, 0], side) for side in ("left", "right"))
        same = order[ranges(first, last)]
        edge, source = np.append(edge, edge[same]), np.append(source, source[same])
        target = np.append(target, np.repeat(more[:, 1], last - first))
    return edge, source, target


def mixes(shown: Visible, column: Names, most: int = 4) -> dict[int, list[tuple[str, int]]]:
    """Per visible closed item how many nodes have each text, the most frequent ones."""
    nodes = shown.tree.nodes
    texts = max(len(column.values), 1)
    of = shown.stands_for[:nodes]
    known = column.codes >= 0
    key, count = np.unique(of[known] * texts + column.codes[known], return_counts=True)
    order = np.lexsort((-count, key // texts))
    item, code, number = (key // texts)[order], (key % texts)[order], count[order]
    result: dict[int, list[tuple[str, int]]] = {}
    for one, text, many in zip(item.tolist(), code.tolist(), number.tolist(), strict=True):
        listed = result.setdefault(one, [])
        if len(listed) < most:
            listed.append((short_name(column.values[text]), many))
    return result
