"""Snapshots by hand, the tool's answer for them, and the rules once more in slow plain Python."""

import json
from typing import Any

from tests.profile.fake import FakeReader

from peakline.api import Profile

ALLOCATION, DEALLOCATION = 1, 2
ACTIVITIES = {
    0: "UNKNOWN_ACTIVITY",
    1: "ALLOCATION",
    2: "DEALLOCATION",
    3: "RESERVATION",
    4: "EXPANSION",
}
METADATA = ("tf_op_name", "region_type", "data_type", "tensor_shape")


def profile_of(rows, modules=None, **keywords) -> Profile:
    """A profile with these rows of memory_snapshots (and of module_runs)."""
    tables = {"memory_snapshots": rows}
    if modules is not None:
        tables["module_runs"] = modules
    return Profile(FakeReader(tables, **keywords))


def alloc(time, address, size, **more) -> dict[str, Any]:
    """An allocation of ``size`` bytes in allocator A, in step 0."""
    return _event(ALLOCATION, time, address, size, more)


def free(time, address, size, **more) -> dict[str, Any]:
    """A deallocation, as `alloc`."""
    return _event(DEALLOCATION, time, address, size, more)


def _event(activity, time, address, size, more) -> dict[str, Any]:
    event = {
        "memory_id": "A",
        "time_offset_ps": time,
        "activity": activity,
        "requested_bytes": size,
        "allocation_bytes": size,
        "address": address,
        "step_id": 0,
    }
    return event | more


def answer(rows, **parameters) -> dict[str, Any]:
    """The tool's JSON as Python objects."""
    return json.loads(profile_of(rows).tool("memory_profile", **parameters).content)


def only(rows, memory_id="A", **parameters) -> dict[str, Any]:
    """The JSON of one allocator."""
    return answer(rows, **parameters)["memoryProfilePerAllocator"][memory_id]


def steps(result, field="sampledTimelineSnapshots") -> list[int]:
    """The step of each snapshot of one allocator's JSON."""
    return [int(snapshot["activityMetadata"]["stepId"]) for snapshot in result[field]]


def times(snapshots) -> list[int]:
    """The offset of each snapshot."""
    return [int(snapshot["timeOffsetPs"]) for snapshot in snapshots]


def rows_of(result) -> list[tuple[int, str, int]]:
    """``(bytes, op, occurrences)`` per row of the table at the peak."""
    table = []
    for row in result["activeAllocations"]:
        index, special = int(row["snapshotIndex"]), int(row["specialIndex"])
        if index >= 0:
            assert special == -1
            shown = result["memoryProfileSnapshots"][index]["activityMetadata"]
        else:
            assert special == -1 - index
            shown = result["specialAllocations"][special]
        table.append((int(shown["allocationBytes"]), shown["tfOpName"], int(row["numOccurrences"])))
    return table


def reference(rows, max_snapshots=1000, version=1) -> dict[str, Any]:
    """What the tool should answer, by the rules of xplane_to_memory_profile.cc, row by row."""
    ids = sorted({row["memory_id"] for row in rows}, key=str.encode)
    return {
        "memoryProfilePerAllocator": {
            memory_id: _allocator(
                [row for row in rows if row["memory_id"] == memory_id], max_snapshots, version
            )
            for memory_id in ids
        },
        "numHosts": 1,
        "memoryIds": ids,
        "version": version,
        "hloModules": [],
    }


