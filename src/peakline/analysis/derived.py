"""Tables made from other tables, for formats that do not fill them themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from peakline.profile.columns import Columns, Names
from peakline.profile.profile import Derivation

if TYPE_CHECKING:
    from peakline.profile import Profile

__all__ = ["DERIVED", "buffers_of", "events_of"]

_LABELS = ("op", "region_type", "data_type", "shape")
_CARRIED = ("address", "allocation_id", "requested_bytes", "allocated_bytes", "stream", "stack_id")


def buffers_of(events: Columns) -> Columns:
    """The ``buffers`` table of ``allocator_events`` (in time order): one row per allocation.

    A deallocation without a live allocation is a buffer that was there before the profile: its
    start is null, and so it is where a row stands for such a buffer (``is_before``). Allocations
    whose end can never be seen (no id, no address) stay live.
    """
    from peakline.analysis.lifetimes import (
        ALLOCATION,
        DEALLOCATION,
        UNTRACKED_ALLOCATION,
        match_lifetimes,
    )

    found = match_lifetimes(events)
    before = (found.kind == DEALLOCATION) & (found.begin < 0)
    rows = np.flatnonzero(
        (found.kind == ALLOCATION) | (found.kind == UNTRACKED_ALLOCATION) | before
    )
    end_row = np.where(before[rows], rows, found.end[rows])
    started = ~(before | (events.array("is_before") & events.is_valid("is_before")))[rows]
    ended = end_row >= 0
    times, steps = events.array("time_ps"), events.array("step_id")
    has_step = events.is_valid("step_id")
    names = np.array(found.allocators, dtype=object)
    data: dict[str, npt.NDArray[np.generic] | Names] = {
        "buffer_id": np.arange(rows.size, dtype=np.int64),
        "allocator": Names(found.allocator[rows].astype(np.int32), names.tolist()),
    }
    valid: dict[str, npt.NDArray[np.bool_]] = {}
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


def events_of(buffers: Columns) -> Columns:
    """``allocator_events`` of a file that tells only which buffers there are.

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


def _buffers(profile: Profile) -> Columns:
    return buffers_of(profile.columns("allocator_events"))


def _events(profile: Profile) -> Columns:
    return events_of(profile.columns("buffers"))


def _snapshots(profile: Profile) -> Columns:
    from peakline.analysis.snapshots import snapshots_of

    return snapshots_of(profile.columns("allocator_events"))


def _timing(module: str) -> Callable[[Profile], Columns]:
    """The table that ``columns_of`` of a module of `peakline.analysis.timing` makes."""

    def make(profile: Profile) -> Columns:
        found = import_module(f"peakline.analysis.timing.{module}")
        columns: Columns = found.columns_of(profile)
        return columns

    return make


_RAN = ("events", "op_runs")
DERIVED: Mapping[str, Derivation] = {
    "buffers": Derivation(("allocator_events",), _buffers),
    "allocator_events": Derivation(("buffers",), _events),
    # An XSpace has its own, read by upstream's rules; without host threads it has none.
    "memory_snapshots": Derivation(("allocator_events",), _snapshots, frozenset({"xplane"})),
    "step_breakdown": Derivation(("steps",), _timing("breakdown"), one_of=_RAN),
    "device_time": Derivation((), _timing("devices"), one_of=_RAN),
    "thread_time": Derivation((), _timing("threads"), one_of=_RAN),
    "op_stats": Derivation((), _timing("ops"), one_of=_RAN),
    "kernels": Derivation(("events",), _timing("kernel_stats")),
    "input_pipeline": Derivation(("events",), _timing("input_pipeline")),
}
"""What `peakline.open` gives every profile: a format that tells only buffers gets its events, one
that tells only events its buffers, and either the snapshots of the memory_profile tool."""
