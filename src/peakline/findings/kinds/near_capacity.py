"""The peak takes 95 % of the capacity or more."""

from peakline.findings.context import Findings, MemoryContext
from peakline.findings.kind import Kind, columns
from peakline.text import allocator_text

KIND = Kind(
    "near_capacity",
    __doc__,
    about="memory",
    phrase="the peak comes near the capacity",
    severity="warning",
    section="peak",
    columns=columns("allocator", "peak_bytes", "capacity_bytes", share="Share of the capacity"),
    limit="capacity_bytes",
)

NEAR_CAPACITY = 0.95
"""A peak of this share of the capacity or more leaves no room for a larger batch or a retry."""


def find(context: MemoryContext) -> Findings:
    """Of each allocator whose capacity is known."""
    for peak in (one.peak for one in context.allocators):
        capacity = peak.capacity_bytes
        if not capacity or peak.peak_bytes < NEAR_CAPACITY * capacity:
            continue
        yield KIND.finding(
            f"{allocator_text(peak.allocator)}: the peak takes {peak.peak_bytes / capacity:.1%} of "
            "the capacity",
            {
                "allocator": peak.allocator,
                "peak_bytes": peak.peak_bytes,
                "capacity_bytes": capacity,
                "share": peak.peak_bytes / capacity,
            },
            "Reduce what is live at the peak (smaller batch, rematerialisation, lower precision).",
        )
