"""The index that answers any viewport of a trace in time proportional to what is drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int8Array, Int32Array, Int64Array, UInt8Array
from peakline.deadline import check_deadline
from peakline.kernels.timeline import build_levels, join_levels, order_tracks
from peakline.kernels.trace_layout import SPARED
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.trace.events import Nesting, Trace, nesting_of, trace_of

_RUNS = (*(np.dtype(np.int32),) * 3, *(np.dtype(np.int64),) * 4)


@dataclass(frozen=True, eq=False)
class Timeline:
    """The events of a trace by tracks, with levels of detail.

    A *track* is one drawing row of one line: track n belongs to line ``track_line[n]`` and is its
    row ``n - first_track[line]``. Its events are ``order[track_first[n]:track_first[n + 1]]``, in
    order of time; they do not overlap but in the last row that a line can have (``overlaps``).

    Level k merges neighbours of a track that are shorter than 2^k ps and begin in the same cell of
    a grid of that width into *runs*; ``joint`` is per place in ``order`` the first level at which
    the event there is merged with the one before it. Levels are stored where they are worth it
    (`SPARED`): those of track n are ``track_levels[n]:track_levels[n + 1]`` of ``level_bits`` (the
    k of each, ascending), their runs ``level_first[l]:level_first[l + 1]``. A run is the events
    ``order[run_first:run_last]``, two or more, from ``run_begin`` to ``run_until``; the longest of
    them is ``run_longest`` with ``run_length`` ps, and all together last ``run_busy`` ps.
    """

    trace: Trace
    nesting: Nesting
    first_track: Int64Array
    track_line: Int32Array
    track_first: Int64Array
    order: Int32Array
    joint: UInt8Array
    overlaps: BoolArray
    track_levels: Int64Array
    level_bits: Int8Array
    level_first: Int64Array
    run_first: Int32Array
    run_last: Int32Array
    run_longest: Int32Array
    run_begin: Int64Array
    run_until: Int64Array
    run_length: Int64Array
    run_busy: Int64Array

    @property
    def tracks(self) -> int:
        """The number of tracks."""
        return int(self.track_line.size)

    @property
    def nbytes(self) -> int:
        """Bytes of memory that the index takes beside the trace and its nesting."""
        own = (value for name, value in vars(self).items() if name not in {"trace", "nesting"})
        return sum(int(array.nbytes) for array in own)

    def rows_of(self, line: int) -> int:
        """How many drawing rows a line has; ``line`` is its place in ``trace.lines``."""
        return int(self.first_track[line + 1] - self.first_track[line])

    def track_of(self, event: int) -> int:
        """The track on which an event (its place in the trace) is drawn."""
        line = int(np.searchsorted(self.trace.first[1:], event, side="right"))
        return int(self.first_track[line]) + int(self.nesting.row[event])

    def neighbours(self, event: int) -> tuple[int, int]:
        """The events before and after one on its own track; -1 where there is none."""
        track = self.track_of(event)
        lo, hi = int(self.track_first[track]), int(self.track_first[track + 1])
        at = lo + int(np.searchsorted(self.order[lo:hi], event))
        before = int(self.order[at - 1]) if at > lo else -1
        after = int(self.order[at + 1]) if at + 1 < hi else -1
        return before, after


@once
def timeline_of(profile: Profile) -> Timeline:
    """The index of a profile's events, made once.

    Raises InputError when the profile cannot be read.
    """
    return build_timeline(trace_of(profile), nesting_of(profile))


def build_timeline(trace: Trace, nesting: Nesting) -> Timeline:
    """The index of a trace: about 30 ns per event, and 5 bytes and at most 6 more."""
    first, size = trace.first, trace.size
    rows = np.zeros(len(trace.lines), np.int64)
    used = np.flatnonzero(first[1:] > first[:-1])
    if used.size:
        rows[used] = np.maximum.reduceat(nesting.row, first[:-1][used]).astype(np.int64) + 1
    first_track = np.concatenate([[0], np.cumsum(rows)])
    tracks = int(first_track[-1])
    track_first = np.zeros(tracks + 1, np.int64)
    order = np.empty(size, np.int32)
    order_tracks(first, nesting.row, first_track, track_first, order, np.empty_like(track_first))
    check_deadline()
    joint, overlaps = np.empty(size, np.uint8), np.zeros(tracks, np.bool_)
    join_levels(trace.start, trace.end, order, track_first, joint, overlaps)
    check_deadline()
    track_levels = np.zeros(tracks + 1, np.int64)
    # No item is spared twice.
    most = size // SPARED
    level_bits = np.empty(min(64 * tracks, most), np.int8)
    level_first = np.empty(level_bits.size, np.int64)
    runs: list[AnyArray] = [np.empty(most, dtype) for dtype in _RUNS]
    levels, count = build_levels(
        trace.start, trace.end, order, joint, track_first, overlaps,
        track_levels, level_bits, level_first, *(*runs, np.empty((8, 67), np.int64)),
    )  # fmt: skip
    # Copies: what was not used goes.
    runs = [part[:count].copy() for part in runs]
    return Timeline(
        trace,
        nesting,
        first_track,
        np.repeat(np.arange(rows.size, dtype=np.int32), rows),
        track_first,
        order,
        joint,
        overlaps,
        track_levels,
        level_bits[:levels].copy(),
        np.append(level_first[:levels], count),
        *runs,
    )
