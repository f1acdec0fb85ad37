"""Sequential kernels of the timeline index: tracks, levels of detail, and what a tile draws.

A track is a drawing row of a line; ``order`` lists its events, which do not overlap, in order of
time. At level ``k`` the resolution is ``2**k`` ps: two neighbours of a track are one *run* when
both are shorter than that and begin in the same cell of a grid of that width. Cells of one level
nest in those of the next, so that the runs of a level are made of runs of every finer one.
"""

from __future__ import annotations

import numba as nb
import numpy as np

__all__ = ["SPARED", "build_levels", "draw", "join_levels", "order_tracks"]

U = np.uint64  # an unsigned index needs no check for counting from the end

_NEVER = 65
"""The level of an event that begins a track: it joins nothing."""
_FEW = 64
"""A level with so few items needs no coarser one: they are drawn one by one."""
SPARED = 8
"""A level is worth its memory when each of its runs spares so many items of the kept level below
it: two runs then take as much as one event of the trace, and a level is read that has five to ten
times fewer items."""


@nb.njit(cache=True, nogil=True)
def order_tracks(first, row, first_track, track_first, order):  # type: ignore[no-untyped-def]
    """Put the events of each line in order of their rows; those of a row stay in order.

    ``first_track`` is the first track of each line. Writes ``track_first`` (as many as tracks, and
    one) and ``order``.
    """
    track_first[:] = 0
    for line in range(first.size - 1):
        base = first_track[U(line)] + 1
        for e in range(first[U(line)], first[U(line + 1)]):
            track_first[U(base + row[U(e)])] += 1
    for t in range(1, track_first.size):
        track_first[U(t)] += track_first[U(t - 1)]
    at = track_first.copy()
    for line in range(first.size - 1):
        base = first_track[U(line)]
        for e in range(first[U(line)], first[U(line + 1)]):
            t = base + row[U(e)]
            order[U(at[U(t)])] = e
            at[U(t)] += 1


@nb.njit(cache=True, nogil=True)
def join_levels(start, end, order, track_first, joint, overlaps):  # type: ignore[no-untyped-def]
    """Write ``joint``: the first level at which an event is one run with the event before it.

    ``overlaps`` tells of each track whether events of it overlap, as those of the last drawing
    row of a line may: such a track has no levels.
    """
    for t in range(track_first.size - 1):
        before_start, before_end = np.int64(0), np.int64(0)
        for j in range(track_first[U(t)], track_first[U(t + 1)]):
            e = order[U(j)]
            b, stop = start[U(e)], end[U(e)]
            bits = _NEVER
            if j > track_first[U(t)]:
                if b < before_end:
                    overlaps[U(t)] = True
                x = U(b ^ before_start) | U(stop - b) | U(before_end - before_start)
                bits = 0
                for shift in (32, 16, 8, 4, 2, 1):
                    if x >> U(shift) != U(0):
                        x >>= U(shift)
                        bits += shift
                if x != U(0):
                    bits += 1
            joint[U(j)] = bits
            before_start, before_end = b, stop


