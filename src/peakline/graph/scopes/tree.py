"""The tree of a graph by the names of its nodes, with groups where a scope holds very many.

Items 0 to n-1 are the nodes by their rows, those after them scopes and groups. A node can hold
others: an instruction that calls a computation holds its instructions. Groups are series of like
names, nodes of one op, ranges: no item holds more than `MOST`, so that whatever is opened fits on a
screen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array, UInt8Array, UInt64Array
from peakline.graph.index import short_name
from peakline.graph.scopes.paths import Paths
from peakline.tables.columns import Names
from peakline.tables.joins import mix, positions, ranges

NODE, SCOPE, BODY, SERIES, OP, RANGE = range(6)
KINDS = ("node", "scope", "body", "series", "op", "range")
"""What items are: a node; a scope; the body of a computation; and, where a scope holds very many,
a series of like names, the nodes of one op, or simply those that follow each other."""
_ELLIPSIS = " … "


@dataclass(frozen=True, eq=False)
class Tree:
    """Items with ``parent`` (-1: the graph itself) and ``kind``, a place in `KINDS`.

    ``first`` is the first node of each in the order of the graph, by which items beside each other
    are ordered. ``path`` is the text in ``paths`` that names the item (-1: none does, and ``named``
    has it), ``inside`` how many of its parts the names of what it holds leave out, ``whole`` that
    of the graph. ``ends`` are the first and the last member of a group.
    """

    nodes: int
    parent: Int64Array
    kind: UInt8Array
    first: Int64Array
    path: Int64Array
    inside: Int64Array
    whole: int
    ends: Int64Array
    paths: Paths
    ops: Names
    names: Names | None = None
    named: dict[int, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many items there are."""
        return int(self.parent.size)

    @cached_property
    def levels(self) -> tuple[Int64Array, ...]:
        """The items by depth, the outermost first."""
        depth = np.where(self.parent < 0, 0, -1)
        result, level = [np.flatnonzero(depth == 0)], 0
        while result[-1].size:
            level += 1
            inner = self.children_of(result[-1])
            result.append(inner)
        return tuple(result[:-1])

    @cached_property
    def _order(self) -> tuple[Int64Array, Int64Array]:
        """The items by parent and place; where the children of each parent (from -1 on) begin."""
        order = np.lexsort((self.first, self.parent))
        begin = np.searchsorted(self.parent[order], np.arange(-1, self.size + 1))
        return order, begin

    @cached_property
    def child_counts(self) -> Int64Array:
        """How many items each holds directly."""
        begin = self._order[1]
        return np.diff(begin)[1:]

    def children(self, item: int) -> Int64Array:
        """What an item holds directly, in order; of -1 the outermost."""
        order, begin = self._order
        return order[begin[item + 1] : begin[item + 2]]

    def children_of(self, items: Int64Array) -> Int64Array:
        """What these items hold directly, together."""
        order, begin = self._order
        return order[ranges(begin[items + 1], begin[items + 2])]

    def ancestors(self, item: int) -> list[int]:
        """What holds an item, the outermost first."""
        result: list[int] = []
        at = int(self.parent[item])
        while at >= 0:
            result.append(at)
            at = int(self.parent[at])
        return result[::-1]

    def totals(self, values: Int64Array) -> Int64Array:
        """Per item the sum of ``values``, one per node, of all nodes that it is or holds."""
        result = np.zeros(self.size, np.int64)
        result[: self.nodes] = values
        for level in reversed(self.levels[1:]):
            np.add.at(result, self.parent[level], result[level])
        return result

    def label(self, item: int) -> str:
        """What an item is called beside those around it."""
        kind = int(self.kind[item])
        if item in self.named:
            return short_name(self.named[item])
        if kind in (SERIES, RANGE):
            first, last = (self.label(self._end(int(end), side))
                           for side, end in enumerate(self.ends[item]))  # fmt: skip
            return first if first == last else f"{first}{_ELLIPSIS}{last}"
        if kind == OP:
            return self.ops[int(self.first[item])] or ""
        if item < self.nodes and self.names is not None:
            return short_name(self.names[item] or "")
        parent = int(self.parent[item])
        begin = self.whole if parent < 0 else int(self.inside[parent])
        row = int(self.path[item])
        end = None if item < self.nodes else int(self.inside[item])
        text = self.paths.text(row, begin, end)
        return short_name(text or f"({self.paths.text(row, -1)})")

    def _end(self, item: int, side: int) -> int:
        """The outermost member of a group of groups on one side."""
        while self.kind[item] in (SERIES, RANGE):
            item = int(self.ends[item, side])
        return item


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


MANY = 40
"""A scope that holds more is grouped."""
MOST = 60
"""More never stand beside each other."""
_LEAST = 4
"""So many at least make a group."""
_RANGE = 50


def group_large(items: Items, stem: UInt64Array, op: Int64Array) -> None:
    """Group what scopes hold: ``stem`` is a number for each item's name without its numbers, ``op``
    of each node's op.
    """
    nodes = op.size
    is_node = np.arange(items.size) < nodes
    ops = np.zeros(items.size, np.int64)
    ops[:nodes] = op + 1
    every = mix(items.parent, stem, ops, is_node)
    _group(items, SERIES, every, np.ones(items.size, np.bool_))
    parent = items.parent[:nodes]
    of_op = np.zeros(items.size, np.uint64)
    of_op[:nodes] = mix(parent, op)
    grouped = np.zeros(items.size, np.bool_)
    inside = parent >= 0
    grouped[:nodes][inside] = items.kind[parent[inside]] == SERIES
    is_single = (items.kind == NODE) & ~grouped
    _group(items, OP, of_op, is_single)
    while _split(items):
        pass


def _counts(items: Items) -> Int64Array:
    """Per item how many its parent holds."""
    return np.bincount(items.parent + 1, minlength=items.size + 1)[items.parent + 1]


def _group(items: Items, kind: int, key: UInt64Array, may: BoolArray) -> None:
    """Put items of one key, which stand beside each other, into a group."""
    beside = _counts(items)
    some = np.flatnonzero(may & (beside > MANY))
    if not some.size:
        return
    some = some[np.argsort(items.first[some], kind="stable")]
    _, place, count = np.unique(key[some], return_inverse=True, return_counts=True)
    # One group of everything would say nothing.
    fits = (count[place] >= _LEAST) & (count[place] < beside[some])
    _put(items, kind, some[fits], place[fits])


def _split(items: Items) -> bool:
    """Put what follows each other into ranges, where there are still too many; whether any were."""
    some = np.flatnonzero(_counts(items) > MOST)
    if not some.size:
        return False
    some = some[np.lexsort((items.first[some], items.parent[some]))]
    parent = items.parent[some]
    starts = np.flatnonzero(np.append(True, parent[1:] != parent[:-1]))
    rank = np.arange(some.size) - np.repeat(starts, np.diff(np.append(starts, some.size)))
    _put(items, RANGE, some, np.cumsum(rank % _RANGE == 0))
    return True


def _put(items: Items, kind: int, members: Int64Array, group: AnyArray) -> None:
    """A new item for every number in ``group``, around its members, which are in their order."""
    if not members.size:
        return
    _, begin, place = np.unique(group, return_index=True, return_inverse=True)
    first = members[begin]
    last = np.zeros(begin.size, np.int64)
    last[place] = members
    parent = items.parent[first]
    inside = np.append(items.inside, items.whole)
    numbers = items.add(
        kind, parent, items.first[first], np.full(first.size, -1), inside[parent],
        np.stack([first, last], axis=1),
    )  # fmt: skip
    items.parent[members] = numbers[place]
