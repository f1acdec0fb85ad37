"""Joining and adding up what carries the same number: causes, and what they caused."""

from __future__ import annotations

import numpy as np

from peakline.arrays import AnyArray, Int64Array, UInt64Array

_EVIDENCE = 1000
"""So many targets of a plane say which process it belongs to."""
REPEATED = (
    "ids that several processes produce (a merged file): work belongs to the process that most of "
    "its device's work was launched by, and to none where that is open"
)
"""The detail of the warning ``repeated_ids``."""


def mix(*values: AnyArray) -> UInt64Array:
    """One 64-bit number for a tuple of 64-bit numbers per row (splitmix64 steps)."""
    with np.errstate(over="ignore"):
        mixed = np.full(values[0].size, 0x9E3779B97F4A7C15, np.uint64)
        for value in values:
            mixed = mixed ^ value.astype(np.uint64, copy=False)
            mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            mixed = mixed ^ (mixed >> np.uint64(31))
        return mixed


def positions(keys: AnyArray, wanted: AnyArray) -> Int64Array:
    """The place of each of ``wanted`` among ``keys`` (ascending), -1 for one that is not there."""
    if not keys.size:
        return np.full(wanted.size, -1, np.int64)
    at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    return np.where(keys[at] == wanted, at, -1)


def summed(group: AnyArray, values: AnyArray, groups: int) -> Int64Array:
    """The sum of ``values`` in each of ``groups``, exactly; ``group`` says which each is in."""
    total = np.zeros(groups, np.int64)
    np.add.at(total, group, values)
    return total


def ranges(first: AnyArray, last: AnyArray) -> Int64Array:
    """All the numbers from each ``first`` to before its ``last``, one after the other."""
    many = last - first
    before = np.cumsum(many) - many
    result: Int64Array = np.arange(int(many.sum())) + np.repeat(first - before, many)
    return result


def causes(key: AnyArray, start: AnyArray, of_key: AnyArray, at: AnyArray) -> Int64Array:
    """For each ``(of_key, at)`` the index of the cause with that key: the last one that began by
    then, else the first one; -1 where there is none.
    """
    count = key.size
    keys, times = np.concatenate([key, of_key]), np.concatenate([start, at])
    is_target = np.arange(keys.size) >= count
    order = np.lexsort((is_target, times, keys))
    ordered = keys[order]
    new_key = np.append(True, ordered[1:] != ordered[:-1]) if order.size else np.zeros(0, bool)
    first_of_key = np.maximum.accumulate(np.where(new_key, np.arange(order.size), 0))
    is_cause = ~is_target[order]
    places = np.arange(order.size)
    last = np.maximum.accumulate(np.where(is_cause, places, -1))
    # The next cause from each place on, for work that began before all of them.
    following = np.minimum.accumulate(np.where(is_cause, places, order.size)[::-1])[::-1]
    before = last >= first_of_key
    at_most = np.minimum(following, max(order.size - 1, 0))
    after = (following < order.size) & (ordered[at_most] == ordered)
    chosen = np.where(before, last, np.where(after, at_most, -1))
    result = np.full(keys.size, -1, np.int64)
    result[order] = np.where(chosen >= 0, order[np.maximum(chosen, 0)], -1)
    return result[count:]


def by_process(
    key: Int64Array,
    start: Int64Array,
    plane: AnyArray,
    of_key: Int64Array,
    at: Int64Array,
    of_plane: AnyArray,
) -> tuple[Int64Array, Int64Array, int]:
    """Keys that distinguish processes (planes), of causes and of targets, and how many keys of
    targets have causes of several processes.

    In a merged file every process counts from one on. A target's cause is of its own plane, else
    of the process that its plane belongs to: that with a cause, begun by then, for most of the
    plane's targets; of several with as many, one that would be left without any. Where that is
    open, a key of several processes has no cause.
    """
    both = np.concatenate([key, of_key])
    if not plane.size or (plane == plane[0]).all():
        return both[: key.size], both[key.size :], 0
    distinct, code = np.unique(both, return_inverse=True)
    processes = np.unique(plane)
    place = np.searchsorted(processes, plane)
    made, takes = code[: key.size], code[key.size :]
    of_process = made * processes.size + place
    pairs = np.unique(of_process)
    count = np.bincount(pairs // processes.size, minlength=distinct.size)
    # What nothing takes up may well stand on both sides of a call.
    repeated = int(np.count_nonzero(count[np.unique(takes)] > 1))
    if not repeated:
        return both[: key.size], both[key.size :], 0
    only = np.zeros(distinct.size, np.int64)
    only[pairs // processes.size] = pairs % processes.size
    home = _homes(of_process, start, processes, takes, at, of_plane)[
        np.searchsorted(np.unique(of_plane), of_plane)
    ]
    wanted = takes * processes.size + np.maximum(home, 0)
    at_home = (home >= 0) & np.isin(wanted, pairs)
    one = count[takes] == 1
    result = np.where(at_home, wanted, np.where(one, takes * processes.size + only[takes], -1))
    return of_process, result, repeated


def _homes(
    of_process: AnyArray,
    start: AnyArray,
    processes: AnyArray,
    takes: AnyArray,
    at: AnyArray,
    of_plane: AnyArray,
) -> Int64Array:
    """Per plane of targets the place of its process; -1 where that is open."""
    order = np.lexsort((start, of_process))
    pairs, first = np.unique(of_process[order], return_index=True)
    earliest = start[order][first]
    planes = np.unique(of_plane)
    fits = np.zeros((planes.size, processes.size), np.bool_)
    for row, plane in enumerate(planes.tolist()):
        if plane in processes:
            fits[row] = processes == plane
            continue
        rows = np.flatnonzero(of_plane == plane)
        rows = rows[:: -(-rows.size // _EVIDENCE)]
        wanted = takes[rows, None] * processes.size + np.arange(processes.size)
        place = np.minimum(np.searchsorted(pairs, wanted), pairs.size - 1)
        score = ((pairs[place] == wanted) & (earliest[place] <= at[rows, None])).sum(axis=0)
        fits[row] = score == score.max()
    while True:
        # A process that launched work has a device: where only one can be it, it is that one.
        is_open = fits.sum(axis=1) > 1
        free = ~fits[~is_open].any(axis=0)
        claims = fits[is_open] & free
        (alone,) = np.nonzero(claims.sum(axis=0) == 1)
        if not alone.size:
            break
        row = np.flatnonzero(is_open)[np.argmax(claims[:, alone[0]])]
        fits[row] = np.arange(processes.size) == alone[0]
    return np.where(is_open, -1, np.argmax(fits, axis=1))
