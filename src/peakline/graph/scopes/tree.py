"""The tree of a graph: nodes in scopes, and groups where a scope holds very many.

Items 0 to n-1 are the nodes by their rows, those after them scopes and groups. A node can hold
others: an instruction that calls a computation holds its instructions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from peakline.arrays import Int64Array, UInt8Array
from peakline.graph.index import short_name
from peakline.graph.scopes.paths import Paths
from peakline.tables.columns import Names
from peakline.tables.joins import ranges

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
        found, level = [np.flatnonzero(depth == 0)], 0
        while found[-1].size:
            level += 1
            inner = self.children_of(found[-1])
            found.append(inner)
        return tuple(found[:-1])

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
        found: list[int] = []
        at = int(self.parent[item])
        while at >= 0:
            found.append(at)
            at = int(self.parent[at])
        return found[::-1]

    def totals(self, values: Int64Array) -> Int64Array:
        """Per item the sum of ``values``, one per node, of all nodes that it is or holds."""
        found = np.zeros(self.size, np.int64)
        found[: self.nodes] = values
        for level in reversed(self.levels[1:]):
            np.add.at(found, self.parent[level], found[level])
        return found

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
