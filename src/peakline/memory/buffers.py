"""The table ``buffers`` of a file that has the records of allocators."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from peakline.arrays import BoolArray
from peakline.kernels.memory_layout import ALLOCATION, DEALLOCATION, UNTRACKED_ALLOCATION
from peakline.memory.lifetimes import match_lifetimes
from peakline.memory.usage import was_there
from peakline.tables import Profile
from peakline.tables.columns import Columns, Names

_LABELS = ("op", "region_type", "data_type", "shape")
_CARRIED = ("address", "allocation_id", "requested_bytes", "allocated_bytes", "stream", "stack_id")


def columns_of(profile: Profile) -> Columns:
    """The table of a profile."""
    return buffers_of(profile.columns("allocator_events"))


def buffers_of(events: Columns) -> Columns:
    """The ``buffers`` table of ``allocator_events`` (in time order): one row per allocation.

    A deallocation without a live allocation is a buffer that was there before the profile: its
    start is null, and so it is where a row stands for such a buffer (``is_before``). Allocations
    whose end can never be seen (no id, no address) stay live.
    """
    result = match_lifetimes(events)
    before = (result.kind == DEALLOCATION) & (result.begin < 0)
    rows = np.flatnonzero(
        (result.kind == ALLOCATION) | (result.kind == UNTRACKED_ALLOCATION) | before
    )
    end_row = np.where(before[rows], rows, result.end[rows])
    started = ~(before | was_there(events))[rows]
    ended = end_row >= 0
    times, steps = events.array("time_ps"), events.array("step_id")
    has_step = events.is_valid("step_id")
    names = np.array(result.allocators, dtype=object)
    data: dict[str, npt.NDArray[np.generic] | Names] = {
        "buffer_id": np.arange(rows.size, dtype=np.int64),
        "allocator": Names(result.allocator[rows].astype(np.int32), names.tolist()),
    }
    valid: dict[str, BoolArray] = {}
    for name in _CARRIED:
        data[name] = events.array(name)[rows]
        valid[name] = events.is_valid(name)[rows]
    for name in _LABELS:
        data[name] = events.names(name).take(rows)
    data["start_ps"], valid["start_ps"] = times[rows], started
    data["end_ps"], valid["end_ps"] = times[end_row], ended
    data["start_step"], valid["start_step"] = steps[rows], has_step[rows] & started
    data["end_step"], valid["end_step"] = steps[end_row], has_step[end_row] & ended
    return Columns(data, valid)
