"""The compiled parts of writing protobuf messages: numbers and spans of bytes, put where they
belong, and the nesting of events.
"""

from __future__ import annotations

import numba as nb
import numpy as np

__all__ = ["BEGIN", "END", "MARK", "nest", "number_sizes", "put_numbers", "put_spans"]

U = np.uint64  # also for indices: an unsigned one needs no check for counting from the end

BEGIN, END, MARK = range(3)
"""What `nest` says of an event: it begins, it ends, it has no length."""


@nb.njit(cache=True, nogil=True)
def number_sizes(values, present, around, sizes):  # type: ignore[no-untyped-def]
    """Add to ``sizes`` what each varint takes, and ``around`` for its tag, where ``present``."""
    for row in range(values.size):
        if present[row]:
            value = values[row]
            sizes[row] += around + 1
            while value >= U(128):
                value >>= U(7)
                sizes[row] += 1


@nb.njit(cache=True, nogil=True)
def put_numbers(values, present, tag, out, at):  # type: ignore[no-untyped-def]
    """Write tag and varint of each row at ``at``, where ``present``, and move ``at`` behind it."""
    for row in range(values.size):
        if present[row]:
            place = at[row]
            for letter in tag:
                out[U(place)] = letter
                place += 1
            value = values[row]
            while value >= U(128):
                out[U(place)] = np.uint8(value & U(127) | U(128))
                value >>= U(7)
                place += 1
            out[U(place)] = np.uint8(value)
            at[row] = place + 1


@nb.njit(cache=True, nogil=True)
def put_spans(data, first, end, out, at):  # type: ignore[no-untyped-def]
    """Copy ``data[first:end]`` of each row to ``at``, and move ``at`` behind it."""
    for row in range(first.size):
        place = at[row]
        for k in range(first[row], end[row]):
            out[U(place)] = data[U(k)]
            place += 1
        at[row] = place


@nb.njit(cache=True, nogil=True)
def nest(order, line, start, end, lane, told):  # type: ignore[no-untyped-def]
    """Put the events of every line on lanes on which they nest, and tell begins and ends in order.

    ``order`` sorts by line, start, and outer before inner. ``lane`` becomes the first lane of its
    line on which the event lies within, or behind, what is open there. ``told`` becomes
    ``4 * event + kind`` per begin, end and mark, for each lane in the order in which they happen;
    returns how many there are.
    """
    lanes = 4
    depth = np.zeros(lanes, np.int64)
    room = 16
    stack = np.zeros((lanes, room), np.int64)
    used = 0
    count = 0
    for place in range(order.size):
        event = order[place]
        begins_line = place == 0 or line[order[place - 1]] != line[event]
        if begins_line:
            for number in range(used):
                while depth[number]:
                    depth[number] -= 1
                    told[count] = 4 * stack[number, depth[number]] + END
                    count += 1
            used = 0
        found = -1
        for number in range(used):
            while depth[number] and end[stack[number, depth[number] - 1]] <= start[event]:
                depth[number] -= 1
                told[count] = 4 * stack[number, depth[number]] + END
                count += 1
            if not depth[number] or end[stack[number, depth[number] - 1]] >= end[event]:
                found = number
                break
        if found < 0:
            if used == lanes:
                lanes *= 2
                wider = np.zeros((lanes, room), np.int64)
                wider[:used] = stack
                stack = wider
                longer = np.zeros(lanes, np.int64)
                longer[:used] = depth
                depth = longer
            found = used
            depth[found] = 0
            used += 1
        lane[event] = found
        if end[event] <= start[event]:
            told[count] = 4 * event + MARK
            count += 1
            continue
        if depth[found] == room:
            room *= 2
            deeper = np.zeros((lanes, room), np.int64)
            deeper[:, : room // 2] = stack
            stack = deeper
        stack[found, depth[found]] = event
        depth[found] += 1
        told[count] = 4 * event + BEGIN
        count += 1
    for number in range(used):
        while depth[number]:
            depth[number] -= 1
            told[count] = 4 * stack[number, depth[number]] + END
            count += 1
    return count
