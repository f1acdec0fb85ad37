"""Best fit of pieces whose lifetimes are known: XLA's ``GlobalDecreasingSizeBestFitHeap``
(``xla/service/heap_simulator/heap_simulator.cc``).

What is placed lies in two structures. A tree over the lifetimes finds those that overlap a piece in
time, where they are few; a list in order of address, swept as a whole, serves where they are many.
"""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.heap_layout import FEW_PENDING, PENDING

__all__ = ["place"]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _overlapping(
    low: cython.longlong,
    high: cython.longlong,
    begin: cython.const[cython.longlong][::1],
    tree: cython.const[cython.longlong][::1],
    stack: cython.longlong[::1],
    found: cython.longlong[::1],
    count: cython.longlong,
    most: cython.longlong,
) -> cython.longlong:
    """Adds the placed leaves that overlap [low, high] to ``found``; gives how many there are then,
    more than ``most`` where there are too many.

    Leaf ``i`` is the lifetime with the i-th ``begin``; ``tree`` holds the latest end under each
    node, -1 where nothing is placed: the children of node ``n`` are ``2 n`` and ``2 n + 1``.
    """
    leaves: cython.longlong = tree.shape[0] >> 1
    left: cython.longlong = 0
    right: cython.longlong = begin.shape[0]
    top: cython.longlong = 1
    node: cython.longlong
    first: cython.longlong
    width: cython.longlong
    middle: cython.longlong
    while left < right:
        middle = (left + right) >> 1
        if begin[middle] <= high:
            left = middle + 1
        else:
            right = middle
    # Leaves before `left` begin in time. Of each open node its first leaf and how many it has.
    stack[0], stack[1], stack[2] = 1, 0, leaves
    while top > 0 and count <= most:
        top -= 1
        node, first, width = stack[3 * top], stack[3 * top + 1], stack[3 * top + 2]
        if first >= left or tree[node] < low:
            continue
        if node >= leaves:
            if count < most:
                found[count] = first
            count += 1
            continue
        width >>= 1
        for middle in range(2):
            # The left one goes on top.
            stack[3 * top] = 2 * node + 1 - middle
            stack[3 * top + 1] = first + width * (1 - middle)
            stack[3 * top + 2] = width
            top += 1
    return count


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sort(
    found: cython.longlong[::1], count: cython.longlong, at: cython.const[cython.longlong][::1]
) -> cython.void:
    """Orders leaves by address, in place (a heap sort)."""
    size: cython.longlong = count
    start: cython.longlong = count >> 1
    parent: cython.longlong
    child: cython.longlong
    moved: cython.longlong
    while size > 1:
        if start > 0:
            start -= 1
            moved = found[start]
        else:
            size -= 1
            moved = found[size]
            found[size] = found[0]
        parent = start
        child = 2 * parent + 1
        while child < size:
            if child + 1 < size and at[found[child]] < at[found[child + 1]]:
                child += 1
            if at[found[child]] <= at[moved]:
                break
            found[parent] = found[child]
            parent = child
            child = 2 * parent + 1
        found[parent] = moved


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sweep(
    at: cython.const[cython.longlong][::1],
    stops: cython.const[cython.longlong][::1],
    low: cython.const[cython.longlong][::1],
    high: cython.const[cython.longlong][::1],
    row: cython.longlong,
    last: cython.longlong,
    until: cython.longlong,
    begin: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    need: cython.longlong,
    best: cython.longlong[::1],
) -> cython.longlong:
    """Passes the rows of a list from ``row`` on, before ``last``, that lie below ``until``.

    Gives the row after them. ``best`` is the best gap, its size (0, -1 for none) and where it
    begins (1), and from where on all is free so far (2).
    """
    current: cython.longlong = best[2]
    gap: cython.longlong
    k: cython.longlong
    meets: cython.longlong
    only_begin: cython.longlong = begin[0]
    only_end: cython.longlong = end[0]
    is_one: cython.bint = begin.shape[0] == 1
    while row < last and at[row] < until:
        # Without jumps: whether a lifetime overlaps cannot be predicted.
        meets = (low[row] <= only_end) & (high[row] >= only_begin)
        if not is_one:
            for k in range(1, begin.shape[0]):
                meets |= (low[row] <= end[k]) & (high[row] >= begin[k])
        gap = (at[row] - current) & -meets
        if gap >= need and (best[0] < 0 or gap < best[0]):
            best[0], best[1] = gap, current
        current = max(current, stops[row] & -meets)
        row += 1
    best[2] = current
    return row


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _sweep_found(
    found: cython.longlong[::1],
    count: cython.longlong,
    leaf_at: cython.const[cython.longlong][::1],
    leaf_stop: cython.const[cython.longlong][::1],
    need: cython.longlong,
    best: cython.longlong[::1],
) -> cython.void:
    """The same for some leaves, in any order."""
    current: cython.longlong = best[2]
    gap: cython.longlong
    k: cython.longlong
    _sort(found, count, leaf_at)
    for k in range(count):
        gap = leaf_at[found[k]] - current
        if gap >= need and (best[0] < 0 or gap < best[0]):
            best[0], best[1] = gap, current
        current = max(current, leaf_stop[found[k]])
    best[2] = current


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _insert(
    listed: cython.longlong[:, ::1],
    count: cython.longlong,
    at: cython.longlong,
    stop: cython.longlong,
    low: cython.longlong,
    high: cython.longlong,
) -> cython.void:
    """Puts a row in its place by address among the first ``count``."""
    row: cython.longlong = count
    field: cython.longlong
    while row > 0 and listed[0, row - 1] > at:
        for field in range(4):
            listed[field, row] = listed[field, row - 1]
        row -= 1
    listed[0, row], listed[1, row], listed[2, row], listed[3, row] = at, stop, low, high


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _merge(
    listed: cython.longlong[:, ::1],
    rows: cython.longlong,
    pending: cython.const[cython.longlong][:, ::1],
    count: cython.longlong,
) -> cython.void:
    """Moves all rows that are pending to the first ``rows`` of the list, from the last on."""
    target: cython.longlong = rows + count
    field: cython.longlong
    while count > 0:
        target -= 1
        if rows > 0 and listed[0, rows - 1] > pending[0, count - 1]:
            rows -= 1
            for field in range(4):
                listed[field, target] = listed[field, rows]
        else:
            count -= 1
            for field in range(4):
                listed[field, target] = pending[field, count]


