"""The step timeline: its lanes and arrows."""

from __future__ import annotations

import cython

__all__ = ["assign_lanes", "follow_inputs"]


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _end_at(
    ends: cython.longlong[::1], leaf: cython.longlong, time: cython.longlong
) -> cython.void:
    """The lane of that leaf of the tree is free after ``time``."""
    node: cython.longlong = leaf
    ends[node] = time
    while node > 1:
        node = node // 2
        ends[node] = min(ends[2 * node], ends[2 * node + 1])


def assign_lanes(
    start: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    first_of_device: cython.const[cython.longlong][::1],
    lane: cython.longlong[::1],
    ends: cython.longlong[::1],
) -> bool:
    """Fill ``lane``: the first whose last execution ended before this one starts, else a new one.

    Per device (rows ``first_of_device[d]`` up to the next) lane 0 is free from time 1 on, as in
    TensorFlow's timeline. ``ends``, given as the largest numbers, is room for a tree of two numbers
    per lane, a power of two of them: lanes are the leaves, in its second half, and each node has
    the least end below it. Returns False where that is too small: call again with more.
    """
    most: cython.longlong = 0x7FFFFFFFFFFFFFFF
    leaves: cython.longlong = ends.shape[0] // 2
    device: cython.longlong
    row: cython.longlong
    used: cython.longlong
    node: cython.longlong
    has_room: cython.bint = True
    with cython.nogil:
        for device in range(first_of_device.shape[0] - 1):
            used = 1
            _end_at(ends, leaves, 0)
            for row in range(first_of_device[device], first_of_device[device + 1]):
                node = leaves + used
                if ends[1] < start[row]:
                    node = 1
                    while node < leaves:
                        node = 2 * node if ends[2 * node] < start[row] else 2 * node + 1
                elif used == leaves:
                    has_room = False
                    break
                else:
                    used += 1
                lane[row] = node - leaves
                _end_at(ends, node, end[row])
            for node in range(leaves, leaves + used):
                _end_at(ends, node, most)
            if not has_room:
                break
    return has_room


def follow_inputs(
    named: cython.const[cython.int][::1],
    pid: cython.const[cython.longlong][::1],
    lane: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    first_input: cython.const[cython.longlong][::1],
    inputs: cython.const[cython.longlong][::1],
    from_pid: cython.const[cython.longlong][::1],
    from_lane: cython.const[cython.longlong][::1],
    last_use: cython.longlong[::1],
    row_of: cython.longlong[::1],
    tensor_of: cython.longlong[::1],
) -> int:
    """Every execution uses its inputs until just before its end; an input that was made on
    another lane is an arrow.

    The inputs of row ``r`` are ``inputs[first_input[named[r]] : first_input[named[r] + 1]]``.
    Raises ``last_use``, fills row and tensor of the arrows and returns how many there are.
    """
    arrows: cython.longlong = 0
    row: cython.longlong
    k: cython.longlong
    tensor: cython.longlong
    with cython.nogil:
        for row in range(named.shape[0]):
            for k in range(first_input[named[row]], first_input[named[row] + 1]):
                tensor = inputs[k]
                last_use[tensor] = max(last_use[tensor], end[row] - 1)
                if from_lane[tensor] != lane[row] or from_pid[tensor] != pid[row]:
                    row_of[arrows] = row
                    tensor_of[arrows] = tensor
                    arrows += 1
    return arrows