@nb.njit(cache=True, nogil=True)
def build_levels(  # type: ignore[no-untyped-def]
    start, end, order, joint, track_first, overlaps,
    track_levels, level_bits, level_first,
    run_first, run_last, run_longest, run_begin, run_until, run_length, run_busy,
):  # fmt: skip
    """Choose the levels of every track and write their runs of two events or more.

    ``track_levels`` is where the levels of each track begin, ``level_first`` where the runs of each
    level do; a run is ``order[run_first:run_last]``. Returns how many levels and runs there are.
    """
    levels, runs = np.int64(0), np.int64(0)
    joined, opened = np.empty(67, np.int64), np.empty(67, np.int64)
    # Open runs, one per chosen level: where it began, its longest event, its busy time.
    bits, place = np.empty(65, np.int64), np.empty(65, np.int64)
    began, longest = np.empty(65, np.int64), np.empty(65, np.int64)
    length, busy = np.empty(65, np.int64), np.empty(65, np.int64)
    for t in range(track_first.size - 1):
        track_levels[U(t)] = levels
        lo, hi = track_first[U(t)], track_first[U(t + 1)]
        if hi - lo <= _FEW or overlaps[U(t)]:
            continue
        joined[:] = 0
        opened[:] = 0
        before = _NEVER
        for j in range(lo + 1, hi):
            k = np.int64(joint[U(j)])
            joined[U(k)] += 1
            if k < before:
                # From level k until the one before joins too, a run begins just before here.
                opened[U(k)] += 1
                opened[U(before)] -= 1
            before = k
        items, left, open_runs, chosen = hi - lo, hi - lo, np.int64(0), 0
        for k in range(64):
            items -= joined[U(k)]
            open_runs += opened[U(k)]
            if left <= _FEW:
                break
            if open_runs > 0 and SPARED * open_runs <= left - items:
                bits[U(chosen)], place[U(chosen)] = k, runs
                level_bits[U(levels)], level_first[U(levels)] = k, runs
                levels += 1
                chosen += 1
                runs += open_runs
                left = items
        if chosen == 0:
            continue
        for j in range(lo, hi + 1):
            # Past the last event every run ends.
            k = np.int64(joint[U(j)]) if lo < j < hi else np.int64(_NEVER)
            c = 0
            while c < chosen and j > lo and bits[U(c)] < k:
                if j - began[U(c)] > 1:
                    at = place[U(c)]
                    run_first[U(at)], run_last[U(at)] = began[U(c)], j
                    run_longest[U(at)], run_length[U(at)] = longest[U(c)], length[U(c)]
                    run_busy[U(at)] = busy[U(c)]
                    run_begin[U(at)] = start[U(order[U(began[U(c)])])]
                    run_until[U(at)] = end[U(order[U(j - 1)])]
                    place[U(c)] = at + 1
                if c + 1 < chosen:
                    if began[U(c + 1)] < 0:
                        began[U(c + 1)], busy[U(c + 1)] = began[U(c)], 0
                        length[U(c + 1)] = -1
                    busy[U(c + 1)] += busy[U(c)]
                    if length[U(c)] > length[U(c + 1)]:
                        length[U(c + 1)], longest[U(c + 1)] = length[U(c)], longest[U(c)]
                began[U(c)] = -1
                c += 1
            if j == lo:
                began[:chosen] = -1
            if j == hi:
                break
            e = order[U(j)]
            own = end[U(e)] - start[U(e)]
            if began[0] < 0:
                began[0], busy[0], length[0] = j, 0, -1
            busy[0] += own
            if own > length[0]:
                length[0], longest[0] = own, e
    track_levels[U(track_first.size - 1)] = levels
    return levels, runs


