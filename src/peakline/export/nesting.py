"""Events of lines as slices that nest, and the slices that arrows are bound to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from peakline.kernels.lanes import nest
from peakline.kernels.trace_events import enclose
from peakline.tables.columns import Columns

__all__ = ["Nested", "bind_flows", "nested"]

_Array = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Nested:
    """``rows`` are the events with a time, and ``line``, ``start`` and ``end`` are theirs.

    ``order`` sorts them by line, start, and outer before inner. ``lane`` says on which of its
    line's tracks each lies, ``told`` what happens in which order: ``4 * event + kind``.
    """

    rows: npt.NDArray[np.int64]
    line: _Array
    start: npt.NDArray[np.int64]
    end: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]
    lane: npt.NDArray[np.int32]
    told: npt.NDArray[np.int64]


def nested(events: Columns) -> Nested:
    """Put the events on tracks on which they nest. None is lost; negative lengths count as 0."""
    rows = np.flatnonzero(events.is_valid("start_ps"))
    line = events.array("line_id")[rows].astype(np.int64)
    start = events.array("start_ps")[rows].astype(np.int64)
    end = start + np.maximum(events.array("duration_ps")[rows], 0)
    order = np.lexsort((-end, start, line))
    lane = np.zeros(rows.size, np.int32)
    told = np.empty(2 * rows.size, np.int64)
    top, below = np.empty((2, rows.size), np.int64)
    count = nest(order, line, start, end, lane, told, top, below)
    return Nested(rows, line, start, end, order, lane, told[:count])


def bind_flows(flows: Columns, slices: Nested) -> npt.NDArray[np.int64]:
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
    for number in np.unique(line[later]).tolist():
        own = order[slices.line[order] == number]
        mine = later[line[later] == number]
        place = np.searchsorted(slices.start[own], time[mine])
        owner[mine] = np.where(place < own.size, own[np.minimum(place, own.size - 1)], -1)
    return owner
