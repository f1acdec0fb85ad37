"""Which events lie in which: parents and self time, tracks on which all nest, ends of arrows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, Int32Array, Int64Array
from peakline.kernels import lanes, trace_nesting
from peakline.kernels.trace_events import enclose
from peakline.kernels.trace_layout import MOST_ROWS
from peakline.tables.columns import Columns

_OPEN = 256
"""So many open events have room at first, ..."""
_LANES = 16
"""... and so many lanes, a power of two."""


def nest_lines(
    start: AnyArray,
    end: AnyArray,
    first: AnyArray,
    nests: AnyArray,
    parent: AnyArray,
    row: AnyArray,
    own: AnyArray,
) -> None:
    """Write ``parent``, ``row`` and ``own``, as `peakline.kernels.trace_nesting.nest` does."""
    room, row_end = _OPEN, np.empty(MOST_ROWS, np.int64)
    while not trace_nesting.nest(
        start, end, first, nests, parent, row, own, row_end, np.empty((2, room), np.int64)
    ):
        room *= 4


def self_times(
    start: AnyArray,
    end: AnyArray,
    event: AnyArray,
    first: AnyArray,
    nests: AnyArray,
    total: AnyArray,
    own: AnyArray,
) -> None:
    """Write ``total`` and ``own``, as `peakline.kernels.trace_nesting.self_times` does."""
    room = _OPEN
    while not trace_nesting.self_times(
        start, end, event, first, nests, total, own, np.empty((3, room), np.int64)
    ):
        room *= 4


@dataclass(frozen=True, eq=False)
class Lanes:
    """``rows`` are the events with a time, and ``line``, ``start`` and ``end`` are theirs.

    ``order`` sorts them by line, start, and outer before inner. ``lane`` says on which of its
    line's tracks each lies, ``moments`` what happens in which order: ``4 * event + kind``.
    """

    rows: Int64Array
    line: AnyArray
    start: Int64Array
    end: Int64Array
    order: Int64Array
    lane: Int32Array
    moments: Int64Array


def lanes_of(events: Columns) -> Lanes:
    """Put events on tracks on which they nest. None is lost; negative lengths count as 0."""
    rows = np.flatnonzero(events.is_valid("start_ps"))
    line = events.array("line_id")[rows].astype(np.int64)
    start = events.array("start_ps")[rows].astype(np.int64)
    end = start + np.maximum(events.array("duration_ps")[rows], 0)
    order = _order(line, start, end)
    lane = np.zeros(rows.size, np.int32)
    moments = np.empty(2 * rows.size, np.int64)
    count, room = -1, _LANES
    while count < 0:
        top, below = np.full(room, -1), np.empty(rows.size, np.int64)
        tree = np.full((2, 2 * room), np.iinfo(np.int64).max)
        count = lanes.nest(order, line, start, end, lane, moments, top, below, tree)
        room *= 4
    return Lanes(rows, line, start, end, order, lane, moments[:count])


def _order(line: AnyArray, start: AnyArray, end: AnyArray) -> Int64Array:
    """The events by line, start, and outer before inner; most files have them so."""
    in_order = end[1:] <= end[:-1]
    for column in (start, line):
        in_order = (column[1:] > column[:-1]) | ((column[1:] == column[:-1]) & in_order)
    return np.arange(line.size) if in_order.all() else np.lexsort((-end, start, line))


def bind_flows(flows: Columns, slices: Lanes) -> Int64Array:
    """The slice that each end of an arrow belongs to, -1 for none.

    As the Trace Event Format says: the innermost one around it, or, for an end (``f``) that is
    not bound to what encloses it, the next that begins on its line.
    """
    line, time = flows.array("line_id"), flows.array("time_ps")
    if not flows.rows or not slices.rows.size:
        return np.full(flows.rows, -1, np.int64)
    used = np.unique(line)
    order = slices.order[np.isin(slices.line[slices.order], used)]
    owner = np.full(flows.rows, -1, np.int64)
    parent = np.full(slices.rows.size, -1, np.int64)
    moments = np.lexsort((time, line))
    enclose(
        order, slices.line, slices.start, slices.end, moments, line.astype(np.int64), time,
        parent, owner, np.empty(order.size, np.int64),
    )  # fmt: skip
    phase = flows.names("phase")
    later = np.flatnonzero(~flows.array("binds_enclosing") & (phase.codes == phase.code_of("f")))
    later = later[np.argsort(line[later], kind="stable")]
    numbers, first = np.unique(line[later], return_index=True)
    ends = np.append(first, later.size)[1:]
    # Slices stand by line, and then by start.
    of_slice = slices.line[order]
    bounds = np.searchsorted(of_slice, numbers), np.searchsorted(of_slice, numbers, "right")
    for begin, end, low, high in zip(*map(np.ndarray.tolist, (first, ends, *bounds)), strict=True):
        own, mine = np.append(order[low:high], -1), later[begin:end]
        owner[mine] = own[np.searchsorted(slices.start[own[:-1]], time[mine])]
    return owner