def _int64(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


def _in_use(row) -> int:
    return _int64(row["stack_reserved_bytes"] + row["heap_allocated_bytes"])


def _allocator(rows, max_snapshots, version) -> dict[str, Any]:
    peak = dict.fromkeys(
        ("time_offset_ps", "stack_reserved_bytes", "heap_allocated_bytes", "free_memory_bytes"), 0
    ) | {"fragmentation": 0.0}
    for row in rows:
        if _in_use(row) >= _in_use(peak):
            peak = row
    lifetime = rows[-1]["peak_bytes_in_use"]

    # The rows from here on are copies, in time order, with the step and metadata they show.
    shown = [dict(row) for row in sorted(rows, key=lambda row: row["time_offset_ps"])]
    last = -1
    for row in shown:
        if row["step_id"] == -1:
            row["step_id"] = _int64(last + 1)
        else:
            last = row["step_id"]
    live: dict[int, dict[str, Any]] = {}
    for row in shown:
        if row["activity"] == ALLOCATION:
            live.setdefault(row["address"], row)
        elif row["activity"] == DEALLOCATION and row["address"] in live:
            source = live.pop(row["address"])
            row.update({name: source[name] for name in METADATA})

    peak_step = 0
    for row in shown:
        if _in_use(row) == _in_use(peak):
            peak_step = row["step_id"]
    unmapped = peak["heap_allocated_bytes"]
    freed = 0
    active: dict[int, int] = {}
    for position, row in enumerate(shown):
        if row["time_offset_ps"] > peak["time_offset_ps"] or row["step_id"] != peak_step:
            continue
        if row["activity"] == ALLOCATION:
            active[row["address"]] = position
            unmapped -= row["allocation_bytes"]
        elif row["activity"] == DEALLOCATION:
            if row["address"] in active:
                del active[row["address"]]
            else:
                freed += row["allocation_bytes"]
            unmapped += row["allocation_bytes"]
    unmapped = _int64(unmapped - freed)
    specials = []
    for size, op, region in (
        (unmapped, "unused preallocated device memory", "persist/dynamic"),
        (peak["stack_reserved_bytes"], "stack", "stack"),
    ):
        if size > 0:
            specials.append(
                alloc(0, 0, size)
                | {"tf_op_name": op, "region_type": region, "step_id": peak_step}
                | {"data_type": "INVALID", "tensor_shape": "unknown"}
            )

    entries = [(_key(shown[position]), position) for position in sorted(active.values())]
    entries += [(_key(row), -1 - number) for number, row in enumerate(specials)]
    entries.sort(key=lambda entry: entry[0])
    merged: list[list[Any]] = []
    for key, index in entries:
        if merged and merged[-1][0] == key:
            merged[-1][2] += 1
        else:
            merged.append([key, index, 1])
    kept = [index for _, index, _ in merged if index >= 0]
    number_of = {index: number for number, index in enumerate(kept)}
    everything = list(range(len(shown)))
    return {
        "memoryProfileSnapshots": [
            _snapshot(shown[index]) for index in (everything if version == 0 else kept)
        ],
        "profileSummary": {
            "peakBytesUsageLifetime": str(lifetime),
            "peakStats": _aggregation(peak) | {"peakBytesInUse": str(_in_use(peak))},
            "peakStatsTimePs": str(peak["time_offset_ps"]),
            "memoryCapacity": str(_int64(_in_use(peak) + peak["free_memory_bytes"])),
        },
        "activeAllocations": [
            {
                "snapshotIndex": str(index if index < 0 or version == 0 else number_of[index]),
                "specialIndex": str(-1 - index if index < 0 else -1),
                "numOccurrences": str(count),
            }
            for _, index, count in merged
        ],
        "specialAllocations": [_metadata(row) for row in specials],
        "sampledTimelineSnapshots": [
            _snapshot(shown[index])
            for index in ([] if version == 0 else _sampled(shown, max_snapshots))
        ],
    }


def _key(row) -> tuple[Any, ...]:
    texts = [row[name].encode() for name in METADATA]
    return (_int64(-row["allocation_bytes"]), _int64(-row["requested_bytes"]), *texts)


def _sampled(shown, limit) -> list[int]:
    total = len(shown)
    if total <= limit:
        return list(range(total))
    width = total // limit
    widths = [width] * (limit * (width + 1) - total)
    widths += [width + 1] * (limit - len(widths))
    chosen, start = [], 0
    for size in widths:
        bucket = range(start, start + size)
        chosen.append(max(bucket, key=lambda position: _in_use(shown[position])))
        start += size
    return chosen


def _snapshot(row) -> dict[str, Any]:
    return {
        "timeOffsetPs": str(row["time_offset_ps"]),
        "aggregationStats": _aggregation(row) | {"peakBytesInUse": str(row["peak_bytes_in_use"])},
        "activityMetadata": _metadata(row),
    }


def _aggregation(row) -> dict[str, Any]:
    return {
        "stackReservedBytes": str(row["stack_reserved_bytes"]),
        "heapAllocatedBytes": str(row["heap_allocated_bytes"]),
        "freeMemoryBytes": str(row["free_memory_bytes"]),
        "fragmentation": row["fragmentation"],
    }


def _metadata(row) -> dict[str, Any]:
    return {
        "memoryActivity": ACTIVITIES[row["activity"]],
        "requestedBytes": str(row["requested_bytes"]),
        "allocationBytes": str(row["allocation_bytes"]),
        "address": str(row["address"]),
        "tfOpName": row["tf_op_name"],
        "stepId": str(row["step_id"]),
        "regionType": row["region_type"],
        "dataType": row["data_type"],
        "tensorShape": row["tensor_shape"],
    }
