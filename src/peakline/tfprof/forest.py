"""Trees of nodes in columns: built once in depth-first order, then cut down and summed up.

Row 0 is the root, every parent stands before its children, and the rows below a node follow it
without a gap. So a sum over what is below a node is a difference of two running sums, and nothing
here recurses: a data flow can be a million nodes deep.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.deadline import check_deadline, checked

_BETWEEN_CHECKS = 256


@dataclass(frozen=True, eq=False)
class Forest:
    """``parent`` is a row, -1 of the root; ``item`` is what the row is about."""

    parent: Int64Array
    item: Int64Array

    @property
    def rows(self) -> int:
        """The number of rows, the root included."""
        return int(self.parent.size)

    def depth(self) -> Int64Array:
        """How deep each row lies; 0 is the root."""
        depth = [0] * self.rows
        for row, parent in checked(enumerate(self.parent.tolist())):
            depth[row] = depth[parent] + 1 if row else 0
        return np.array(depth, np.int64)

    def ends(self) -> Int64Array:
        """One past the last row below each row."""
        end = list(range(1, self.rows + 1))
        parents = self.parent.tolist()
        for row in checked(range(self.rows - 1, 0, -1)):
            end[parents[row]] = max(end[parents[row]], end[row])
        return np.array(end, np.int64)

    def totals(self, own: Int64Array) -> Int64Array:
        """Per row, the sum of ``own`` (rows, or rows by columns) over it and all below it."""
        running = np.zeros((self.rows + 1, *own.shape[1:]), np.int64)
        np.cumsum(own, axis=0, out=running[1:])
        return running[self.ends()] - running[:-1]

    def keep(self, chosen: BoolArray) -> tuple[Forest, Int64Array]:
        """The tree of the rows ``chosen`` and the root, and those rows.

        What was below a row that is not chosen hangs on the nearest row above it that is.
        """
        nearest = [0] * self.rows
        stays_in = chosen.tolist()
        stays_in[0] = True
        parents = self.parent.tolist()
        for row in checked(range(1, self.rows)):
            above = parents[row]
            nearest[row] = above if stays_in[above] else nearest[above]
        rows = np.flatnonzero(stays_in)
        place = np.cumsum(stays_in) - 1
        parent = place[np.array(nearest, np.int64)[rows]]
        parent[0] = -1
        return Forest(parent, self.item[rows]), rows

    def below_first(self, matched: BoolArray) -> tuple[Forest, Int64Array]:
        """Only the topmost ``matched`` rows with all below them, hung on the root; and the rows."""
        inside = [False] * self.rows
        matches = matched.tolist()
        matches[0] = False
        for row, parent in checked(enumerate(self.parent.tolist())):
            inside[row] = matches[row] or (row > 0 and inside[parent])
        return self.keep(np.array(inside, np.bool_))

    def reached(self, passes: BoolArray, stays: BoolArray) -> BoolArray:
        """Rows that ``stays`` and whose way from the root leads over rows that ``passes``."""
        reached = [True] * self.rows
        passing, staying = passes.tolist(), stays.tolist()
        parents = self.parent.tolist()
        for row in checked(range(1, self.rows)):
            above = parents[row]
            reached[row] = reached[above] and passing[above] and staying[row]
        return np.array(reached, np.bool_)

    def sort(self, key: Callable[[int], str | int] | None = None) -> tuple[Forest, Int64Array]:
        """The tree in depth-first order, the children of every row sorted by ``key``; its rows.

        Children with equal keys, or without a ``key``, keep their order. Parents must stand before
        their children, but nothing else is required of the rows.
        """
        children: list[list[int]] = [[] for _ in range(self.rows)]
        parents = self.parent.tolist()
        for row in checked(range(1, self.rows)):
            children[parents[row]].append(row)
        order: list[int] = []
        pending = [0]
        while pending:
            row = pending.pop()
            order.append(row)
            if not len(order) % _BETWEEN_CHECKS:
                check_deadline()
            if key is not None:
                children[row].sort(key=key)
            pending += reversed(children[row])
        rows = np.array(order, np.int64)
        place = np.empty(self.rows, np.int64)
        place[rows] = np.arange(self.rows)
        parent = place[self.parent[rows]]
        parent[0] = -1
        return Forest(parent, self.item[rows]), rows

    @classmethod
    def build(cls, parents: Sequence[int], items: Sequence[int]) -> Forest:
        """From lists in depth-first order, the root first."""
        return cls(np.array(parents, np.int64), np.array(items, np.int64))
