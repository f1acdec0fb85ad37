"""Groups where a scope holds very many: series of like names, nodes of one op, ranges.

No item holds more than `MOST` then, so that whatever is opened fits on a screen.
"""

from __future__ import annotations

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array, UInt64Array
from peakline.graph.scopes.nesting import Items
from peakline.graph.scopes.tree import NODE, OP, RANGE, SERIES
from peakline.tables.joins import mix

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
