"""Numbers of groups, of nodes and of the events around them: 32 bits each where all fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from peakline.arrays import AnyArray, Int32Array, Int64Array
from peakline.formats.xplane.names import NO_GROUP

_NONE = np.int32(-(2**31))
"""Stands for no group among groups that fit 32 bits."""
_PIECE = 1 << 15


def no_group(groups: AnyArray) -> np.integer[Any]:
    """What stands for no group in ``groups``."""
    return _NONE if groups.dtype == np.int32 else np.int64(NO_GROUP)


def ungrouped(count: int) -> Int32Array:
    """So many times no group."""
    return np.full(count, _NONE)


def wide(groups: AnyArray) -> Int64Array:
    """The same groups in 64 bits, `NO_GROUP` for none."""
    if groups.dtype != np.int32:
        return groups
    return np.where(groups == _NONE, np.int64(NO_GROUP), groups.astype(np.int64))


def narrow(groups: Int64Array) -> AnyArray:
    """The same groups in 32 bits where they fit."""
    if groups.dtype == np.int32:
        return groups
    short = groups.astype(np.int32)
    unknown = groups == NO_GROUP
    short[unknown] = _NONE
    # What does not fit is another number now, or stands for none.
    none = np.count_nonzero(unknown)
    if np.count_nonzero(short != groups) > none or np.count_nonzero(short == _NONE) > none:
        return groups
    return short


def by_owner(inside: AnyArray, nodes: AnyArray) -> AnyArray:
    """The groups of events by their owners, for `of_owners`, from those of what lies inside each
    node and those of the nodes.
    """
    if inside.dtype != nodes.dtype:
        inside, nodes = wide(inside), wide(nodes)
    return np.concatenate([inside[::-1], [no_group(nodes)], nodes], dtype=nodes.dtype)


def of_owners(owner: Int32Array, groups: AnyArray) -> AnyArray:
    """The groups of events by their owners (as `Found.owner_node`); in the memory of the owners
    where they have the same width.
    """
    first = np.int32(groups.size // 2 + 1)
    result = owner if groups.dtype == owner.dtype else np.empty(owner.size, groups.dtype)
    for part, out in zip(pieces(owner), pieces(result), strict=True):
        out[:] = groups[part + first]
    return result


def pieces(array: AnyArray) -> Iterator[AnyArray]:
    """The array in pieces that stay in a core's cache, and whose indices are no second array."""
    for first in range(0, array.size, _PIECE):
        yield array[first : first + _PIECE]
