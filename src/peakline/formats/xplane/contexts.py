"""Contexts: work handed from one event (the producer) to others (consumers), across threads.

An event with ``_pt`` and ``_p`` produces, one with ``_ct`` and ``_c`` consumes, the context of
that type and id within its process; `peakline.kernels.line_events.gather` reads them. Source:
``preprocess_xplane.h`` and ``group_events.cc`` in ``xla/tsl/profiler/utils``.

Upstream joins whatever carries the same id, of any part of the file. Where a file was merged from
others, repeats one, or a counter wrapped, ours goes by time: a consumer belongs to the producer
that began last before it, on its own plane where that has one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array, UInt64Array
from peakline.kernels.event_forest import last_before, match_keys
from peakline.kernels.xplane_numbers import EventKind

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


_CROWD = 64
"""A context with this many producers and consumers connects nothing."""


@dataclass(frozen=True, eq=False)
class Ends:
    """One side of the contexts: node and key (type, id and process, mixed) per end."""

    node: Int32Array
    key: UInt64Array

    @classmethod
    def join(cls, parts: list[Ends]) -> Ends:
        """All ends together."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([np.zeros(0, np.int32), *(p.node for p in parts)]),
            np.concatenate([np.zeros(0, np.uint64), *(p.key for p in parts)]),
        )

    def shifted(self, first: int) -> Ends:
        """The same ends with nodes numbered from ``first``."""
        if not first:
            return self
        own = self.node >= 0
        return Ends(
            np.where(own, self.node + np.int32(first), self.node - np.int32(first)), self.key
        )


@dataclass(frozen=True, eq=False)
class ContextEdges:
    """Edges through contexts, which count as nodes from ``first`` on."""

    count: int
    tail: Int32Array
    head: Int32Array
    own_parent: Int32Array
    """Nodes that both produce and consume one context."""
    several: Several
    """Producers of contexts that have several though one is usual."""
    consumers: Several
    """Who consumes those."""


def connect(
    producers: Ends, consumers: Ends, kind: AnyArray, *, pruned: bool, once: bool = False
) -> ContextEdges | None:
    """Join producers with consumers of the same key; ``kind`` is that of every node.

    A producer's node is -2 - n where it is not the node n itself but lies in it. With ``pruned``
    some consumers were left out, so that a crowd is not known: None when there may be one.
    ``once`` leaves out what has several producers though one is usual: all but batches, which
    take up what many requests put into them.
    """
    first = kind.size
    around = producers.node < 0
    producer_node = np.where(around, -2 - producers.node, producers.node)
    count, of_producer, of_consumer = _match_keys(producers.key, consumers.key)
    used = of_consumer >= 0
    consumer_node, of_consumer = consumers.node[used], of_consumer[used]
    made = np.bincount(of_producer, minlength=count)
    taken = np.bincount(of_consumer, minlength=count)
    crowd = (made >= _CROWD) & (taken >= (1 if pruned else _CROWD))
    if pruned and crowd.any():
        return None
    repeated = made > 1
    if not pruned:
        repeated &= taken > 0
    if repeated.any():
        repeated[of_consumer[kind[consumer_node] == EventKind.PROCESS_BATCH]] = False
    several = _of_keys(producer_node, of_producer, repeated)
    taking = _of_keys(consumer_node, of_consumer, repeated)
    alive = (taken > 0) & ~crowd
    if once:
        alive &= ~repeated
    number = np.cumsum(alive, dtype=np.int32) - np.int32(1)
    keep = alive[of_producer]
    producer_node, of_producer, around = (
        producer_node[keep],
        number[of_producer[keep]],
        around[keep],
    )
    keep = alive[of_consumer]
    consumer_node, of_consumer = consumer_node[keep], number[of_consumer[keep]]
    own = ~around
    both = _own_parents(producer_node[own], of_producer[own], consumer_node, of_consumer, first)
    return ContextEdges(
        int(alive.sum()),
        np.concatenate([producer_node, of_consumer + np.int32(first)]),
        np.concatenate([of_producer + np.int32(first), consumer_node]),
        both,
        several,
        taking,
    )


def _of_keys(nodes: Int32Array, of: Int32Array, wanted: BoolArray) -> Several:
    """The ends of the wanted contexts, by context."""
    if not wanted.any():
        return Several(nodes[:0], of[:0])
    rows = np.flatnonzero(wanted[of])
    rows = rows[np.argsort(of[rows], kind="stable")]
    return Several(nodes[rows], of[rows])


def _match_keys(
    producers: UInt64Array, consumers: UInt64Array
) -> tuple[int, Int32Array, Int32Array]:
    """How many distinct keys the producers have, and which of them each end has."""
    slots = np.full(max(16, 1 << (2 * producers.size - 1).bit_length()), -1, np.int32)
    of_producer, of_consumer = (np.empty(keys.size, np.int32) for keys in (producers, consumers))
    known = np.empty(producers.size, np.uint64)
    count = match_keys(producers, consumers, slots, known, of_producer, of_consumer)
    return count, of_producer, of_consumer


def _own_parents(
    producer_node: Int32Array,
    of_producer: Int32Array,
    consumer_node: Int32Array,
    of_consumer: Int32Array,
    nodes: int,
) -> Int32Array:
    """Nodes that produce and consume one context."""
    makes = np.full(nodes, -1, np.int64)
    makes[producer_node] = of_producer
    if (makes[producer_node] == of_producer).all():
        both: Int32Array = consumer_node[makes[consumer_node] == of_consumer]
        return both
    # Some node produces several contexts (a step, on behalf of what lies in it).
    pairs = np.intersect1d(
        of_producer.astype(np.int64) << 32 | producer_node,
        of_consumer.astype(np.int64) << 32 | consumer_node,
    )
    return pairs & 0xFFFFFFFF
