"""Contexts: work handed from one event (the producer) to others (consumers), across threads.

An event with ``_pt`` and ``_p`` produces, one with ``_ct`` and ``_c`` consumes, the context of
that type and id within its process; `peakline.kernels.line_events.gather` reads them. Source:
``preprocess_xplane.h`` and ``group_events.cc`` in ``xla/tsl/profiler/utils``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, UInt64Array
from peakline.formats.xplane.repeated import Several
from peakline.kernels.event_forest import match_keys
from peakline.kernels.xplane_numbers import EventKind

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
