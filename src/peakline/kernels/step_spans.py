"""Spans of host threads by step, and which of them wins when: the step database."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.trace_layout import MARKER, NOTHING, OUTER, SKIP

__all__ = ["host_spans", "sweep"]


def host_spans(
    start: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    step: cython.const[cython.int][::1],
    code: cython.const[cython.int][::1],
    kind_of: cython.const[cython.uchar][::1],
    special: cython.const[cython.uchar][::1],
    first: cython.longlong,
    last: cython.longlong,
    mark_begin: cython.const[cython.longlong][::1],
    mark_end: cython.const[cython.longlong][::1],
    kinds: cython.uchar[::1],
    steps: cython.int[::1],
    begins: cython.longlong[::1],
    ends: cython.longlong[::1],
    markers: cython.longlong[::1],
) -> tuple[int, int]:
    """What the events ``first:last`` of one line say of steps.

    ``step`` is the row of an event's step (below 0: none), ``kind_of`` the kind of span per name
    code (the last: of an event without a name, whose code is -1), ``special`` another kind per
    event (`SKIP`: that of its name; empty: of no event). Spans of `OUTER` that lie in the one
    before, of the same step, are left out, and joined with it where they overlap: nothing changes
    by that. Writes the spans (``kinds``, ``steps``, ``begins``, ``ends``) and ``markers`` (the
    event): one whose name says so, or that lies exactly at ``mark_begin:mark_end`` of its step.
    Returns how many spans and markers there are: together no more than events.
    """
    result: cython.longlong = 0
    marked: cython.longlong = 0
    open_step: cython.longlong = -1
    open_begin: cython.longlong = 0
    open_end: cython.longlong = 0
    e: cython.longlong
    k: cython.longlong
    name: cython.longlong
    kind: cython.int
    b: cython.longlong
    stop: cython.longlong
    has_special: cython.bint = special.shape[0] > 0
    with cython.nogil:
        for e in range(first, last):
            k = step[e]
            if k < 0:
                continue
            name = code[e]
            kind = kind_of[name if name >= 0 else kind_of.shape[0] - 1]
            if has_special and special[e] != SKIP:
                kind = special[e]
            b, stop = start[e], end[e]
            if kind == MARKER or (b == mark_begin[k] and stop == mark_end[k]):
                markers[marked] = e
                marked += 1
                continue
            if kind >= NOTHING:
                continue
            if kind == OUTER:
                if k == open_step and b < open_end:
                    open_end = max(open_end, stop)
                    continue
                if open_step >= 0:
                    kinds[result], steps[result] = OUTER, open_step
                    begins[result], ends[result] = open_begin, open_end
                    result += 1
                open_step, open_begin, open_end = k, b, stop
            else:
                kinds[result], steps[result] = kind, k
                begins[result], ends[result] = b, stop
                result += 1
        if open_step >= 0:
            kinds[result], steps[result] = OUTER, open_step
            begins[result], ends[result] = open_begin, open_end
            result += 1
    return result, marked


def sweep(
    step: cython.const[cython.int][::1],
    time: cython.const[cython.longlong][::1],
    kind: cython.const[cython.uchar][::1],
    starts: cython.const[cython.uchar][::1],
    window_begin: cython.const[cython.longlong][::1],
    window_end: cython.const[cython.longlong][::1],
    inside: cython.longlong[:, ::1],
    whole: cython.longlong[:, ::1],
    there: cython.uchar[:, ::1],
    active: cython.longlong[::1],
) -> None:
    """Give every instant of a step to the highest kind of span that covers it.

    ``step``, ``time``, ``kind`` and ``starts`` are the ends of spans, sorted by step, time, ends
    before starts, the higher kind first. Adds to ``inside[step, kind]`` what lies in the step's
    window, to ``whole`` all of it, and sets ``there`` where a kind was the highest at all. An end
    without a start (of a span without length, whose end comes first) counts as XProf counts it:
    its kind goes on until another span of it ends. ``active`` is room for a number per kind.
    """
    highest: cython.longlong = 0
    i: cython.longlong
    k: cython.longlong
    row: cython.longlong
    this: cython.longlong
    begin: cython.longlong
    end: cython.longlong
    with cython.nogil:
        for i in range(step.shape[0] - 1):
            row = step[i]
            if i == 0 or step[i - 1] != row:
                for k in range(active.shape[0]):
                    active[k] = 0
                highest = 0
            this = kind[i]
            if starts[i]:
                active[this] += 1
                highest = max(highest, this)
            else:
                active[this] -= 1
                if this == highest and active[this] == 0:
                    while highest > 0:
                        highest -= 1
                        if active[highest] > 0:
                            break
            if step[i + 1] != row:
                continue
            begin, end = time[i], time[i + 1]
            there[row, highest] = True
            whole[row, highest] += end - begin
            begin = max(begin, window_begin[row])
            end = min(end, window_end[row])
            if end > begin:
                inside[row, highest] += end - begin
