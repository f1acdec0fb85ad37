"""The timeline's index: tracks, levels of detail, and what a tile draws.

A track is a drawing row of a line; ``order`` lists its events, which do not overlap, in order of
time. At level ``k`` the resolution is ``2**k`` ps: two neighbours of a track are one *run* when
both are shorter than that and begin in the same cell of a grid of that width. Cells of one level
nest in those of the next, so that the runs of a level are made of runs of every finer one.
"""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.bits import unsigned64
    from peakline.kernels.trace_layout import FEW, NEVER, SPARED

__all__ = ["build_levels", "draw", "extremes", "join_levels", "order_tracks"]


def order_tracks(
    first: cython.const[cython.longlong][::1],
    row: cython.const[cython.ushort][::1],
    first_track: cython.const[cython.longlong][::1],
    track_first: cython.longlong[::1],
    order: cython.int[::1],
    at: cython.longlong[::1],
) -> None:
    """Put the events of each line in order of their rows; those of a row stay in order.

    ``first_track`` is the first track of each line. Writes ``track_first`` (given as 0; as many as
    tracks, and one) and ``order``. ``at`` is room for as many numbers as ``track_first`` has.
    """
    line: cython.longlong
    e: cython.longlong
    t: cython.longlong
    base: cython.longlong
    with cython.nogil:
        for line in range(first.shape[0] - 1):
            base = first_track[line] + 1
            for e in range(first[line], first[line + 1]):
                track_first[base + row[e]] += 1
        for t in range(1, track_first.shape[0]):
            track_first[t] += track_first[t - 1]
        for t in range(track_first.shape[0]):
            at[t] = track_first[t]
        for line in range(first.shape[0] - 1):
            base = first_track[line]
            for e in range(first[line], first[line + 1]):
                t = base + row[e]
                order[at[t]] = e
                at[t] += 1


def join_levels(
    start: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    order: cython.const[cython.int][::1],
    track_first: cython.const[cython.longlong][::1],
    joint: cython.uchar[::1],
    overlaps: cython.uchar[::1],
) -> None:
    """Write ``joint``: the first level at which an event is one run with the event before it.

    ``overlaps`` says of each track whether events of it overlap, as those of the last drawing
    row of a line may: such a track has no levels.
    """
    t: cython.longlong
    j: cython.longlong
    e: cython.longlong
    b: cython.longlong
    stop: cython.longlong
    before_start: cython.longlong
    before_end: cython.longlong
    x: cython.ulonglong
    bits: cython.int
    shift: cython.int
    with cython.nogil:
        for t in range(track_first.shape[0] - 1):
            before_start, before_end = 0, 0
            for j in range(track_first[t], track_first[t + 1]):
                e = order[j]
                b, stop = start[e], end[e]
                bits = NEVER
                if j > track_first[t]:
                    if b < before_end:
                        overlaps[t] = True
                    x = unsigned64(b ^ before_start) | unsigned64(stop - b)
                    x |= unsigned64(before_end - before_start)
                    bits, shift = 0, 32
                    while shift > 0:
                        if x >> shift != 0:
                            x >>= shift
                            bits += shift
                        shift >>= 1
                    if x != 0:
                        bits += 1
                joint[j] = bits
                before_start, before_end = b, stop


