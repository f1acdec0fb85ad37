"""Ordered sets of blocks: by size, then by the age of their segment where that counts, then by
address. Treaps, whose nodes are rows of one array; the first fields of a row are those of
`peakline.kernels.caching_layout`, of chunks of the best-fit allocator too.

The root is a row too, whose left child is the first node: a link is then always a row and a field.
Unmapped blocks have the size 0 in these keys, so that their order is that of addresses.
"""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.caching_layout import (
        B_ADDRESS,
        B_KEY,
        B_LEFT,
        B_ORDER,
        B_PRIORITY,
        B_RIGHT,
    )

__all__ = ["after", "before", "insert", "lower", "remove"]


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _is_less(
    block: cython.longlong[:, ::1],
    row: cython.longlong,
    key: cython.longlong,
    order: cython.longlong,
    address: cython.longlong,
    node: cython.longlong,
) -> cython.bint:
    """Whether ``row`` comes before this key; rows decide where a recording's addresses are equal,
    which no allocator gives.
    """
    if block[row, B_KEY] != key:
        return block[row, B_KEY] < key
    if block[row, B_ORDER] != order:
        return block[row, B_ORDER] < order
    if block[row, B_ADDRESS] != address:
        return block[row, B_ADDRESS] < address
    return row < node


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def insert(
    block: cython.longlong[:, ::1], root: cython.longlong, node: cython.longlong
) -> cython.void:
    """Adds a row that is in no set; its key must not change before it is removed."""
    key: cython.longlong = block[node, B_KEY]
    order: cython.longlong = block[node, B_ORDER]
    address: cython.longlong = block[node, B_ADDRESS]
    priority: cython.longlong = block[node, B_PRIORITY]
    parent: cython.longlong = root
    field: cython.longlong = B_LEFT
    other: cython.longlong = node
    other_field: cython.longlong = B_RIGHT
    at: cython.longlong = block[root, B_LEFT]
    while at > 0 and block[at, B_PRIORITY] >= priority:
        parent = at
        field = B_RIGHT if _is_less(block, at, key, order, address, node) else B_LEFT
        at = block[parent, field]
    block[parent, field] = node
    # What was there becomes what is below the node: split by its key.
    parent = node
    field = B_LEFT
    while at > 0:
        if _is_less(block, at, key, order, address, node):
            block[parent, field] = at
            parent, field = at, B_RIGHT
            at = block[at, B_RIGHT]
        else:
            block[other, other_field] = at
            other, other_field = at, B_LEFT
            at = block[at, B_LEFT]
    block[parent, field] = 0
    block[other, other_field] = 0


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def remove(
    block: cython.longlong[:, ::1], root: cython.longlong, node: cython.longlong
) -> cython.void:
    """Takes a row out of the set of ``root``; nothing happens where it is not in it."""
    key: cython.longlong = block[node, B_KEY]
    order: cython.longlong = block[node, B_ORDER]
    address: cython.longlong = block[node, B_ADDRESS]
    parent: cython.longlong = root
    field: cython.longlong = B_LEFT
    left: cython.longlong = block[node, B_LEFT]
    right: cython.longlong = block[node, B_RIGHT]
    at: cython.longlong = block[root, B_LEFT]
    while at > 0 and at != node:
        parent = at
        field = B_RIGHT if _is_less(block, at, key, order, address, node) else B_LEFT
        at = block[parent, field]
    if at == 0:
        return
    while left > 0 and right > 0:
        if block[left, B_PRIORITY] >= block[right, B_PRIORITY]:
            block[parent, field] = left
            parent, field = left, B_RIGHT
            left = block[left, B_RIGHT]
        else:
            block[parent, field] = right
            parent, field = right, B_LEFT
            right = block[right, B_LEFT]
    block[parent, field] = left + right


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def lower(
    block: cython.longlong[:, ::1],
    root: cython.longlong,
    key: cython.longlong,
    order: cython.longlong,
    address: cython.longlong,
    node: cython.longlong,
) -> cython.longlong:
    """The first row whose size, order, address and number are not below these, 0 for none."""
    result: cython.longlong = 0
    at: cython.longlong = block[root, B_LEFT]
    while at > 0:
        if _is_less(block, at, key, order, address, node):
            at = block[at, B_RIGHT]
        else:
            result = at
            at = block[at, B_LEFT]
    return result


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def after(
    block: cython.longlong[:, ::1], root: cython.longlong, node: cython.longlong
) -> cython.longlong:
    """The row that follows ``node`` in its set, 0 for none."""
    return lower(
        block, root, block[node, B_KEY], block[node, B_ORDER], block[node, B_ADDRESS], node + 1
    )


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def before(
    block: cython.longlong[:, ::1],
    root: cython.longlong,
    key: cython.longlong,
    order: cython.longlong,
    address: cython.longlong,
    node: cython.longlong,
) -> cython.longlong:
    """The last row whose size, order, address and number are below these, 0 for none."""
    result: cython.longlong = 0
    at: cython.longlong = block[root, B_LEFT]
    while at > 0:
        if _is_less(block, at, key, order, address, node):
            result = at
            at = block[at, B_RIGHT]
        else:
            at = block[at, B_LEFT]
    return result
