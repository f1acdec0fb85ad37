"""The scopes of a graph by the names of its nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array, UInt8Array
from peakline.graph.scopes.paths import Paths
from peakline.graph.scopes.tree import SCOPE
from peakline.tables.joins import positions


@dataclass(eq=False)
class Items:
    """A tree while it is made: see `peakline.graph.scopes.tree.Tree`."""

    parent: Int64Array
    kind: UInt8Array
    first: Int64Array
    path: Int64Array
    inside: Int64Array
    ends: Int64Array
    whole: int

    @classmethod
    def of_nodes(cls, path: Int64Array, inside: Int64Array, whole: int) -> Items:
        """Nodes without anything around them."""
        size = path.size
        return cls(
            np.full(size, -1), np.zeros(size, np.uint8), np.arange(size), path, inside,
            np.full((size, 2), -1), whole,
        )  # fmt: skip

    @property
    def size(self) -> int:
        """How many there are."""
        return int(self.parent.size)

    def add(
        self, kind: int, parent: Int64Array, first: Int64Array, path: Int64Array,
        inside: Int64Array, ends: Int64Array | None = None,
    ) -> Int64Array:  # fmt: skip
        """More items; returns their numbers."""
        size = self.size
        self.parent = np.append(self.parent, parent)
        self.kind = np.append(self.kind, np.full(parent.size, kind, np.uint8))
        self.first = np.append(self.first, first)
        self.path = np.append(self.path, path)
        self.inside = np.append(self.inside, inside)
        more = np.full((parent.size, 2), -1) if ends is None else ends
        self.ends = np.concatenate([self.ends, more])
        return np.arange(size, self.size)


def nest(
    items: Items, paths: Paths, rows: Int64Array, skip: Int64Array, *, own_scope: bool
) -> None:
    """Put the nodes ``rows`` into scopes: one for every part of their paths but the last.

    The first ``skip`` parts of each are left out. What holds a node so far holds its outermost
    scope. With ``own_scope`` a node whose whole path is a scope's stands in that scope.
    """
    if not paths.counts.size:
        # No node has a name, as in a program of which only the buffers are known.
        return
    path, at = items.path[rows], items.parent[rows].copy()
    first, depth = paths.first[np.maximum(path, 0)] + skip, paths.counts[np.maximum(path, 0)] - 1
    depth = np.where(path < 0, 0, depth - skip)
    wide = max(len(paths.parts), 1)
    keys, made = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for level in range(int(depth.max(initial=0))):
        some = np.flatnonzero(depth > level)
        key = (at[some] + 1) * wide + paths.codes[first[some] + level]
        distinct, example, place = np.unique(key, return_index=True, return_inverse=True)
        sample = some[example]
        scopes = items.add(
            SCOPE, distinct // wide - 1, rows[sample], path[sample], skip[sample] + level + 1
        )
        at[some] = scopes[place]
        keys.append(distinct)
        made.append(scopes)
    if own_scope:
        # A node's last part names a scope beside it, where there is one of that name.
        known, scopes = np.concatenate(keys), np.concatenate(made)
        order = np.argsort(known)
        some = np.flatnonzero(path >= 0)
        wanted = (at[some] + 1) * wide + paths.codes[first[some] + depth[some]]
        place = positions(known[order], wanted)
        at[some] = np.where(place >= 0, np.append(scopes[order], -1)[place], at[some])
    items.parent[rows] = at


def without_single(items: Items) -> Int64Array:
    """Leave out scopes that hold one thing only: it is named by both.

    Returns the new number of each item, -1 for one that is gone.
    """
    counts = np.bincount(items.parent[items.parent >= 0], minlength=items.size)
    gone: BoolArray = (items.kind == SCOPE) & (counts == 1)
    if not gone.any():
        return np.arange(items.size)
    parent = items.parent
    while True:
        up = (parent >= 0) & np.append(gone, False)[parent]
        if not up.any():
            break
        parent = np.where(up, parent[parent], parent)
    stays = np.flatnonzero(~gone)
    number = np.append(np.cumsum(~gone) - 1, -1)
    items.parent = number[parent[stays]]
    items.kind, items.first = items.kind[stays], items.first[stays]
    items.path, items.inside = items.path[stays], items.inside[stays]
    items.ends = items.ends[stays]
    return np.where(gone, -1, number[:-1])