def build_levels(
    start: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    order: cython.const[cython.int][::1],
    joint: cython.const[cython.uchar][::1],
    track_first: cython.const[cython.longlong][::1],
    overlaps: cython.const[cython.uchar][::1],
    track_levels: cython.longlong[::1],
    level_bits: cython.schar[::1],
    level_first: cython.longlong[::1],
    run_first: cython.int[::1],
    run_last: cython.int[::1],
    run_longest: cython.int[::1],
    run_begin: cython.longlong[::1],
    run_until: cython.longlong[::1],
    run_length: cython.longlong[::1],
    run_busy: cython.longlong[::1],
    room: cython.longlong[:, ::1],
) -> tuple[int, int]:
    """Choose the levels of every track and write their runs of two events or more.

    ``track_levels`` is where the levels of each track begin, ``level_first`` where the runs of each
    level do; a run is ``order[run_first:run_last]``. ``room`` is 8 by 67 numbers. Returns how many
    levels and runs there are.
    """
    levels: cython.longlong = 0
    runs: cython.longlong = 0
    joined: cython.longlong[::1] = room[0]
    opened: cython.longlong[::1] = room[1]
    # Open runs, one per chosen level: where it began, its longest event, its busy time.
    bits: cython.longlong[::1] = room[2]
    place: cython.longlong[::1] = room[3]
    began: cython.longlong[::1] = room[4]
    longest: cython.longlong[::1] = room[5]
    length: cython.longlong[::1] = room[6]
    busy: cython.longlong[::1] = room[7]
    t: cython.longlong
    lo: cython.longlong
    hi: cython.longlong
    j: cython.longlong
    k: cython.longlong
    c: cython.longlong
    e: cython.longlong
    at: cython.longlong
    before: cython.longlong
    items: cython.longlong
    left: cython.longlong
    open_runs: cython.longlong
    chosen: cython.longlong
    own: cython.longlong
    with cython.nogil:
        for t in range(track_first.shape[0] - 1):
            track_levels[t] = levels
            lo, hi = track_first[t], track_first[t + 1]
            if hi - lo <= FEW or overlaps[t]:
                continue
            for k in range(67):
                joined[k] = 0
                opened[k] = 0
            before = NEVER
            for j in range(lo + 1, hi):
                k = joint[j]
                joined[k] += 1
                if k < before:
                    # From level k until the one before joins too, a run begins just before here.
                    opened[k] += 1
                    opened[before] -= 1
                before = k
            items, left, open_runs, chosen = hi - lo, hi - lo, 0, 0
            for k in range(64):
                items -= joined[k]
                open_runs += opened[k]
                if left <= FEW:
                    break
                if open_runs > 0 and SPARED * open_runs <= left - items:
                    bits[chosen], place[chosen] = k, runs
                    level_bits[levels], level_first[levels] = k, runs
                    levels += 1
                    chosen += 1
                    runs += open_runs
                    left = items
            if chosen == 0:
                continue
            for j in range(lo, hi + 1):
                # Past the last event every run ends.
                k = NEVER
                if lo < j < hi:
                    k = joint[j]
                c = 0
                while c < chosen and j > lo and bits[c] < k:
                    if j - began[c] > 1:
                        at = place[c]
                        run_first[at], run_last[at] = began[c], j
                        run_longest[at], run_length[at] = longest[c], length[c]
                        run_busy[at] = busy[c]
                        run_begin[at] = start[order[began[c]]]
                        run_until[at] = end[order[j - 1]]
                        place[c] = at + 1
                    if c + 1 < chosen:
                        if began[c + 1] < 0:
                            began[c + 1], busy[c + 1] = began[c], 0
                            length[c + 1] = -1
                        busy[c + 1] += busy[c]
                        if length[c] > length[c + 1]:
                            length[c + 1], longest[c + 1] = length[c], longest[c]
                    began[c] = -1
                    c += 1
                if j == lo:
                    for c in range(chosen):
                        began[c] = -1
                if j == hi:
                    break
                e = order[j]
                own = end[e] - start[e]
                if began[0] < 0:
                    began[0], busy[0], length[0] = j, 0, -1
                busy[0] += own
                if own > length[0]:
                    length[0], longest[0] = own, e
        track_levels[track_first.shape[0] - 1] = levels
    return levels, runs


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _run_after(
    run_last: cython.const[cython.int][::1],
    lo: cython.longlong,
    hi: cython.longlong,
    j: cython.longlong,
) -> cython.longlong:
    """The first run of ``lo:hi`` that ends after the place ``j``."""
    middle: cython.longlong
    while lo < hi:
        middle = (lo + hi) >> 1
        if run_last[middle] <= j:
            lo = middle + 1
        else:
            hi = middle
    return lo