def place(
    order: cython.const[cython.longlong][::1],
    first: cython.const[cython.longlong][::1],
    begin: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    size: cython.const[cython.longlong][::1],
    alignment: cython.longlong,
    leaf: cython.const[cython.longlong][::1],
    leaf_begin: cython.const[cython.longlong][::1],
    tree: cython.longlong[::1],
    leaf_at: cython.longlong[::1],
    leaf_stop: cython.longlong[::1],
    listed: cython.longlong[:, ::1],
    pending: cython.longlong[:, ::1],
    result: cython.longlong[::1],
    stack: cython.longlong[::1],
    state: cython.longlong[::1],
    offset: cython.longlong[::1],
) -> int:
    """Places the pieces that ``order`` lists, one after the other: gives how many lifetimes were
    looked at, which is the work done.

    Piece ``p`` of ``size[p]`` bytes lives in the lifetimes ``first[p]`` to ``first[p + 1]``, from
    ``begin`` to ``end`` (both inclusive, not negative, apart from each other). Each is
    put into the smallest gap that fits between the pieces with which it overlaps in time, of equal
    ones the lowest, or behind them all; a gap begins at a multiple of ``alignment``. ``offset``
    becomes where.

    Lifetime ``i`` is leaf ``leaf[i]`` of ``tree`` (twice a power of two, -1 at first), numbered by
    begin; ``leaf_begin`` are the begins in this order. ``leaf_at`` and ``leaf_stop`` have a place
    per leaf, ``listed`` 4 times as many, ``pending`` 4 times `PENDING`, ``result`` any number of
    them, and ``stack`` 256; ``state``, zeros at first, has 5.
    """
    work: cython.longlong = 0
    n: cython.longlong
    k: cython.longlong
    piece: cython.longlong
    start: cython.longlong
    after: cython.longlong
    most: cython.longlong
    count: cython.longlong
    row: cython.longlong
    node: cython.longlong
    where: cython.longlong
    stop: cython.longlong
    best: cython.longlong[::1] = state[2:5]
    behind_all: cython.longlong = (1 << 30) << 32
    with cython.nogil:
        for n in range(order.shape[0]):
            piece = order[n]
            start, after = first[piece], first[piece + 1]
            best[0], best[1], best[2] = -1, 0, 0
            # Sorting costs more per lifetime than the sweep over all.
            most = (state[0] + state[1]) * (after - start) >> 4
            most = min(most + 32, result.shape[0])
            count = 0
            for k in range(start, after):
                count = _overlapping(begin[k], end[k], leaf_begin, tree, stack, result, count, most)
            work += count
            if count <= most:
                _sweep_found(result, count, leaf_at, leaf_stop, size[piece], best)
            else:
                if state[1] > FEW_PENDING:
                    _merge(listed, state[0], pending, state[1])
                    state[0] += state[1]
                    state[1] = 0
                work += (state[0] + state[1]) * (after - start)
                row = 0
                for k in range(state[1] + 1):
                    row = _sweep(
                        listed[0], listed[1], listed[2], listed[3], row, state[0],
                        pending[0, k] if k < state[1] else behind_all,
                        begin[start:after], end[start:after], size[piece], best,
                    )  # fmt: skip
                    if k < state[1]:
                        _sweep(
                            pending[0], pending[1], pending[2], pending[3], k, k + 1, behind_all,
                            begin[start:after], end[start:after], size[piece], best,
                        )  # fmt: skip
            where = best[1] if best[0] >= 0 else best[2]
            offset[piece] = where
            stop = (where + size[piece] + alignment - 1) // alignment * alignment
            for k in range(start, after):
                row = leaf[k]
                leaf_at[row], leaf_stop[row] = where, stop
                node = row + (tree.shape[0] >> 1)
                while node > 0 and tree[node] < end[k]:
                    tree[node] = end[k]
                    node >>= 1
                if state[1] == PENDING:
                    _merge(listed, state[0], pending, state[1])
                    state[0] += state[1]
                    state[1] = 0
                _insert(pending, state[1], where, stop, begin[k], end[k])
                state[1] += 1
    return work
