"""Items and edges of a picture as columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from peakline.arrays import Int64Array
from peakline.graph.index import short_name
from peakline.graph.scopes.model import ScopedGraph
from peakline.graph.scopes.tree import KINDS
from peakline.graph.scopes.visible import MOST_ITEMS, Joined, Visible, joined_edges, mixes
from peakline.tables.columns import Names

_CATEGORIES = 11
"""So many kinds of work have a color of their own."""


def scopes_picture(graph: ScopedGraph, shown: Visible, *, sizes: bool) -> dict[str, Any]:
    """What is visible with some items open."""
    tree = graph.tree
    parent = tree.parent[shown.items]
    return {
        **_common(graph, sizes=sizes),
        "opened": list(shown.opened),
        "refused": list(shown.refused),
        "most_items": MOST_ITEMS,
        "items": _items(graph, shown.items, parent, shown.is_open, shown),
        "edges": _edges(graph, joined_edges(graph, shown, sizes=sizes), sizes=sizes),
        "inside": _inside(graph, shown),
    }


def nodes_picture(graph: ScopedGraph, nodes: Int64Array, *, sizes: bool) -> dict[str, Any]:
    """Some nodes side by side, whatever scopes they stand in, and the edges among them."""
    tree = graph.tree
    stands_for = np.full(tree.size, tree.size)
    stands_for[nodes] = nodes
    none = np.zeros(nodes.size, np.bool_)
    shown = Visible(tree, nodes, none, stands_for, (), ())
    joined = joined_edges(graph, shown, sizes=sizes)
    items = _items(graph, nodes, np.full(nodes.size, -1), none, shown)
    # Without what is around them the names in their scopes would say little.
    items["label"] = [short_name((name or "").rsplit("/", 1)[-1]) for name in items["name"]]
    return {
        **_common(graph, sizes=sizes),
        "opened": [],
        "refused": [],
        "most_items": MOST_ITEMS,
        "items": items,
        "edges": _edges(graph, joined, sizes=sizes),
        "inside": {"source": [], "target": []},
    }


def _common(graph: ScopedGraph, *, sizes: bool) -> dict[str, Any]:
    measures = graph.measures
    whole = graph.categories.codes
    known, count = np.unique(whole[whole >= 0], return_counts=True)
    order = np.lexsort((known, -count))[:_CATEGORIES]
    devices = graph.devices
    used, many = np.unique(devices.codes[devices.codes >= 0], return_counts=True)
    listed = [devices.values[code] for code in used[np.argsort(-many, kind="stable")].tolist()]
    return {
        "has_time": measures.has_time,
        "has_memory": measures.has_memory,
        "has_sizes": sizes and bool((graph.sizes.bytes > 0).any()),
        "step": measures.step,
        "time_ps": int(measures.time_ps.sum()),
        "categories": [short_name(graph.categories.values[one]) for one in known[order].tolist()],
        "devices": [short_name(device) for device in listed if device][:_CATEGORIES],
    }


def _items(
    graph: ScopedGraph, items: Int64Array, parent: Int64Array, is_open: Any, shown: Visible
) -> dict[str, list[Any]]:
    tree, totals = graph.tree, graph.measures.totals
    is_node = items < tree.nodes
    categories, devices = mixes(shown, graph.categories), mixes(shown, graph.devices)
    numbers = items.tolist()
    whole = {name: values[items].tolist() for name, values in totals.items()}
    return {
        "id": numbers,
        "parent": parent.tolist(),
        "kind": [KINDS[kind] for kind in tree.kind[items].tolist()],
        "label": [tree.label(item) for item in numbers],
        "name": _texts(graph.names, items, is_node),
        "op": _texts(graph.ops, items, is_node),
        "device": _texts(graph.devices, items, is_node),
        "is_open": is_open.tolist(),
        "children": tree.child_counts[items].tolist(),
        **whole,
        "categories": [categories.get(item, []) for item in numbers],
        "devices": [[one for one in devices.get(item, []) if one[0]] for item in numbers],
    }


def _texts(column: Names, items: Int64Array, is_node: Any) -> list[str | None]:
    return [
        short_name(column[item] or "") if node else None
        for item, node in zip(items.tolist(), is_node.tolist(), strict=True)
    ]


def _edges(graph: ScopedGraph, joined: Joined, *, sizes: bool) -> dict[str, Any]:
    shape = graph.sizes.shape if sizes else None
    return {
        "source": joined.source.tolist(),
        "target": joined.target.tolist(),
        "edges": joined.edges.tolist(),
        "controls": joined.controls.tolist(),
        "bytes": joined.bytes.tolist(),
        "unknown": joined.unknown.tolist(),
        "shape": [
            None if shape is None or shape[edge] is None else short_name(shape[edge] or "")
            for edge in joined.example.tolist()
        ],
        "left_out": joined.left_out,
    }


def _inside(graph: ScopedGraph, shown: Visible) -> dict[str, list[int]]:
    """Edges between an open item and what in it stands for its operands and its result."""
    opened = np.array([one for one in shown.opened if one < graph.nodes], np.int64)
    edges = graph.edges
    some, inside = edges.every_inner[np.isin(edges.target[edges.every_inner[:, 0]], opened)].T
    pairs = {
        (owner, inner)
        for owner, inner in zip(
            edges.target[some].tolist(), shown.stands_for[inside].tolist(), strict=True
        )
    }
    root = graph.root[opened]
    results = {
        (inner, owner)
        for owner, inner in zip(
            opened[root >= 0].tolist(), shown.stands_for[root[root >= 0]].tolist(), strict=True
        )
    }
    given, result = edges.every_result[np.isin(edges.source[edges.every_result[:, 0]], opened)].T
    results |= {
        (inner, owner)
        for owner, inner in zip(
            edges.source[given].tolist(), shown.stands_for[result].tolist(), strict=True
        )
    }
    both = [*sorted(pairs), *sorted(results)]
    return {"source": [one for one, _ in both], "target": [one for _, one in both]}
