"""The table ``allocator_events`` of a file that has only buffers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from peakline.tables import Profile
from peakline.tables.columns import Columns, Names

_LABELS = ("op", "region_type", "data_type", "shape")


def columns_of(profile: Profile) -> Columns:
    """The table of a profile."""
    return events_of(profile.columns("buffers"))


def events_of(buffers: Columns) -> Columns:
    """``allocator_events`` of a file that has only buffers.

    One allocation per buffer, at its start (0 when not known), and a deallocation where it has
    an end. Buffers without an id and an address get an id of their own.
    """
    count = buffers.rows
    ended = np.flatnonzero(buffers.is_valid("end_ps"))
    start = np.where(buffers.is_valid("start_ps"), buffers.array("start_ps"), 0)
    rows = np.concatenate([np.arange(count), ended])
    begins = np.arange(rows.size) < count
    time = np.concatenate([start, buffers.array("end_ps")[ended]]).astype(np.int64)
    # At equal times what ends makes room for what begins, but never before its own beginning.
    ends_at_once = ~begins & (time == start[rows])
    order = np.lexsort((rows, begins | ends_at_once, time))
    rows, begins, time = rows[order], begins[order], time[order]

    known = buffers.is_valid("allocation_id") | buffers.is_valid("address")
    number = np.where(buffers.is_valid("allocation_id"), buffers.array("allocation_id"), 0)
    number = np.where(known, number, -1 - np.arange(count))
    data: dict[str, npt.NDArray[np.generic] | Names] = {
        "time_ps": time,
        "sequence": np.arange(rows.size, dtype=np.int64),
        "allocator": buffers.names("allocator").take(rows),
        "activity": Names((~begins).astype(np.int32), ["allocation", "deallocation"]),
        "allocation_id": number[rows].astype(np.int64),
        "step_id": np.where(
            begins, buffers.array("start_step")[rows], buffers.array("end_step")[rows]
        ),
    }
    valid = {
        "allocation_id": (buffers.is_valid("allocation_id") | ~known)[rows],
        "step_id": np.where(
            begins, buffers.is_valid("start_step")[rows], buffers.is_valid("end_step")[rows]
        ),
    }
    for name in ("address", "requested_bytes", "allocated_bytes", "stream", "stack_id", "count"):
        data[name] = buffers.array(name)[rows]
        valid[name] = buffers.is_valid(name)[rows]
    for name in _LABELS:
        data[name] = buffers.names(name).take(rows)
    return Columns(data, valid)
