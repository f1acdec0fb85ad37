"""The step timeline: its lanes and arrows."""

from __future__ import annotations

import cython

__all__ = ["assign_lanes", "follow_inputs"]


def assign_lanes(
    start: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    first_of_device: cython.const[cython.longlong][::1],
    lane: cython.longlong[::1],
    ends: cython.longlong[::1],
) -> bool:
    """Fill ``lane``: the first whose last execution ended before this one starts, else a new one.

    Per device (rows ``first_of_device[d]`` up to the next) lane 0 is free from time 1 on, as in
    TensorFlow's timeline. Returns False where ``ends`` has no room for that many lanes: call again
    with more.
    """
    device: cython.longlong
    row: cython.longlong
    used: cython.longlong
    found: cython.longlong
    has_room: cython.bint = True
    with cython.nogil:
        for device in range(first_of_device.shape[0] - 1):
            used = 1
            ends[0] = 0
            for row in range(first_of_device[device], first_of_device[device + 1]):
                found = 0
                while found < used and start[row] <= ends[found]:
                    found += 1
                if found == ends.shape[0]:
                    has_room = False
                    break
                if found == used:
                    used += 1
                ends[found] = end[row]
                lane[row] = found
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
