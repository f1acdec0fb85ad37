"""Snapshots by hand, the tool's answer for them, and the slow reference's."""

import json
from typing import Any

from tests.tables.fake import FakeReader

from peakline.api import Profile
from reference.memory_profile import Activity, Aggregation, Snapshot, allocator_profile

ALLOCATION, DEALLOCATION = 1, 2
ACTIVITIES = {
    0: "UNKNOWN_ACTIVITY", 1: "ALLOCATION", 2: "DEALLOCATION", 3: "RESERVATION", 4: "EXPANSION",
}  # fmt: skip


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
        "memory_id": "A", "time_offset_ps": time, "activity": activity, "requested_bytes": size,
        "allocation_bytes": size, "address": address, "step_id": 0,
    }  # fmt: skip
    return event | more


def answer(rows, **parameters) -> dict[str, Any]:
    """The tool's JSON as Python objects."""
    return json.loads(profile_of(rows).tool("memory_profile", **parameters).content)


def reference(rows, max_snapshots=1000, version=1) -> dict[str, Any]:
    """What the tool should answer, by the slow reference."""
    ids = sorted({row["memory_id"] for row in rows})
    return {
        "memoryProfilePerAllocator": {
            memory_id: allocator_profile(
                [_snapshot(row) for row in rows if row["memory_id"] == memory_id],
                max_snapshots,
                version,
            )
            for memory_id in ids
        },
        "numHosts": 1,
        "memoryIds": ids,
        "version": version,
        "hloModules": [],
    }


def _snapshot(row) -> Snapshot:
    stats = ("stack_reserved_bytes", "heap_allocated_bytes", "free_memory_bytes", "fragmentation",
             "peak_bytes_in_use")  # fmt: skip
    fields = ("requested_bytes", "allocation_bytes", "address", "tf_op_name", "step_id",
              "region_type", "data_type", "tensor_shape")  # fmt: skip
    return Snapshot(
        row["time_offset_ps"],
        Aggregation(*(row[name] for name in stats)),
        Activity(ACTIVITIES[row["activity"]], *(row[name] for name in fields)),
    )
