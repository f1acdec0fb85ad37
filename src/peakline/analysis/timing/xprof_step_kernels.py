"""Sequential kernels of the step database: spans of host threads, and which of them wins when."""

from __future__ import annotations

import numba as nb
import numpy as np

__all__ = ["MARKER", "NOTHING", "OUTER", "SKIP", "host_spans", "sweep"]

U = np.uint64  # an unsigned index needs no check for counting from the end

SKIP = 255
"""Kind of a name whose events are neither spans nor markers."""
MARKER = 254
"""Kind of a name whose events mark a step."""
NOTHING = 253
"""Kind of a single event that is neither, whatever its name says."""
OUTER = 1
"""The kind of span that everything else covers: computation of the host."""


@nb.njit(cache=True, nogil=True)
def host_spans(  # type: ignore[no-untyped-def]
    start, end, step, code, kind_of, special, first, last, mark_begin, mark_end, spans, markers
):
    """What the events ``first:last`` of one line say of steps.

    ``step`` is the row of an event's step (below 0: none), ``kind_of`` the kind of span per name
    code (the last: of an event without a name), ``special`` another kind per event (`SKIP`: that
    of its name; empty: of no event). Spans of `OUTER` that lie in the one before, of the same
    step, are left out, and joined with it where they overlap: nothing changes by that. Writes
    ``spans`` (kind, step, begin, end) and ``markers`` (the event): one whose name says so, or that
    lies exactly at ``mark_begin:mark_end`` of its step. Returns how many spans and markers there
    are.
    """
    kinds, steps, begins, ends = spans
    found, marked = 0, 0
    open_step, open_begin, open_end = np.int64(-1), np.int64(0), np.int64(0)
    for e in range(first, last):
        k = step[U(e)]
        if k < 0:
            continue
        kind = kind_of[code[U(e)]]
        if special.size > 0 and special[U(e)] != SKIP:
            kind = special[U(e)]
        b, stop = start[U(e)], end[U(e)]
        if kind == MARKER or (b == mark_begin[U(k)] and stop == mark_end[U(k)]):
            markers[U(marked)] = e
            marked += 1
            continue
        if kind >= NOTHING:
            continue
        if kind == OUTER:
            if k == open_step and b < open_end:
                open_end = max(open_end, stop)
                continue
            if open_step >= 0:
                kinds[U(found)], steps[U(found)] = OUTER, open_step
                begins[U(found)], ends[U(found)] = open_begin, open_end
                found += 1
            open_step, open_begin, open_end = k, b, stop
        else:
            kinds[U(found)], steps[U(found)] = kind, k
            begins[U(found)], ends[U(found)] = b, stop
            found += 1
    if open_step >= 0:
        kinds[U(found)], steps[U(found)] = OUTER, open_step
        begins[U(found)], ends[U(found)] = open_begin, open_end
        found += 1
    return found, marked


@nb.njit(cache=True, nogil=True)
def sweep(  # type: ignore[no-untyped-def]
    step, time, kind, starts, window_begin, window_end, inside, whole, there
):
    """Give every instant of a step to the highest kind of span that covers it.

    ``step``, ``time``, ``kind`` and ``starts`` are the ends of spans, sorted by step, time, ends
    before starts, the higher kind first. Adds to ``inside[step, kind]`` what lies in the step's
    window, to ``whole`` all of it, and sets ``there`` where a kind was the highest at all. An end
    without a start (of a span without length, whose end comes first) counts as XProf counts it:
    its kind goes on until another span of it ends.
    """
    active = np.zeros(inside.shape[1], np.int64)
    highest = np.int64(0)
    for i in range(step.size - 1):
        row = step[U(i)]
        if i == 0 or step[U(i - 1)] != row:
            active[:] = 0
            highest = np.int64(0)
        this = kind[U(i)]
        if starts[U(i)]:
            active[U(this)] += 1
            if this > highest:
                highest = np.int64(this)
        else:
            active[U(this)] -= 1
            if this == highest and active[U(this)] == 0:
                highest -= 1
                while highest > 0 and active[U(highest)] <= 0:
                    highest -= 1
        if step[U(i + 1)] != row:
            continue
        begin, end = time[U(i)], time[U(i + 1)]
        there[U(row), U(highest)] = True
        whole[U(row), U(highest)] += end - begin
        begin, end = max(begin, window_begin[U(row)]), min(end, window_end[U(row)])
        if end > begin:
            inside[U(row), U(highest)] += end - begin