def draw(
    start: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    order: cython.const[cython.int][::1],
    joint: cython.const[cython.uchar][::1],
    track_first: cython.const[cython.longlong][::1],
    overlaps: cython.const[cython.uchar][::1],
    track_levels: cython.const[cython.longlong][::1],
    level_bits: cython.const[cython.schar][::1],
    level_first: cython.const[cython.longlong][::1],
    run_first: cython.const[cython.int][::1],
    run_last: cython.const[cython.int][::1],
    run_longest: cython.const[cython.int][::1],
    run_begin: cython.const[cython.longlong][::1],
    run_until: cython.const[cython.longlong][::1],
    run_length: cython.const[cython.longlong][::1],
    run_busy: cython.const[cython.longlong][::1],
    tracks: cython.const[cython.longlong][::1],
    begin: cython.longlong,
    stop: cython.longlong,
    bits: cython.longlong,
    out_first: cython.longlong[::1],
    out_begin: cython.longlong[::1],
    out_until: cython.longlong[::1],
    out_count: cython.longlong[::1],
    out_busy: cython.longlong[::1],
    out_event: cython.int[::1],
) -> int:
    """The items that ``tracks`` show from ``begin`` to ``stop`` at level ``bits`` (-1: none).

    Runs that the viewport cuts are taken apart: only events that lie in it count. Fills the ``out``
    arrays as far as they go; ``out_first`` is where the items of each track begin. Returns how
    many items there are.
    """
    room: cython.longlong = out_begin.shape[0]
    n: cython.longlong = 0
    k: cython.longlong
    t: cython.longlong
    lo: cython.longlong
    hi: cython.longlong
    last: cython.longlong
    first: cython.longlong
    middle: cython.longlong
    e: cython.longlong
    least: cython.longlong
    top: cython.longlong
    level: cython.longlong
    run: cython.longlong
    runs_end: cython.longlong
    finer_end: cython.longlong
    j: cython.longlong
    item: cython.longlong
    longest_there: cython.longlong
    result: cython.longlong
    following: cython.longlong
    longest: cython.longlong
    b: cython.longlong
    until: cython.longlong
    length: cython.longlong
    busy: cython.longlong
    with cython.nogil:
        for k in range(tracks.shape[0]):
            out_first[k] = n
            t = tracks[k]
            lo, hi = track_first[t], track_first[t + 1]
            last = hi
            if not overlaps[t]:
                while lo < last:
                    middle = (lo + last) >> 1
                    e = order[middle]
                    if end[e] > begin or start[e] >= begin:
                        last = middle
                    else:
                        lo = middle + 1
            first, last = lo, hi
            while first < last:
                middle = (first + last) >> 1
                if start[order[middle]] >= stop:
                    last = middle
                else:
                    first = middle + 1
            hi = first
            # The coarsest level that may be drawn, and its first run that ends after the first
            # event.
            least, top = track_levels[t], track_levels[t + 1] - 1
            while top >= least and level_bits[top] > bits:
                top -= 1
            run, runs_end = 0, 0
            if top >= least:
                runs_end = level_first[top + 1]
                run = _run_after(run_last, level_first[top], runs_end, lo)
            j, item, longest_there = lo, -1, 0
            while j < hi:
                result = -1
                while run < runs_end and run_last[run] <= j:
                    run += 1
                if run < runs_end and run_first[run] <= j:
                    result, level = run, top
                    while run_first[result] != j or run_last[result] > hi:
                        # The edge of the viewport cuts it: what finer level has a run here?
                        level -= 1
                        if level < least:
                            result = -1
                            break
                        finer_end = level_first[level + 1]
                        result = _run_after(run_last, level_first[level], finer_end, j)
                        if result >= finer_end or run_first[result] > j:
                            result = -1
                            break
                if result >= 0:
                    following, longest = run_last[result], run_longest[result]
                    b, until = run_begin[result], run_until[result]
                    length, busy = run_length[result], run_busy[result]
                else:
                    longest = order[j]
                    b, until = start[longest], end[longest]
                    if until <= begin and b < begin:
                        # Only where events overlap: it ends before the viewport.
                        j, item = j + 1, -1
                        continue
                    following, length, busy = j + 1, until - b, until - b
                if item >= 0 and joint[j] <= bits:
                    if item < room:
                        out_until[item] = max(out_until[item], until)
                        out_count[item] += following - j
                        out_busy[item] += busy
                        if length > longest_there:
                            out_event[item] = longest
                            longest_there = length
                else:
                    item = n
                    n += 1
                    if item < room:
                        out_begin[item], out_until[item] = b, until
                        out_count[item], out_busy[item] = following - j, busy
                        out_event[item], longest_there = longest, length
                j = following
        out_first[tracks.shape[0]] = n
    return n


def extremes(
    low: cython.const[cython.double][::1],
    high: cython.const[cython.double][::1],
    level_first: cython.const[cython.longlong][::1],
    bounds: cython.const[cython.longlong][::1],
    out_low: cython.double[::1],
    out_high: cython.double[::1],
) -> None:
    """The least and the largest value of each stretch ``bounds[k]:bounds[k + 1]`` of a series.

    ``low`` and ``high`` hold the series itself (``level_first[0]`` on) and, level after level, the
    extremes of 16 neighbours each of the level below. An empty stretch leaves what it finds.
    """
    k: cython.longlong
    lo: cython.longlong
    hi: cython.longlong
    base: cython.longlong
    level: cython.longlong
    least: cython.double
    most: cython.double
    is_last: cython.bint
    with cython.nogil:
        for k in range(bounds.shape[0] - 1):
            lo, hi = bounds[k], bounds[k + 1]
            least, most = out_low[k], out_high[k]
            level = 0
            while lo < hi:
                base = level_first[level]
                is_last = level + 2 == level_first.shape[0]
                while lo < hi and (is_last or lo & 15 != 0):
                    least = min(least, low[base + lo])
                    most = max(most, high[base + lo])
                    lo += 1
                while hi > lo and hi & 15 != 0:
                    hi -= 1
                    least = min(least, low[base + hi])
                    most = max(most, high[base + hi])
                lo, hi, level = lo >> 4, hi >> 4, level + 1
            out_low[k], out_high[k] = least, most
