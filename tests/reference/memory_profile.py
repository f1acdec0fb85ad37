"""The memory_profile tool, slowly (xplane_to_memory_profile.cc in openxla/xprof).

The result is the JSON document as Python objects: 64-bit integers are decimal strings, as
protobuf's JSON has them.
"""

import math
from collections import defaultdict
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from peakline.schema import XSpace
from reference.data_types import data_type_name
from reference.grouping import Grouping, group_events
from reference.model import Event, Plane, int64

ACTIVITIES = {"MemoryAllocation": "ALLOCATION", "MemoryDeallocation": "DEALLOCATION"}
NO_STEP = -1
INTEGER_STATS = {
    "bytes_reserved": "stackReservedBytes", "bytes_allocated": "heapAllocatedBytes",
    "bytes_available": "freeMemoryBytes", "peak_bytes_in_use": "peakBytesInUse",
    "requested_bytes": "requestedBytes", "allocation_bytes": "allocationBytes", "addr": "address",
    "group_id": "stepId",
}  # fmt: skip
TEXT_STATS = {"tf_op": "tfOpName", "region_type": "regionType", "shape": "tensorShape"}


@dataclass
class Aggregation:
    """Bytes, and a fraction."""

    stackReservedBytes: int = 0
    heapAllocatedBytes: int = 0
    freeMemoryBytes: int = 0
    fragmentation: float = 0.0
    peakBytesInUse: int = 0

    @property
    def in_use(self) -> int:
        return int64(self.heapAllocatedBytes + self.stackReservedBytes)


@dataclass
class Activity:
    """One allocation or deallocation."""

    memoryActivity: str
    requestedBytes: int = 0
    allocationBytes: int = 0
    address: int = 0
    tfOpName: str = ""
    stepId: int = NO_STEP
    regionType: str = ""
    dataType: str = ""
    tensorShape: str = ""

    @property
    def row_key(self) -> tuple[int, int, str, str, str, str]:
        """Rows are in this order, and rows of equal key are one."""
        return (
            int64(-self.allocationBytes), int64(-self.requestedBytes), self.tfOpName,
            self.regionType, self.dataType, self.tensorShape,
        )  # fmt: skip


@dataclass(eq=False)
class Snapshot:
    timeOffsetPs: int
    aggregationStats: Aggregation
    activityMetadata: Activity


def memory_profile(
    space: XSpace, max_snapshots: int = 1000, grouping: Grouping | None = None
) -> dict[str, Any] | None:
    """The document for one host, or None where there is no plane of host threads."""
    planes = (grouping or group_events(space)).planes
    host = next((plane for plane in planes if plane.name == "/host:CPU"), None)
    if host is None:
        return None
    by_memory: defaultdict[str, list[Snapshot]] = defaultdict(list)
    for event in host.events():
        if event.name in ACTIVITIES:
            memory_id, snapshot = _read_snapshot(event)
            by_memory[memory_id].append(snapshot)
    return {
        "memoryProfilePerAllocator": {
            memory_id: allocator_profile(snapshots, max_snapshots)
            for memory_id, snapshots in by_memory.items()
        },
        "numHosts": 1,
        "memoryIds": sorted(by_memory),
        "version": 1,
        "hloModules": _hlo_modules(planes),
    }


def _read_snapshot(event: Event) -> tuple[str, Snapshot]:
    memory_id = ""
    values: dict[str, Any] = {}
    for stat in event.stats:
        if stat.name in ("index_on_host", "device_ordinal"):
            memory_id = str(stat.int_value)
        elif stat.name == "allocator_name":
            memory_id = stat.text
        elif stat.name == "fragmentation":
            values["fragmentation"] = stat.double_value
        elif stat.name == "data_type":
            values["dataType"] = data_type_name(stat.int_value)
        elif stat.name in INTEGER_STATS:
            values[INTEGER_STATS[stat.name]] = stat.int_value
        elif stat.name in TEXT_STATS:
            values[TEXT_STATS[stat.name]] = stat.text
    aggregation = Aggregation()
    activity = Activity(ACTIVITIES[event.name])
    for name, value in values.items():
        setattr(aggregation if hasattr(aggregation, name) else activity, name, value)
    activity.address %= 2**64
    return memory_id, Snapshot(event.offset_ps, aggregation, activity)


def allocator_profile(
    snapshots: list[Snapshot], max_snapshots: int, version: int = 1
) -> dict[str, Any]:
    """The document's part of one memory, of its snapshots in the order of the file."""
    peak = Aggregation()
    peak_time = capacity = 0
    for snapshot in snapshots:
        stats = snapshot.aggregationStats
        if stats.in_use >= peak.peakBytesInUse:
            peak = Aggregation(**{**asdict(stats), "peakBytesInUse": stats.in_use})
            peak_time = snapshot.timeOffsetPs
            capacity = int64(stats.in_use + stats.freeMemoryBytes)
    lifetime_peak = snapshots[-1].aggregationStats.peakBytesInUse

    timeline = sorted(snapshots, key=lambda snapshot: snapshot.timeOffsetPs)
    _fill_steps(timeline)
    _name_frees(timeline)
    peak_step = 0
    for snapshot in timeline:
        if snapshot.aggregationStats.in_use == peak.peakBytesInUse:
            peak_step = snapshot.activityMetadata.stepId
    active, unmapped = _active_at_peak(timeline, peak, peak_time, peak_step)
    special = _special_allocations(unmapped, peak.stackReservedBytes, peak_step)

    rows, chosen = _rows(active, special)
    sampled = _sample(timeline, max_snapshots)
    if version == 0:  # Every snapshot is there, and rows have its number among all.
        numbers = [timeline.index(snapshot) for snapshot in chosen]
        for row in rows:
            if row["specialIndex"] < 0:
                row["snapshotIndex"] = numbers[row["snapshotIndex"]]
        chosen, sampled = timeline, []
    return {
        "memoryProfileSnapshots": [_json(asdict(snapshot)) for snapshot in chosen],
        "profileSummary": _json(
            {
                "peakBytesUsageLifetime": lifetime_peak,
                "peakStats": asdict(peak),
                "peakStatsTimePs": peak_time,
                "memoryCapacity": capacity,
            }
        ),
        "activeAllocations": [_json(row) for row in rows],
        "specialAllocations": [_json(asdict(activity)) for activity in special],
        "sampledTimelineSnapshots": [_json(asdict(snapshot)) for snapshot in sampled],
    }


