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
    number: int,
    device: DeviceHistory,
    time_ps: Int64Array,
    place: Int64Array,
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
    clock = _clock(devices)
    found: list[tuple[int, int, int]] = [
        (int(clock.place[number][row]), number, row)
        for number, device in enumerate(devices)
        for row in np.flatnonzero(device.trace.code == OOM).tolist()
    ]
    found.sort()
    rows = [_oom(devices[number], row) for _, number, row in found]

    def column(name: str) -> Int64Array:
        return np.array([row[name] for row in rows], np.int64)

    names = ("requested_bytes", "rounded_bytes", "pool_bytes", "in_use_bytes", "free_bytes",
             "largest_free_bytes", "device_free_bytes")  # fmt: skip
    data = {name: column(name) for name in names}
    free, largest = data["free_bytes"], data["largest_free_bytes"]
    stacks = [int(devices[number].trace.stack[row]) for _, number, row in found]
    fragmented = (free > 0) & (largest >= 0)
    return Columns(
        {
            "report_id": np.arange(len(found), dtype=np.int64),
            "time_ps": np.array([clock.time_ps[n][row] for _, n, row in found], np.int64),
            "allocator": Names.encode([allocators[number] for _, number, _ in found]),
            "op": Names.encode([None if stack < 0 else callers[stack] for stack in stacks]),
            "device": Names.encode([allocators[number] for _, number, _ in found]),
            "fragmentation": np.where(fragmented, 1 - largest / np.maximum(free, 1), 0.0).astype(
                np.float64
            ),
            "is_complete": np.ones(len(found), np.bool_),
            **data,
        },
        {
            "fragmentation": fragmented,
            "largest_free_bytes": largest >= 0,
            "device_free_bytes": data["device_free_bytes"] >= 0,
        },
    )


def _oom(device: DeviceHistory, row: int) -> dict[str, int]:
    trace, blocks = device.trace, device.blocks
    in_use, pool = int(device.history.in_use[row]), int(device.history.pool[row])
    largest = -1
    if not device.history.shown[row + 1 :].any():
        free = (blocks.state == FREE) & (blocks.stream == trace.stream[row])
        largest = int(blocks.size[free].max(initial=0))
    size = trace.size[row : row + 1]
    return {
        "requested_bytes": int(size[0]),
        "rounded_bytes": int(round_sizes(size, device.divisions)[0]),
        "pool_bytes": pool,
        "in_use_bytes": in_use,
        # What absurd sizes add up to may have wrapped.
        "free_bytes": min(max(pool - in_use, 0), _MOST_BYTES),
        "largest_free_bytes": largest,
        "device_free_bytes": int(trace.device_free[row]),
    }
