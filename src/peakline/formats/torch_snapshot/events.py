"""The history of every device as rows of ``allocator_events`` and ``oom_reports``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from peakline.arrays import AnyArray, Int64Array
from peakline.formats.torch_snapshot.segments import FREE
from peakline.formats.torch_snapshot.trace import (
    ALLOC,
    FREE_COMPLETED,
    FREE_REQUESTED,
    OOM,
    SEGMENT_ACTIONS,
    Blocks,
    History,
    Trace,
    round_sizes,
)
from peakline.tables.columns import Columns, Names
from peakline.tables.tables import empty_columns

_ACTIVITIES = ["allocation", "deallocation", "expansion"]
_BEFORE = "(before profile)"
_PS_PER_US = 10**6
_MOST_BYTES = 2**63 - 1
_LATEST_US = (2**63 - 1) // _PS_PER_US


@dataclass(frozen=True, eq=False)
class DeviceHistory:
    """One device: its trace, its blocks at the end, what follows, and how sizes are rounded."""

    trace: Trace
    blocks: Blocks
    history: History
    divisions: dict[Any, Any]


@dataclass(frozen=True, eq=False)
class _Clock:
    """Per device: ``time_ps`` and ``place`` of every entry among all entries."""

    time_ps: list[Int64Array]
    place: list[Int64Array]


def _clock(devices: list[DeviceHistory]) -> _Clock:
    """Zero is the earliest entry; entries without any time are numbered."""
    times = [device.trace.time_us for device in devices]
    known = [time[time > 0] for time in times]
    if not times:
        return _Clock([], [])
    if not any(time.size for time in known):
        starts = np.cumsum([0, *(time.size for time in times)])
        places = [
            np.arange(start, start + time.size) for start, time in zip(starts, times, strict=False)
        ]
        return _Clock(places, places)
    zero = min(int(time[0]) for time in known if time.size)
    # The order of the entries is what happened; clocks of different cores may differ a little.
    since = [np.clip(np.maximum.accumulate(t) - zero, 0, _LATEST_US) * _PS_PER_US for t in times]
    order = np.argsort(np.concatenate(since), kind="stable")
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size)
    ends = np.cumsum([time.size for time in since])
    return _Clock(since, np.split(place, ends[:-1]))


def behind(time_us: Int64Array) -> int:
    """How many entries have an earlier time than one before them, whose time they are given."""
    return int((time_us < np.maximum.accumulate(time_us)).sum())


def events_table(
    devices: list[DeviceHistory], allocators: list[str], callers: list[str | None]
) -> Columns:
    """``allocator_events``: what was live before, then the entries of all devices in time order.

    ``callers`` names the caller of every stack.
    """
    clock = _clock(devices)
    lead = sum(device.history.before.size.size for device in devices)
    parts: list[dict[str, AnyArray]] = []
    begun = 0
    for number, device in enumerate(devices):
        before = device.history.before
        parts.append(_before_rows(number, before, begun))
        begun += before.size.size
    for number, device in enumerate(devices):
        place = clock.place[number] + lead
        parts.append(_entry_rows(number, device, clock.time_ps[number], place))
    if not parts:
        return empty_columns("allocator_events")
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(columns["sequence"], kind="stable")
    columns = {name: column[order] for name, column in columns.items()}

    known = list(dict.fromkeys(name for name in callers if name is not None))
    numbers = {name: code for code, name in enumerate(known)}
    op_of = np.array([-1 if c is None else numbers[c] for c in callers] + [-1], np.int32)
    op = op_of[columns["stack_id"]]
    op[columns["is_before"] & (op < 0)] = len(known)
    kind = columns["activity"]
    is_buffer = kind != 2
    deferred = columns["returned"] != columns["sequence"]
    return Columns(
        {
            "time_ps": columns["time_ps"],
            "sequence": columns["sequence"],
            "allocator": Names(columns["allocator"], allocators),
            "activity": Names(kind.astype(np.int32), _ACTIVITIES),
            "address": columns["address"],
            "requested_bytes": columns["requested"],
            "allocated_bytes": columns["bytes"],
            "op": Names(op, [*known, _BEFORE]),
            "region_type": Names(columns["region"], list(SEGMENT_ACTIONS)),
            "stream": columns["stream"],
            "stack_id": columns["stack_id"],
            "deferred": deferred & (kind == 1),
            "returned_sequence": columns["returned"],
            "is_before": columns["is_before"],
        },
        {
            "requested_bytes": is_buffer,
            "stack_id": columns["stack_id"] >= 0,
            "deferred": kind == 1,
            "returned_sequence": deferred & (kind == 1) & (columns["returned"] >= 0),
        },
    )


def _before_rows(number: int, before: Blocks, first: int) -> dict[str, AnyArray]:
    rows = before.size.size
    sequence = np.arange(first, first + rows, dtype=np.int64)
    return {
        "time_ps": np.zeros(rows, np.int64),
        "sequence": sequence,
        "allocator": np.full(rows, number, np.int32),
        "activity": np.zeros(rows, np.int8),
        "address": before.address,
        "requested": before.requested,
        "bytes": before.size,
        "region": np.full(rows, -1, np.int32),
        "stream": before.stream,
        "stack_id": before.stack,
        "returned": sequence,
        "is_before": np.ones(rows, np.bool_),
    }


def _entry_rows(
    number: int, device: DeviceHistory, time_ps: Int64Array, place: Int64Array
) -> dict[str, AnyArray]:
    trace, history = device.trace, device.history
    rows = np.flatnonzero(history.shown)
    code = trace.code[rows]
    activity = np.where(code == ALLOC, 0, np.where(code <= FREE_COMPLETED, 1, 2)).astype(np.int8)
    ended = history.completed[rows]
    # A free that the next entry completes was not held up by anything.
    at_once = (code != FREE_REQUESTED) | (ended == rows + 1)
    returned = np.where(ended < 0, -1, place[ended]) if rows.size else place[rows]
    first = min(SEGMENT_ACTIONS.values())
    return {
        "time_ps": time_ps[rows],
        "sequence": place[rows],
        "allocator": np.full(rows.size, number, np.int32),
        "activity": activity,
        "address": trace.address[rows],
        "requested": trace.size[rows],
        "bytes": np.where(activity == 2, trace.size[rows], history.bytes[rows]),
        "region": np.where(activity == 2, code - first, -1).astype(np.int32),
        "stream": trace.stream[rows],
        "stack_id": trace.stack[rows],
        "returned": np.where(at_once, place[rows], returned),
        "is_before": np.zeros(rows.size, np.bool_),
    }


def oom_table(
    devices: list[DeviceHistory], allocators: list[str], callers: list[str | None]
) -> Columns:
    """``oom_reports``: one row per failed allocation in the history.

    The largest free block is known where nothing happened between the failure and the snapshot:
    the blocks of that stream then are what they were.
    """
    if not devices:
        return empty_columns("oom_reports")
    clock = _clock(devices)
    parts = [
        _ooms(number, device, clock.time_ps[number], clock.place[number])
        for number, device in enumerate(devices)
    ]
    data = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(data.pop("place"))
    data = {name: column[order] for name, column in data.items()}
    number, stack = data.pop("number"), data.pop("stack")
    free, largest = data["free_bytes"], data["largest_free_bytes"]
    fragmented = (free > 0) & (largest >= 0)
    return Columns(
        {
            "report_id": np.arange(order.size, dtype=np.int64),
            "allocator": Names(number, allocators),
            "op": Names.encode([None if one < 0 else callers[one] for one in stack.tolist()]),
            "device": Names(number, allocators),
            "fragmentation": np.where(fragmented, 1 - largest / np.maximum(free, 1), 0.0).astype(
                np.float64
            ),
            "is_complete": np.ones(order.size, np.bool_),
            **data,
        },
        {
            "fragmentation": fragmented,
            "largest_free_bytes": largest >= 0,
            "device_free_bytes": data["device_free_bytes"] >= 0,
        },
    )


def _ooms(
    number: int, device: DeviceHistory, time_ps: Int64Array, place: Int64Array
) -> dict[str, AnyArray]:
    """The failed allocations of one device."""
    trace, history = device.trace, device.history
    rows = np.flatnonzero(trace.code == OOM)
    in_use, pool = history.in_use[rows], history.pool[rows]
    # What absurd sizes add up to may have wrapped.
    free = [max(of - used, 0) for of, used in zip(pool.tolist(), in_use.tolist(), strict=True)]
    last = int(np.flatnonzero(history.shown).max(initial=-1))
    largest = _largest_free(device.blocks, trace.stream[rows])
    return {
        "place": place[rows],
        "number": np.full(rows.size, number, np.int32),
        "stack": trace.stack[rows],
        "time_ps": time_ps[rows],
        "requested_bytes": trace.size[rows],
        "rounded_bytes": round_sizes(trace.size[rows], device.divisions),
        "pool_bytes": pool,
        "in_use_bytes": in_use,
        "free_bytes": np.array([min(size, _MOST_BYTES) for size in free], np.int64),
        "largest_free_bytes": np.where(rows > last, largest, -1),
        "device_free_bytes": trace.device_free[rows],
    }


def _largest_free(blocks: Blocks, streams: Int64Array) -> Int64Array:
    """The largest free block of each of ``streams``, 0 without any."""
    free = blocks.state == FREE
    known, place = np.unique(blocks.stream[free], return_inverse=True)
    largest = np.zeros(known.size + 1, np.int64)
    np.maximum.at(largest, place, blocks.size[free])
    at = np.searchsorted(known, streams)
    is_known = np.append(known, 0)[at] == streams
    return np.where(is_known & (at < known.size), largest[at], 0)
