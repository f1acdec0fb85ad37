"""Ids that repeat: what carries the same id is joined by time.

Upstream joins whatever carries the same id, of any part of the file. Where a file was merged from
others, repeats one, or a counter wrapped, ours goes by time: a consumer belongs to the producer
that began last before it, on its own plane where that has one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, Int32Array, Int64Array
from peakline.kernels.event_forest import last_before

Edges = tuple[AnyArray, AnyArray]
"""Tails and heads."""


@dataclass(frozen=True, eq=False)
class Several:
    """Ends of keys that have several producers; those of one key are neighbours."""

    node: Int32Array
    key: AnyArray

    def crossing(self, group: Int32Array) -> int:
        """How many keys are produced in more than one group."""
        same = self.key[1:] == self.key[:-1]
        of = group[self.node]
        return int(np.unique(self.key[1:][same & (of[1:] != of[:-1])]).size)


@dataclass(frozen=True, eq=False)
class NodeTimes:
    """When and where each node is: begin and length in ps, its thread and its plane, and the
    outermost node around it, which may be itself.
    """

    begin: Int64Array
    length: Int64Array
    thread: Int32Array
    plane: Int32Array
    outer: Int32Array

    @classmethod
    def of(cls, planes: list[tuple[AnyArray, AnyArray, AnyArray]], parent: AnyArray) -> NodeTimes:
        """From begin, length and thread of the nodes of each plane, and every node's parent."""
        begin, length, thread = (np.concatenate(part) for part in zip(*planes, strict=True))
        outer = np.where(parent >= 0, parent, np.arange(parent.size, dtype=np.int32))
        while True:
            further = outer[outer]
            if (further == outer).all():
                break
            outer = further
        sizes = [part[0].size for part in planes]
        plane = np.repeat(np.arange(len(planes), dtype=np.int32), sizes)
        return cls(begin, length, thread, plane, outer)


def by_time(
    parents: Several, children: Several, times: NodeTimes, step: AnyArray | None
) -> tuple[Edges, int]:
    """Edges from the parents to the children with the same key, by time; how many stay open.

    Keys are small numbers. A child of a plane without such a parent goes by those of every plane.
    One that began before all of them has none, nor has one whose parent shares time with another
    on another thread, unless both are of one ``step`` (of every node, once it is known; -1: none).
    """
    count = int(times.plane.max(initial=0)) + 1
    here = parents.key * np.int64(count) + times.plane[parents.node]
    wanted = children.key * np.int64(count) + times.plane[children.node]
    own = np.isin(wanted, here)
    tails, heads, left_open = [parents.node[:0]], [parents.node[:0]], 0
    for makers, takers in (
        (Several(parents.node, here), Several(children.node[own], wanted[own])),
        (parents, Several(children.node[~own], children.key[~own])),
    ):
        if not takers.node.size:
            continue
        cause = _causes(makers, takers, times, times.thread)
        is_open = cause == -2
        if step is not None and is_open.any():
            rest = Several(takers.node[is_open], takers.key[is_open])
            one_step = np.where(step >= 0, step, -1 - times.thread)
            cause[is_open] = _causes(makers, rest, times, one_step)
        left_open += int(np.count_nonzero(cause == -2))
        tails.append(parents.node[cause[cause >= 0]])
        heads.append(takers.node[cause >= 0])
    return (np.concatenate(tails), np.concatenate(heads)), left_open


def _causes(parents: Several, children: Several, times: NodeTimes, thread: AnyArray) -> AnyArray:
    nodes = np.concatenate([parents.node, children.node]).astype(np.int32, copy=False)
    keys = np.concatenate([parents.key, children.key]).astype(np.int64, copy=False)
    # Stable: of equal times parents come first.
    order = np.lexsort((times.begin[nodes], keys))
    outer = times.outer[parents.node]
    begin = times.begin[outer]
    # What takes no time still shares its moment.
    end = begin + np.maximum(times.length[outer], 1)
    cause = np.full(children.node.size, -1, np.int64)
    last_before(order, keys, nodes, thread[parents.node], begin, end, cause)
    return cause
