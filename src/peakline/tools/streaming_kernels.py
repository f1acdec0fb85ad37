"""Which events a viewport shows: compiled, since each event's answer depends on those before it."""

from __future__ import annotations

import numba as nb
import numpy as np

__all__ = ["LEVELS", "at_times", "choose_in_order", "choose_levels", "choose_per_track", "extent"]

U = np.uint64  # an unsigned index needs no check for counting from the end

LEVELS = 10 ** np.arange(12, -1, -1, dtype=np.int64)
"""The resolutions, in ps, at which XProf stores events: from a second to a picosecond."""

_UNKNOWN, _HIDDEN, _SHOWN = np.int8(0), np.int8(1), np.int8(2)
_END = np.uint8(1)
"""The direction of a flow into an event, where it ends."""


@nb.njit(cache=True, nogil=True)
def choose_per_track(start, end, code, hidden, first, begin, stop, resolution, chosen):  # type: ignore[no-untyped-def]
    """Mark in ``chosen`` what a viewport shows of each track (``first[k]:first[k + 1]``, by start).

    An event is out of it when it ends before ``begin`` or starts after ``stop``, or its name is
    hidden. One drawn below ``resolution`` is shown only as the first at its depth, or that far
    behind what is shown there; a depth is free once what it shows has ended. With resolution 0
    all are shown. Returns how many lie in the viewport, shown or not.
    """
    inside = 0
    ends = np.empty(256, np.int64)
    for track in range(first.size - 1):
        depths = 0
        for e in range(first[track], first[track + 1]):
            b, s = start[U(e)], end[U(e)]
            if b > stop:
                break
            if s < begin or hidden[U(code[U(e)])]:
                continue
            inside += 1
            if resolution > 0:
                depth = 0
                while depth < depths and ends[depth] > b:
                    depth += 1
                if s - b < resolution and depth < depths and b - ends[depth] < resolution:
                    continue
                if depth == ends.size:
                    larger = np.empty(2 * depth, np.int64)
                    larger[:depth] = ends
                    ends = larger
                ends[depth] = s
                depths = depth + 1
            chosen[U(e)] = True
    return inside


@nb.njit(cache=True, nogil=True)
def extent(start, end, code, hidden):  # type: ignore[no-untyped-def]
    """How many events have a name that is not hidden, and when they begin and end; 0 for none."""
    count = 0
    least, most = np.int64(2**63 - 1), np.int64(-(2**63))
    for e in range(start.size):
        if not hidden[U(code[U(e)])]:
            count += 1
            least, most = min(least, start[U(e)]), max(most, end[U(e)])
    return (count, least, most) if count else (0, np.int64(0), np.int64(0))


@nb.njit(cache=True, nogil=True)
def at_times(start, code, hidden, first, times, found):  # type: ignore[no-untyped-def]
    """Mark in ``found`` the events whose names are not hidden that start at one of ``times``
    (sorted, distinct); the events of a track are sorted by start.
    """
    for track in range(first.size - 1):
        place = 0
        for e in range(first[track], first[track + 1]):
            b = start[U(e)]
            while place < times.size and times[U(place)] < b:
                place += 1
            if place == times.size:
                break
            if times[U(place)] == b and not hidden[U(code[U(e)])]:
                found[U(e)] = True


@nb.njit(forceinline=True)
def _depth_of(ends, size, b):  # type: ignore[no-untyped-def]
    depth = 0
    while depth < size and ends[depth] > b:
        depth += 1
    return depth


@nb.njit(forceinline=True)
def _is_visible(b, s, row, flow, direction, is_point, resolution, ends, sizes, last, flows):  # type: ignore[no-untyped-def]
    """XProf's rule for one event; ``last`` holds per row the last counter or flow (-1: none).

    Returns -1 where ``ends`` has no room for the event's depth.
    """
    if is_point:
        if last[row] >= 0 and b - last[row] < resolution:
            return 0
        last[row] = b
        return 1
    visible = s - b >= resolution
    depth = _depth_of(ends[row], sizes[row], b)
    if not visible:
        visible = depth == sizes[row] or b - ends[row, depth] >= resolution
    if flow >= 0:
        is_new = flows[flow] == _UNKNOWN
        if is_new:
            flows[flow] = _SHOWN if visible else _HIDDEN
        if not visible:
            # Upstream subtracts without a sign: an end before the last one is far from it.
            if is_new and (last[row] < 0 or s < last[row] or s - last[row] >= resolution):
                flows[flow] = _SHOWN
            visible = flows[flow] == _SHOWN
        if direction == _END:
            flows[flow] = _UNKNOWN
        if visible:
            last[row] = s
    if not visible:
        return 0
    if depth == ends.shape[1]:
        return -1
    ends[row, depth] = s
    sizes[row] = depth + 1
    return 1


