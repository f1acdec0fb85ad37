"""Events of lines on lanes on which they nest."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.trace_layout import BEGIN, END, MARK

__all__ = ["nest"]


def nest(
    order: cython.const[cython.longlong][::1],
    line: cython.const[cython.longlong][::1],
    start: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    lane: cython.int[::1],
    moments: cython.longlong[::1],
    top: cython.longlong[::1],
    below: cython.longlong[::1],
) -> int:
    """Put the events of every line on lanes on which they nest; write begins and ends in order.

    ``order`` sorts by line, start, and outer before inner. ``lane`` becomes the first lane of its
    line on which the event lies within, or behind, what is open there. ``moments`` becomes
    ``4 * event + kind`` per begin, end and mark, for each lane in the order in which they happen;
    returns how many there are. ``top`` and ``below`` are room for a number per event: what is open
    on each lane, and what each event lies on.
    """
    used: cython.longlong = 0
    count: cython.longlong = 0
    place: cython.longlong
    event: cython.longlong
    number: cython.longlong
    found: cython.longlong
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
                used = 0
            if place == total:
                break
            found = -1
            for number in range(used):
                while top[number] >= 0 and end[top[number]] <= start[event]:
                    moments[count] = 4 * top[number] + END
                    count += 1
                    top[number] = below[top[number]]
                if top[number] < 0 or end[top[number]] >= end[event]:
                    found = number
                    break
            if found < 0:
                found = used
                top[found] = -1
                used += 1
            lane[event] = found
            if end[event] <= start[event]:
                moments[count] = 4 * event + MARK
                count += 1
                continue
            below[event] = top[found]
            top[found] = event
            moments[count] = 4 * event + BEGIN
            count += 1
    return count
