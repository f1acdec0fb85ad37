"""Which groups hand work to which: a request to the batch that serves it.

What a group reaches and another group has already makes the one a parent of the other
(``PropagateGroupId`` in ``xla/tsl/profiler/utils/group_events.cc`` of openxla/xla).
"""

from __future__ import annotations

import numpy as np

from peakline.arrays import AnyArray, Int64Array
from peakline.deadline import check_deadline
from peakline.formats.xplane.forest import Forest

MOST_LINKS = 1 << 22
"""Contexts that would make more than so many pairs of groups make none."""


def links_of(forest: Forest, group: AnyArray) -> tuple[Int64Array, int]:
    """The distinct pairs (parent, child) of groups, a row each, in order; and how many pairs of
    crowded contexts were left out. ``group`` is that of every node (-1: none).
    """
    check_deadline()
    (starts, heads), nodes = forest.adjacencies()[0], forest.nodes
    total = starts.size - 1
    tails = np.repeat(np.arange(total), np.diff(starts))
    of = np.concatenate([group.astype(np.int64), np.full(total - nodes, -1, np.int64)])
    plain = (tails < nodes) & (heads < nodes)
    found = [_apart(of[tails[plain]], of[heads[plain]])]
    made, taken = heads >= nodes, tails >= nodes
    # A context stands between the two: of each only what groups put in and take out.
    into = _distinct(heads[made].astype(np.int64), of[tails[made]])
    out = _distinct(tails[taken].astype(np.int64), of[heads[taken]])
    first = np.searchsorted(out[:, 0], into[:, 0])
    count = np.searchsorted(out[:, 0], into[:, 0], side="right") - first
    sums = np.cumsum(count)
    fits = sums <= MOST_LINKS
    left_out = int(count[~fits].sum())
    into, first, count = into[fits], first[fits], count[fits]
    begin = np.cumsum(count) - count
    place = np.arange(int(count.sum())) - np.repeat(begin - first, count)
    found.append(_apart(np.repeat(into[:, 1], count), out[place, 1]))
    check_deadline()
    return np.unique(np.concatenate(found), axis=0), left_out


def _apart(parent: Int64Array, child: Int64Array) -> Int64Array:
    apart = (parent >= 0) & (child >= 0) & (parent != child)
    return _distinct(parent[apart], child[apart])


def _distinct(one: Int64Array, two: Int64Array) -> Int64Array:
    """The distinct pairs whose second is not below 0, in order."""
    known = two >= 0
    pairs = np.stack([one[known], two[known]], axis=1)
    return np.unique(pairs, axis=0)
