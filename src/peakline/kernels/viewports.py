"""Which events a viewport shows: each event's answer depends on those before it."""

from __future__ import annotations

import cython

if not cython.compiled:
    from peakline.kernels.viewer_layout import FLOW_ENDS, HIDDEN, SHOWN, UNKNOWN

__all__ = ["at_times", "choose_in_order", "choose_levels", "choose_per_track"]


def choose_per_track(
    start: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    code: cython.const[cython.int][::1],
    hidden: cython.const[cython.uchar][::1],
    first: cython.const[cython.longlong][::1],
    begin: cython.longlong,
    stop: cython.longlong,
    resolution: cython.longlong,
    chosen: cython.uchar[::1],
    ends: cython.longlong[::1],
) -> int:
    """Mark in ``chosen`` what a viewport shows of each track (``first[k]:first[k + 1]``, by start).

    An event is out of it when it ends before ``begin`` or starts after ``stop``, or its name is
    hidden. One drawn below ``resolution`` is shown only as the first at its depth, or that far
    behind what is shown there; a depth is free once what it shows has ended. With resolution 0
    all are shown. Returns how many lie in the viewport, shown or not; -1 where ``ends`` has no room
    for that many depths: call again with more.
    """
    inside: cython.longlong = 0
    track: cython.longlong
    e: cython.longlong
    b: cython.longlong
    s: cython.longlong
    depth: cython.longlong
    depths: cython.longlong
    has_room: cython.bint = True
    with cython.nogil:
        for track in range(first.shape[0] - 1):
            depths = 0
            for e in range(first[track], first[track + 1]):
                b, s = start[e], end[e]
                if b > stop:
                    break
                if s < begin or hidden[code[e]]:
                    continue
                inside += 1
                if resolution > 0:
                    depth = 0
                    while depth < depths and ends[depth] > b:
                        depth += 1
                    if s - b < resolution and depth < depths and b - ends[depth] < resolution:
                        continue
                    if depth == ends.shape[0]:
                        has_room = False
                        break
                    ends[depth] = s
                    depths = depth + 1
                chosen[e] = True
            if not has_room:
                break
    return inside if has_room else -1


def at_times(
    start: cython.const[cython.longlong][::1],
    code: cython.const[cython.int][::1],
    hidden: cython.const[cython.uchar][::1],
    first: cython.const[cython.longlong][::1],
    times: cython.const[cython.longlong][::1],
    result: cython.uchar[::1],
) -> None:
    """Mark in ``result`` the events whose names are not hidden that start at one of ``times``
    (sorted, distinct); the events of a track are sorted by start.
    """
    track: cython.longlong
    place: cython.longlong
    e: cython.longlong
    b: cython.longlong
    with cython.nogil:
        for track in range(first.shape[0] - 1):
            place = 0
            for e in range(first[track], first[track + 1]):
                b = start[e]
                while place < times.shape[0] and times[place] < b:
                    place += 1
                if place == times.shape[0]:
                    break
                if times[place] == b and not hidden[code[e]]:
                    result[e] = True


@cython.cfunc
@cython.inline
@cython.nogil
@cython.exceptval(check=False)
def _depth_of(
    z: cython.longlong,
    row: cython.longlong,
    b: cython.longlong,
    ends: cython.longlong[:, :, ::1],
    sizes: cython.longlong[:, ::1],
) -> cython.longlong:
    """The first depth of a row that is free at ``b``."""
    depth: cython.longlong = 0
    while depth < sizes[z, row] and ends[z, row, depth] > b:
        depth += 1
    return depth


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _is_visible(
    z: cython.longlong,
    b: cython.longlong,
    s: cython.longlong,
    row: cython.longlong,
    flow: cython.longlong,
    direction: cython.int,
    is_point: cython.bint,
    resolution: cython.longlong,
    ends: cython.longlong[:, :, ::1],
    sizes: cython.longlong[:, ::1],
    last: cython.longlong[:, ::1],
    flows: cython.schar[:, ::1],
) -> cython.int:
    """XProf's rule for one event; ``last`` holds per row the last counter or flow (-1: none).

    All arrays are by level ``z`` first. Returns -1 where ``ends`` has no room for the event's
    depth.
    """
    depth: cython.longlong
    visible: cython.bint
    is_new: cython.bint
    if is_point:
        if last[z, row] >= 0 and b - last[z, row] < resolution:
            return 0
        last[z, row] = b
        return 1
    visible = s - b >= resolution
    depth = _depth_of(z, row, b, ends, sizes)
    if not visible:
        visible = depth == sizes[z, row] or b - ends[z, row, depth] >= resolution
    if flow >= 0:
        is_new = flows[z, flow] == UNKNOWN
        if is_new:
            flows[z, flow] = SHOWN if visible else HIDDEN
        if not visible:
            # Upstream subtracts without a sign: an end before the last one is far from it.
            if is_new and (last[z, row] < 0 or s < last[z, row] or s - last[z, row] >= resolution):
                flows[z, flow] = SHOWN
            visible = flows[z, flow] == SHOWN
        if direction == FLOW_ENDS:
            flows[z, flow] = UNKNOWN
        if visible:
            last[z, row] = s
    if not visible:
        return 0
    if depth == ends.shape[2]:
        return -1
    ends[z, row, depth] = s
    sizes[z, row] = depth + 1
    return 1