def _rows(
    active: list[Snapshot], special: list[Activity]
) -> tuple[list[dict[str, int]], list[Snapshot]]:
    """The table at the peak, equal allocations merged, and the snapshots that its rows refer to."""
    candidates: list[tuple[Activity, Snapshot | int]] = [
        (snapshot.activityMetadata, snapshot) for snapshot in active
    ]
    candidates += [(activity, number) for number, activity in enumerate(special)]
    candidates.sort(key=lambda candidate: candidate[0].row_key)
    rows: list[dict[str, int]] = []
    chosen: list[Snapshot] = []
    for _, equal in groupby(candidates, key=lambda candidate: candidate[0].row_key):
        origins = [origin for _, origin in equal]
        first = origins[0]
        if isinstance(first, Snapshot):
            index, special_index = len(chosen), -1
            chosen.append(first)
        else:
            index, special_index = -first - 1, first
        rows.append(
            {"snapshotIndex": index, "specialIndex": special_index, "numOccurrences": len(origins)}
        )
    return rows, chosen


def _fill_steps(timeline: list[Snapshot]) -> None:
    """What has no step belongs to the one after the last seen."""
    last = -1
    for snapshot in timeline:
        activity = snapshot.activityMetadata
        if activity.stepId == NO_STEP:
            activity.stepId = int64(last + 1)
        else:
            last = activity.stepId


def _name_frees(timeline: list[Snapshot]) -> None:
    """A deallocation takes over what its address's first live allocation was for."""
    live: dict[int, Activity] = {}
    for snapshot in timeline:
        activity = snapshot.activityMetadata
        if activity.memoryActivity == "ALLOCATION":
            live.setdefault(activity.address, activity)
        elif activity.memoryActivity == "DEALLOCATION" and activity.address in live:
            allocation = live.pop(activity.address)
            activity.tfOpName = allocation.tfOpName
            activity.regionType = allocation.regionType
            activity.dataType = allocation.dataType
            activity.tensorShape = allocation.tensorShape


def _sample(timeline: list[Snapshot], limit: int) -> list[Snapshot]:
    """At most ``limit`` snapshots, the largest of each of ``limit`` runs of neighbours."""
    count = len(timeline)
    if count <= limit:
        return timeline
    width = count // limit
    widths = [width] * (limit * (width + 1) - count)
    widths += [width + 1] * (limit - len(widths))
    sampled = []
    start = 0
    for width in widths:
        bucket = timeline[start : start + width]
        sampled.append(max(bucket, key=lambda snapshot: snapshot.aggregationStats.in_use))
        start += width
    return sampled


def _active_at_peak(
    timeline: list[Snapshot], peak: Aggregation, peak_time: int, peak_step: int
) -> tuple[list[Snapshot], int]:
    """Allocations of the peak's step that are live at the peak, and the bytes they leave over."""
    active: dict[int, int] = {}
    unmapped = peak.heapAllocatedBytes
    freed = 0
    for position, snapshot in enumerate(timeline):
        if snapshot.timeOffsetPs > peak_time:
            break
        activity = snapshot.activityMetadata
        if activity.stepId != peak_step:
            continue
        if activity.memoryActivity == "ALLOCATION":
            active[activity.address] = position
            unmapped -= activity.allocationBytes
        elif activity.memoryActivity == "DEALLOCATION":
            if activity.address in active:
                del active[activity.address]
            else:
                freed += activity.allocationBytes
            unmapped += activity.allocationBytes
    return [timeline[number] for number in sorted(active.values())], int64(unmapped - freed)


def _special_allocations(unmapped: int, stack: int, step: int) -> list[Activity]:
    special = []
    for name, region, size in (
        ("unused preallocated device memory", "persist/dynamic", unmapped),
        ("stack", "stack", stack),
    ):
        if size > 0:
            special.append(
                Activity("ALLOCATION", size, size, 0, name, step, region, "INVALID", "unknown")
            )
    return special


def _hlo_modules(planes: list[Plane]) -> list[dict[str, str]]:
    modules: list[dict[str, str]] = []
    for plane in planes:
        if not plane.name.startswith("/device:TPU:"):
            continue
        for line in plane.lines:
            if line.name != "XLA Modules":
                continue
            for event in line.events:
                modules.append(
                    {
                        "id": str(len(modules)),
                        "name": event.name,
                        "startTimePs": str(event.offset_ps),
                        "endTimePs": str(int64(event.offset_ps + event.duration_ps)),
                        "planeName": plane.name.removeprefix("/device:"),
                    }
                )
    return modules


def _json(value: Any) -> Any:
    """Integers as text, and the doubles that JSON has no number for by name."""
    if isinstance(value, dict):
        return {key: _json(member) for key, member in value.items()}
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value
