"""Events of lines on lanes on which they nest."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.trace_layout import BEGIN, END, MARK

__all__ = ["nest"]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _open_until(
    tree: cython.longlong[:, ::1], number: cython.longlong, until: cython.longlong
) -> cython.void:
    """The innermost event of that lane ends then."""
    node: cython.longlong = (tree.shape[1] >> 1) + number
    tree[0, node] = tree[1, node] = until
    while node > 1:
        node >>= 1
        tree[0, node] = min(tree[0, 2 * node], tree[0, 2 * node + 1])
        tree[1, node] = max(tree[1, 2 * node], tree[1, 2 * node + 1])


def nest(
    order: cython.const[cython.longlong][::1],
    line: cython.const[cython.longlong][::1],
    start: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    lane: cython.int[::1],
    moments: cython.longlong[::1],
    top: cython.longlong[::1],
    below: cython.longlong[::1],
    tree: cython.longlong[:, ::1],
) -> int:
    """Put the events of every line on lanes on which they nest; write begins and ends in order.

    ``order`` sorts by line, start, and outer before inner. ``lane`` becomes the first lane of its
    line on which the event lies within, or behind, what is open there. ``moments`` becomes
    ``4 * event + kind`` per begin, end and mark, for each lane in the order in which they happen;
    returns how many there are. ``top`` and ``below`` are room for what is open on each lane (-1)
    and what each event lies on.

    ``tree``, given as the largest numbers, is room for trees of two numbers per lane, a power of
    two of them: lanes are the leaves, in their second half, and each node has the least and the
    latest end below it of what is open, innermost; the largest number where nothing is. Returns -1
    where that is too small: call again with more.
    """
    most: cython.longlong = 0x7FFFFFFFFFFFFFFF
    leaves: cython.longlong = tree.shape[1] >> 1
    used: cython.longlong = 0
    count: cython.longlong = 0
    place: cython.longlong
    event: cython.longlong
    number: cython.longlong
    node: cython.longlong
    until: cython.longlong
    total: cython.longlong = order.shape[0]
    with cython.nogil:
        for place in range(total + 1):
            event = order[place] if place < total else -1
            if place == 0 or place == total or line[order[place - 1]] != line[event]:
                for number in range(used):
                    while top[number] >= 0:
                        moments[count] = 4 * top[number] + END
                        count += 1
                        top[number] = below[top[number]]
                    _open_until(tree, number, most)
                used = 0
            if place == total:
                break
            # What has ended by now; at the last moment of all, what is open has no other number
            # than what is not.
            while tree[0, 1] <= start[event] and tree[0, 1] < most:
                node = 1
                while node < leaves:
                    node = 2 * node if tree[0, 2 * node] == tree[0, node] else 2 * node + 1
                number = node - leaves
                until = most
                while top[number] >= 0:
                    until = end[top[number]]
                    if until > start[event]:
                        break
                    moments[count] = 4 * top[number] + END
                    count += 1
                    top[number] = below[top[number]]
                    until = most
                _open_until(tree, number, until)
            if tree[1, 1] < end[event]:
                count = -1
                break
            node = 1
            while node < leaves:
                node = 2 * node if tree[1, 2 * node] >= end[event] else 2 * node + 1
            number = node - leaves
            used = max(used, number + 1)
            lane[event] = number
            if end[event] <= start[event]:
                moments[count] = 4 * event + MARK
                count += 1
                continue
            below[event] = top[number]
            top[number] = event
            moments[count] = 4 * event + BEGIN
            count += 1
            _open_until(tree, number, end[event])
    return count
