"""Findings from how memory is laid out and used within a step.

Fragmentation that made the pool grow, one temporary that makes the peak, and a loop that
allocates the same buffer over and over.
"""

from __future__ import annotations

from collections.abc import Sequence

from peakline.findings.memory_peak import Finding
from peakline.memory.churn import AllocatorChurn
from peakline.memory.fragmentation import Fragmentation
from peakline.memory.savings import Saving
from peakline.text import size_text

__all__ = ["churn_findings", "fragmentation_findings", "temporary_findings"]

HUGE = 0.5
"""One kind of temporary makes the peak when the peak would be lower by this share without it."""

HUGE_BYTES = 64 * 1024
"""... and that is worth a word only from so many bytes on."""

REPEATED = 256
"""A buffer repeats when a step allocates and frees it so often, two of them at once at most, ..."""
REPEATED_SHARE = 4.0
"""... and its bytes in a step are so many times the peak."""
_ROWS = 10


def fragmentation_findings(found: Fragmentation) -> list[Finding]:
    """Small long-lived buffers that kept free memory in pieces when it was needed in one."""
    worst, pins, peak = found.worst, found.pins, found.peak_bytes
    if worst is None or pins is None or not found.is_harmful:
        return []
    first = pins.pins[0]
    count = sum(pin.count for pin in pins.pins)
    size = sum(pin.bytes for pin in pins.pins)
    evidence = {
        "allocator": found.allocator,
        "op": first.signature.op,
        "region_type": first.signature.region_type,
        "data_type": first.signature.data_type,
        "shape": first.signature.shape,
        "pins": count,
        "pin_bytes": size,
        "holes": pins.holes,
        "row_bytes": pins.bytes,
        "largest_hole_bytes": worst.largest,
        "free_bytes": worst.free,
        "asked_bytes": worst.bytes,
        "asked_by": worst.signature.op,
        "time_ps": worst.time_ps,
        "wasted_bytes": found.recoverable_bytes,
        "peak_bytes": peak,
    }
    return [
        Finding(
            "fragmentation",
            "warning",
            f"{found.allocator or '(unnamed allocator)'}: {size_text(worst.free)} were free, in "
            f"pieces of at most {size_text(worst.largest)}, when {worst.signature.op or 'an op'} "
            f"asked for {size_text(worst.bytes)}: {count} small buffers of "
            f"{first.signature.title} lie between the pieces",
            evidence,
            "Make the small long-lived buffers before the large ones, or after those are freed, so "
            "that they lie together; or copy them once the large ones are gone.",
            tuple(
                pin.signature.as_row()
                | {"count": pin.count, "bytes": pin.bytes, "since_ps": pin.since_ps}
                for pin in pins.pins[:_ROWS]
            ),
        )
    ]


def temporary_findings(savings: Sequence[Saving]) -> list[Finding]:
    """The temporary that makes the peak, for the allocator whose savings these are."""
    for saving in savings:
        before = saving.bytes + saving.peak_after
        is_huge = saving.bytes >= max(HUGE * before, HUGE_BYTES)
        if saving.kind not in {"temporary", "program"} or not is_huge:
            continue
        # The op that made the first and largest of them is the one to change.
        row = saving.rows[0]
        are = "are" if sum(int(str(row["count"])) for row in saving.rows) > 1 else "is"
        return [
            Finding(
                "huge_temporary",
                "warning",
                f"{saving.allocator or '(unnamed allocator)'}: without {saving.title}, which "
                f"{are} freed at once, the peak would be {size_text(saving.peak_after)} instead "
                f"of {size_text(before)}",
                {
                    "allocator": saving.allocator,
                    **{name: row[name] for name in ("op", "region_type", "data_type", "shape")},
                    "bytes": row["bytes"],
                    "saved_bytes": saving.bytes,
                    "peak_bytes": before,
                    "peak_after_bytes": saving.peak_after,
                },
                saving.suggestion,
                saving.rows,
            )
        ]
    return []


def churn_findings(found: AllocatorChurn) -> list[Finding]:
    """Buffers of one signature that a step makes and frees over and over, one at a time."""
    if not found.steps or not found.peak_bytes:
        return []
    repeated = [
        one
        for one in found.signatures.at_least(
            allocations=REPEATED * found.steps,
            size=REPEATED_SHARE * found.peak_bytes * found.steps,
        )
        if one.most_live <= 2
    ]
    if not repeated:
        return []
    first = repeated[0]
    times, size = first.allocations / found.steps, first.bytes / found.steps
    return [
        Finding(
            "churn",
            "info",
            f"{found.allocator or '(unnamed allocator)'}: {first.signature.title} is allocated and "
            f"freed {times:,.0f} times in a step, {size_text(size)} in all, against a peak of "
            f"{size_text(found.peak_bytes)}",
            {
                "allocator": found.allocator,
                "op": first.signature.op,
                "region_type": first.signature.region_type,
                "data_type": first.signature.data_type,
                "shape": first.signature.shape,
                "allocations_per_step": round(times, 1),
                "bytes_per_step": round(size),
                "peak_bytes": found.peak_bytes,
            },
            "A loop runs over single items: work on many of them at once, or compile the loop so "
            "that the buffer is used again.",
            tuple(
                one.signature.as_row()
                | {
                    "allocations_per_step": round(one.allocations / found.steps, 1),
                    "bytes_per_step": round(one.bytes / found.steps),
                    "most_live": one.most_live,
                }
                for one in repeated[:_ROWS]
            ),
        )
    ]
