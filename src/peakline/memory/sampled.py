"""The highest and the lowest moment of every pixel of a stretch of time, for one allocator.

What is drawn of a pixel is what memory was made of at these two moments, so that no peak is lost
at any width. They are those of the curve of memory in use (`peakline.timing.timeline.counters`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array, IntpArray
from peakline.deadline import check_deadline
from peakline.errors import UsageError
from peakline.memory.live import MemoryRecords
from peakline.trace.pixels import pixel_edges


@dataclass(frozen=True, eq=False)
class Samples:
    """Records of an allocator, one per pixel: ``row`` is -1 where none is at or before the pixel.

    Both are ascending. ``used`` is bytes in use after the record, 0 where there is none.
    """

    row: IntpArray
    used: Int64Array

    @property
    def known(self) -> IntpArray:
        """The pixels that have a record; all behind the first one."""
        return np.flatnonzero(self.row >= 0)


@dataclass(frozen=True, eq=False)
class Sampled:
    """A stretch of time on pixels: at its most, and at its least.

    ``top`` is the record with the most in use in the whole stretch, -1 without any.
    """

    start_ps: int
    end_ps: int
    high: Samples
    low: Samples
    top: int


def sample(records: MemoryRecords, number: int, start_ps: int, end_ps: int, width: int) -> Sampled:
    """The stretch from ``start_ps`` to ``end_ps`` (exclusive) on ``width`` pixels, of an allocator
    by its number. The value that a pixel begins with counts for it too.

    Raises UsageError for an empty stretch.
    """
    if end_ps <= start_ps or width < 1:
        raise UsageError("a stretch of time needs an end after its start, and a pixel")
    series = records.series(number)
    rows, used, time = (
        column[series.first :] for column in (series.rows, series.used, series.time_ps)
    )
    edges = pixel_edges(start_ps, end_ps, width)
    check_deadline()
    # What holds at the pixel's very begin, if a record comes there it is that one.
    held = np.searchsorted(time, edges[:-1], "right") - 1
    bounds = np.searchsorted(time, edges, "left")
    high = _chosen(rows, used, held, bounds, 1)
    low = _chosen(rows, used, held, bounds, -1)
    known = high.known
    top = int(high.row[known[np.argmax(high.used[known])]]) if known.size else -1
    return Sampled(start_ps, end_ps, high, low, top)


def _chosen(
    rows: IntpArray, used: Int64Array, held: IntpArray, bounds: IntpArray, sign: int
) -> Samples:
    """Per pixel the first place with the most (``sign`` 1) or the least (-1) in use."""
    place = held.copy()
    # A loop over pixels, of which there are few; the extremes in each are found in one go.
    find = np.ndarray.argmax if sign > 0 else np.ndarray.argmin
    edges = bounds.tolist()
    for pixel in np.flatnonzero(np.diff(bounds)).tolist():
        first, end = edges[pixel], edges[pixel + 1]
        best, before = first + int(find(used[first:end])), int(held[pixel])
        stays = 0 <= before < first and sign * used[before] >= sign * used[best]
        place[pixel] = before if stays else best
    known = place >= 0
    if not rows.size:
        return Samples(np.full(place.size, -1, np.intp), np.zeros(place.size, np.int64))
    at = np.maximum(place, 0)
    return Samples(np.where(known, rows[at], -1), np.where(known, used[at], 0))


def held_most(
    time_ps: Int64Array, value: Int64Array, start_ps: int, end_ps: int, width: int
) -> Int64Array:
    """The largest value of each pixel: ``value[n]`` holds from ``time_ps[n]`` (ascending) on; the
    first one holds before, too.
    """
    edges = pixel_edges(start_ps, end_ps, width)
    held = value[np.maximum(np.searchsorted(time_ps, edges[:-1], "right") - 1, 0)]
    bounds = np.searchsorted(time_ps, edges, "left")
    filled = np.flatnonzero(np.diff(bounds))
    if filled.size:
        own = value[bounds[0] : bounds[-1]]
        most = np.maximum.reduceat(own, bounds[:-1][filled] - bounds[0])
        held[filled] = np.maximum(held[filled], most)
    return held
