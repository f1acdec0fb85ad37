"""Tiles: what the tracks of a timeline show of a stretch of time at a resolution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int32Array, Int64Array
from peakline.errors import UsageError
from peakline.kernels.timeline import draw
from peakline.timing.timeline.index import Timeline

_ROOM = 1 << 14


@dataclass(frozen=True, eq=False)
class Tile:
    """The items that some tracks show from ``start_ps`` to ``end_ps`` (exclusive).

    The items of ``tracks[n]`` are ``first[n]:first[n + 1]``, in order of time. An item is one event
    or, where ``count`` is more, a run of events each shorter than ``resolution_ps`` that begin in
    one cell of a grid of that width; then ``event`` is the longest of them (its place in the
    trace). ``begin_ps`` and ``until_ps`` are not cut at the edges, ``busy_ps`` is the sum of the
    events' durations. All ``count`` together are the events that overlap the stretch, or are
    instants in it.
    """

    start_ps: int
    end_ps: int
    resolution_ps: int
    tracks: Int64Array
    first: Int64Array
    begin_ps: Int64Array
    until_ps: Int64Array
    count: Int64Array
    busy_ps: Int64Array
    event: Int32Array

    @property
    def items(self) -> int:
        """The number of items."""
        return int(self.begin_ps.size)


def level_of(start_ps: int, end_ps: int, width: int) -> int:
    """The coarsest level whose cells are no wider than a pixel; -1 where a pixel is under 1 ps."""
    return max((end_ps - start_ps) // width, 0).bit_length() - 1


def tracks_of(
    timeline: Timeline, lines: Int64Array | None = None, rows: int | None = None
) -> Int64Array:
    """The tracks of ``lines`` (places in the trace; None: all), at most ``rows`` of each."""
    chosen = np.arange(len(timeline.trace.lines)) if lines is None else np.asarray(lines, np.int64)
    first = timeline.first_track[chosen]
    counts = timeline.first_track[chosen + 1] - first
    if rows is not None:
        counts = np.minimum(counts, rows)
    offsets = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    tracks: Int64Array = np.repeat(first, counts) + offsets
    return tracks


def draw_tile(
    timeline: Timeline,
    start_ps: int,
    end_ps: int,
    width: int,
    tracks: Int64Array | None = None,
    *,
    most: int | None = None,
) -> Tile:
    """What ``tracks`` (None: all) show from ``start_ps`` to ``end_ps`` on ``width`` pixels.

    A track has at most about four items per pixel, in dense data one or two. Raises UsageError for
    an empty stretch, and where there would be more than ``most`` items.
    """
    if end_ps <= start_ps or width < 1:
        raise UsageError("a tile needs an end after its start, and a width of a pixel or more")
    chosen = np.arange(timeline.tracks) if tracks is None else np.asarray(tracks, np.int64)
    level = level_of(start_ps, end_ps, width)
    trace = timeline.trace
    first = np.empty(chosen.size + 1, np.int64)
    room, result = _ROOM, -1
    while result < 0 or result > room:
        room = max(room, result)
        begin, until, count, busy = (np.empty(room, np.int64) for _ in range(4))
        event = np.empty(room, np.int32)
        result = draw(
            trace.start, trace.end, timeline.order, timeline.joint, timeline.track_first,
            timeline.overlaps, timeline.track_levels, timeline.level_bits, timeline.level_first,
            timeline.run_first, timeline.run_last, timeline.run_longest, timeline.run_begin,
            timeline.run_until, timeline.run_length, timeline.run_busy,
            chosen, start_ps, end_ps, level, first, begin, until, count, busy, event,
        )  # fmt: skip
        if most is not None and result > most:
            raise UsageError(
                f"the tile would have {result:,} items, more than {most:,}: "
                "request fewer lines or rows, or a smaller width"
            )
    resolution = 1 << level if level >= 0 else 0
    return Tile(
        start_ps,
        end_ps,
        resolution,
        chosen,
        first,
        begin[:result],
        until[:result],
        count[:result],
        busy[:result],
        event[:result],
    )