@nb.njit(forceinline=True)
def _set_visible(b, s, row, flow, direction, is_point, ends, sizes, last, flows):  # type: ignore[no-untyped-def]
    if is_point:
        last[row] = b
        return True
    if flow >= 0:
        if direction == _END:
            flows[flow] = _UNKNOWN
        elif flows[flow] == _UNKNOWN:
            flows[flow] = _SHOWN
        last[row] = s
    depth = _depth_of(ends[row], sizes[row], b)
    if depth == ends.shape[1]:
        return False
    ends[row, depth] = s
    sizes[row] = depth + 1
    return True


@nb.njit(cache=True, nogil=True)
def choose_in_order(start, end, row, flow, direction, is_point, resolution, room, flow_count):  # type: ignore[no-untyped-def]
    """Which of events in XProf's order it shows at ``resolution`` (1: shown).

    ``row`` is the track of each event and ``is_point`` marks counters and asynchronous ones, which
    have no depth. The first entry is -1 where more than ``room`` depths are needed.
    """
    rows = 0
    for e in range(row.size):
        rows = max(rows, row[e] + 1)
    ends, sizes = np.empty((rows, room), np.int64), np.zeros(rows, np.int64)
    last, flows = np.full(rows, -1, np.int64), np.zeros(flow_count, np.int8)
    shown = np.zeros(start.size, np.int8)
    for e in range(start.size):
        shown[e] = _is_visible(
            start[e], end[e], row[e], flow[e], direction[e], is_point[e], resolution,
            ends, sizes, last, flows,
        )  # fmt: skip
        if shown[e] < 0:
            shown[0] = -1
            break
    return shown


@nb.njit(cache=True, nogil=True)
def choose_levels(  # type: ignore[no-untyped-def]
    start, end, row, flow, direction, is_point, first, flow_order, resolutions, room, flow_count
):
    """The first of XProf's levels that stores each event; ``resolutions.size`` for a deeper one.

    Events stand track after track (``first``), each in XProf's order; ``flow_order`` are those of
    a flow, in that order over all tracks. The first entry is -1 where more than ``room`` depths
    are needed.
    """
    count = resolutions.size
    rows = 0
    for e in range(row.size):
        rows = max(rows, row[e] + 1)
    by_flow = np.zeros((count, flow_count), np.int8)
    level_of = np.full(start.size, count, np.int8)
    ends, sizes = np.empty((count, rows, room), np.int64), np.zeros((count, rows), np.int64)
    last, flows = np.full((count, rows), -1, np.int64), np.zeros((count, flow_count), np.int8)
    for e in flow_order:
        b, s, r, f, d = start[e], end[e], row[e], flow[e], direction[e]
        z = 0
        while z < count:
            seen = _is_visible(
                b, s, r, f, d, is_point[e], resolutions[z], ends[z], sizes[z], last[z], flows[z]
            )
            if seen < 0:
                level_of[0] = -1
                return level_of
            if by_flow[z, f] == _UNKNOWN:
                by_flow[z, f] = _SHOWN if seen == 1 else _HIDDEN
            z += 1
            if seen == 1:
                break
        while z < count:
            if not _set_visible(b, s, r, f, d, is_point[e], ends[z], sizes[z], last[z], flows[z]):
                level_of[0] = -1
                return level_of
            if by_flow[z, f] == _UNKNOWN:
                by_flow[z, f] = _SHOWN
            z += 1
    sizes[:] = 0
    last[:] = -1
    none = np.zeros(0, np.int8)
    for track in range(first.size - 1):
        for e in range(first[track], first[track + 1]):
            b, s, r, f = start[e], end[e], row[e], flow[e]
            z = 0
            while z < count:
                if f >= 0:
                    if by_flow[z, f] == _SHOWN or s - b >= resolutions[z]:
                        if not _set_visible(
                            b, s, r, -1, 0, is_point[e], ends[z], sizes[z], last[z], none
                        ):
                            level_of[0] = -1
                            return level_of
                        break
                else:
                    seen = _is_visible(
                        b, s, r, -1, 0, is_point[e], resolutions[z],
                        ends[z], sizes[z], last[z], none,
                    )  # fmt: skip
                    if seen < 0:
                        level_of[0] = -1
                        return level_of
                    if seen == 1:
                        break
                z += 1
            level_of[e] = z
            z += 1
            while z < count:
                if not _set_visible(b, s, r, -1, 0, is_point[e], ends[z], sizes[z], last[z], none):
                    level_of[0] = -1
                    return level_of
                z += 1
    return level_of