@cython.cfunc
@cython.nogil
@cython.exceptval(check=False)
def _set_visible(
    z: cython.longlong,
    b: cython.longlong,
    s: cython.longlong,
    row: cython.longlong,
    flow: cython.longlong,
    direction: cython.int,
    is_point: cython.bint,
    ends: cython.longlong[:, :, ::1],
    sizes: cython.longlong[:, ::1],
    last: cython.longlong[:, ::1],
    flows: cython.schar[:, ::1],
) -> cython.bint:
    """Note an event that is shown anyway; False where ``ends`` has no room for its depth."""
    depth: cython.longlong
    if is_point:
        last[z, row] = b
        return True
    if flow >= 0:
        if direction == FLOW_ENDS:
            flows[z, flow] = UNKNOWN
        elif flows[z, flow] == UNKNOWN:
            flows[z, flow] = SHOWN
        last[z, row] = s
    depth = _depth_of(z, row, b, ends, sizes)
    if depth == ends.shape[2]:
        return False
    ends[z, row, depth] = s
    sizes[z, row] = depth + 1
    return True


def choose_in_order(
    start: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    row: cython.const[cython.int][::1],
    flow: cython.const[cython.int][::1],
    direction: cython.const[cython.uchar][::1],
    is_point: cython.const[cython.uchar][::1],
    resolution: cython.longlong,
    ends: cython.longlong[:, :, ::1],
    sizes: cython.longlong[:, ::1],
    last: cython.longlong[:, ::1],
    flows: cython.schar[:, ::1],
    shown: cython.uchar[::1],
) -> bool:
    """Which of events in XProf's order it shows at ``resolution``, into ``shown``.

    ``row`` is the track of each event and ``is_point`` marks counters and asynchronous ones, which
    have no depth. The first index of the room (``ends`` by row and depth, ``sizes`` 0, ``last`` -1,
    ``flows`` 0) is 0. Returns False where more depths are needed than ``ends`` has.
    """
    e: cython.longlong
    seen: cython.int
    has_room: cython.bint = True
    with cython.nogil:
        for e in range(start.shape[0]):
            seen = _is_visible(
                0, start[e], end[e], row[e], flow[e], direction[e], is_point[e], resolution,
                ends, sizes, last, flows,
            )  # fmt: skip
            if seen < 0:
                has_room = False
                break
            shown[e] = seen
    return has_room


def choose_levels(
    start: cython.const[cython.longlong][::1],
    end: cython.const[cython.longlong][::1],
    row: cython.const[cython.int][::1],
    flow: cython.const[cython.int][::1],
    direction: cython.const[cython.uchar][::1],
    is_point: cython.const[cython.uchar][::1],
    first: cython.const[cython.longlong][::1],
    flow_order: cython.const[cython.longlong][::1],
    resolutions: cython.const[cython.longlong][::1],
    ends: cython.longlong[:, :, ::1],
    sizes: cython.longlong[:, ::1],
    last: cython.longlong[:, ::1],
    flows: cython.schar[:, ::1],
    by_flow: cython.schar[:, ::1],
    level_of: cython.schar[::1],
) -> bool:
    """The first of XProf's levels that stores each event; ``resolutions.size`` for a deeper one.

    Events stand track after track (``first``), each in XProf's order; ``flow_order`` are those of
    a flow, in that order over all tracks. The room is by level first: ``ends`` by row and depth,
    ``sizes`` 0 and ``last`` -1 by row, ``flows`` and ``by_flow`` 0 by flow. Returns False where
    more depths are needed than ``ends`` has.
    """
    count: cython.longlong = resolutions.shape[0]
    track: cython.longlong
    e: cython.longlong
    k: cython.longlong
    z: cython.longlong
    f: cython.longlong
    seen: cython.int
    has_room: cython.bint = True
    with cython.nogil:
        for k in range(flow_order.shape[0]):
            e = flow_order[k]
            f = flow[e]
            z = 0
            while z < count and has_room:
                seen = _is_visible(
                    z, start[e], end[e], row[e], f, direction[e], is_point[e], resolutions[z],
                    ends, sizes, last, flows,
                )  # fmt: skip
                has_room = seen >= 0
                if by_flow[z, f] == UNKNOWN:
                    by_flow[z, f] = SHOWN if seen == 1 else HIDDEN
                z += 1
                if seen == 1:
                    break
            while z < count and has_room:
                has_room = _set_visible(
                    z, start[e], end[e], row[e], f, direction[e], is_point[e],
                    ends, sizes, last, flows,
                )  # fmt: skip
                if by_flow[z, f] == UNKNOWN:
                    by_flow[z, f] = SHOWN
                z += 1
            if not has_room:
                break
        for z in range(count):
            for k in range(sizes.shape[1]):
                sizes[z, k] = 0
                last[z, k] = -1
        for track in range(first.shape[0] - 1):
            for e in range(first[track], first[track + 1]):
                if not has_room:
                    break
                f = flow[e]
                z = 0
                while z < count and has_room:
                    if f >= 0:
                        if by_flow[z, f] == SHOWN or end[e] - start[e] >= resolutions[z]:
                            has_room = _set_visible(
                                z, start[e], end[e], row[e], -1, 0, is_point[e],
                                ends, sizes, last, flows,
                            )  # fmt: skip
                            break
                    else:
                        seen = _is_visible(
                            z, start[e], end[e], row[e], -1, 0, is_point[e], resolutions[z],
                            ends, sizes, last, flows,
                        )  # fmt: skip
                        has_room = seen >= 0
                        if seen == 1:
                            break
                    z += 1
                level_of[e] = z
                z += 1
                while z < count and has_room:
                    has_room = _set_visible(
                        z, start[e], end[e], row[e], -1, 0, is_point[e], ends, sizes, last, flows
                    )
                    z += 1
    return has_room