@nb.njit(cache=True, nogil=True)
def draw(  # type: ignore[no-untyped-def]
    start, end, order, joint, track_first, overlaps, track_levels, level_bits, level_first,
    run_first, run_last, run_longest, run_begin, run_until, run_length, run_busy,
    tracks, begin, stop, bits,
    out_first, out_begin, out_until, out_count, out_busy, out_event,
):  # fmt: skip
    """The items that ``tracks`` show from ``begin`` to ``stop`` at level ``bits`` (-1: none).

    Runs that the viewport cuts are taken apart: only events that lie in it count. Fills the ``out``
    arrays as far as they go; ``out_first`` is where the items of each track begin. Returns how
    many items there are.
    """
    room, n = out_begin.size, np.int64(0)
    for place in range(tracks.size):
        out_first[U(place)] = n
        t = tracks[U(place)]
        lo, hi = track_first[U(t)], track_first[U(t + 1)]
        last = hi
        if not overlaps[U(t)]:
            while lo < last:
                middle = (lo + last) >> 1
                e = order[U(middle)]
                if end[U(e)] > begin or start[U(e)] >= begin:
                    last = middle
                else:
                    lo = middle + 1
        first, last = lo, hi
        while first < last:
            middle = (first + last) >> 1
            if start[U(order[U(middle)])] >= stop:
                last = middle
            else:
                first = middle + 1
        hi = first
        # The coarsest level that may be drawn, and its first run that ends after the first event.
        least, top = track_levels[U(t)], track_levels[U(t + 1)] - 1
        while top >= least and level_bits[U(top)] > bits:
            top -= 1
        run, runs_end = np.int64(0), np.int64(0)
        if top >= least:
            runs_end = level_first[U(top + 1)]
            run = _run_after(run_last, level_first[U(top)], runs_end, lo)
        j, item, longest_there = lo, np.int64(-1), np.int64(0)
        while j < hi:
            found = np.int64(-1)
            while run < runs_end and run_last[U(run)] <= j:
                run += 1
            if run < runs_end and run_first[U(run)] <= j:
                found, level = run, top
                while run_first[U(found)] != j or run_last[U(found)] > hi:
                    # The edge of the viewport cuts it: what finer level has a run here?
                    level -= 1
                    if level < least:
                        found = np.int64(-1)
                        break
                    finer_end = level_first[U(level + 1)]
                    found = _run_after(run_last, level_first[U(level)], finer_end, j)
                    if found >= finer_end or run_first[U(found)] > j:
                        found = np.int64(-1)
                        break
            if found >= 0:
                following, longest = np.int64(run_last[U(found)]), run_longest[U(found)]
                b, until = run_begin[U(found)], run_until[U(found)]
                length, busy = run_length[U(found)], run_busy[U(found)]
            else:
                longest = order[U(j)]
                b, until = start[U(longest)], end[U(longest)]
                if until <= begin and b < begin:
                    # Only where events overlap: it ends before the viewport.
                    j, item = j + 1, np.int64(-1)
                    continue
                following, length, busy = j + 1, until - b, until - b
            if item >= 0 and joint[U(j)] <= bits:
                if item < room:
                    out_until[U(item)] = max(out_until[U(item)], until)
                    out_count[U(item)] += following - j
                    out_busy[U(item)] += busy
                    if length > longest_there:
                        out_event[U(item)] = longest
                        longest_there = length
            else:
                item = n
                n += 1
                if item < room:
                    out_begin[U(item)], out_until[U(item)] = b, until
                    out_count[U(item)], out_busy[U(item)] = following - j, busy
                    out_event[U(item)], longest_there = longest, length
            j = following
    out_first[U(tracks.size)] = n
    return n


@nb.njit(cache=True, nogil=True)
def _run_after(run_last, lo, hi, j):  # type: ignore[no-untyped-def]
    """The first run of ``lo:hi`` that ends after the place ``j``."""
    while lo < hi:
        middle = (lo + hi) >> 1
        if run_last[U(middle)] <= j:
            lo = middle + 1
        else:
            hi = middle
    return lo


@nb.njit(cache=True, nogil=True)
def extremes(low, high, level_first, bounds, out_low, out_high):  # type: ignore[no-untyped-def]
    """The least and the largest value of each stretch ``bounds[k]:bounds[k + 1]`` of a series.

    ``low`` and ``high`` hold the series itself (``level_first[0]`` on) and, level after level, the
    extremes of 16 neighbours each of the level below. An empty stretch leaves what it finds.
    """
    for k in range(bounds.size - 1):
        lo, hi = bounds[U(k)], bounds[U(k + 1)]
        least, most = out_low[U(k)], out_high[U(k)]
        level = 0
        while lo < hi:
            base = level_first[U(level)]
            is_last = level + 2 == level_first.size
            while lo < hi and (is_last or lo & 15 != 0):
                least = min(least, low[U(base + lo)])
                most = max(most, high[U(base + lo)])
                lo += 1
            while hi > lo and hi & 15 != 0:
                hi -= 1
                least = min(least, low[U(base + hi)])
                most = max(most, high[U(base + hi)])
            lo, hi, level = lo >> 4, hi >> 4, level + 1
        out_low[U(k)], out_high[U(k)] = least, most
