"""Field-by-field comparison of two memory_profile JSON documents.

What the real software leaves open is put in one form first: the order of map entries, the order
of snapshots of equal time, and which of several equal allocations stands for a merged row.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MISSING = "(missing)"
ROW_FIELDS = (
    "allocationBytes", "requestedBytes", "tfOpName", "regionType", "dataType", "tensorShape",
    "memoryActivity", "stepId",
)  # fmt: skip


@dataclass(frozen=True)
class Difference:
    """``path`` names the field, such as ``allocator GPU_0_bfc/rows/3/numOccurrences``."""

    path: str
    expected: Any
    got: Any

    def __str__(self) -> str:
        return f"{self.path}: expected {self.expected!r}, got {self.got!r}"


def compare_memory_profiles(expected: Any, got: Any) -> list[Difference]:
    """All differences between two documents.

    Each is JSON text (str or bytes) or what `json.loads` made of it; empty text and None stand
    for the empty answer that a file without host threads gets.
    """
    return list(_differences("", _canonical(_load(expected)), _canonical(_load(got))))


def describe(differences: list[Difference], limit: int = 20) -> str:
    """One line per difference, the first ``limit`` of them."""
    lines = [str(difference) for difference in differences[:limit]]
    if len(differences) > limit:
        lines.append(f"... and {len(differences) - limit} more")
    return "\n".join(lines)


def _load(document: Any) -> Any:
    if isinstance(document, str | bytes):
        return json.loads(document) if document else None
    return document


def _canonical(document: Any) -> Any:
    if document is None:
        return "(empty answer)"
    return {key: value for key, value in document.items() if key != "memoryProfilePerAllocator"} | {
        f"allocator {memory_id}": _canonical_allocator(profile)
        for memory_id, profile in document["memoryProfilePerAllocator"].items()
    }


def _canonical_allocator(profile: dict[str, Any]) -> dict[str, Any]:
    rest = {
        key: value
        for key, value in profile.items()
        if key not in ("activeAllocations", "memoryProfileSnapshots", "sampledTimelineSnapshots")
    }
    rows = profile["activeAllocations"]
    normal = [int(row["snapshotIndex"]) for row in rows if int(row["snapshotIndex"]) >= 0]
    chosen = profile["memoryProfileSnapshots"]
    return rest | {
        "rows": [_canonical_row(row, profile) for row in rows],
        "rows refer to the kept snapshots in order": normal == list(range(len(chosen))),
        "timeline": sorted(
            profile["sampledTimelineSnapshots"],
            key=lambda snapshot: (
                int(snapshot["timeOffsetPs"]),
                json.dumps(snapshot, sort_keys=True),
            ),
        ),
    }


def _canonical_row(row: dict[str, Any], profile: dict[str, Any]) -> dict[str, Any]:
    """A row with what it refers to; for a merged row only what all its members share."""
    index = int(row["snapshotIndex"])
    if index < 0:
        allocation = profile["specialAllocations"][int(row["specialIndex"])]
    else:
        allocation = profile["memoryProfileSnapshots"][index]["activityMetadata"]
    if row["numOccurrences"] != "1":
        shared = {field: allocation[field] for field in ROW_FIELDS}
        return {"numOccurrences": row["numOccurrences"], "allocation": shared}
    origin = profile["memoryProfileSnapshots"][index] if index >= 0 else allocation
    return ({"snapshotIndex": row["snapshotIndex"]} if index < 0 else {}) | {
        "numOccurrences": row["numOccurrences"],
        "specialIndex": row["specialIndex"],
        "allocation": origin,
    }


def _differences(path: str, expected: Any, got: Any) -> Iterator[Difference]:
    if isinstance(expected, dict) and isinstance(got, dict):
        for key in sorted(expected.keys() | got.keys()):
            yield from _differences(
                f"{path}/{key}" if path else key, expected.get(key, MISSING), got.get(key, MISSING)
            )
    elif isinstance(expected, list) and isinstance(got, list):
        if len(expected) != len(got):
            yield Difference(f"{path}/length", len(expected), len(got))
        for index, (left, right) in enumerate(zip(expected, got, strict=False)):
            yield from _differences(f"{path}/{index}", left, right)
    elif (
        type(expected) is bool
        or type(got) is bool
        or isinstance(expected, str) != isinstance(got, str)
    ):
        if expected is not got:
            yield Difference(path, expected, got)
    elif expected != got:
        yield Difference(path, expected, got)
