"""By the allocator's own figure, the pool's free memory is in small pieces at the peak."""

from peakline.findings.context import Findings, MemoryContext
from peakline.findings.kind import Kind, columns
from peakline.text import allocator_text

KIND = Kind(
    "fragmentation_at_peak",
    __doc__,
    about="memory",
    phrase="free memory lies in pieces",
    severity="warning",
    section="fragmentation",
    columns=columns("allocator", "fragmentation", "free_bytes", "capacity_bytes"),
)

FRAGMENTED = 0.5
"""Fragmentation from which a request for half of the allocator's free pool must fail."""
LOAD = 0.5
"""Fragmentation matters only where the peak takes this share of the capacity or more: below,
the allocator can still extend its pool instead of reusing the pieces."""
FREE = 0.05
"""... and where at least this share of the capacity is free, so that something is locked up."""


def find(context: MemoryContext) -> Findings:
    """Of each allocator that reports its fragmentation, where memory is nearly full."""
    for peak in (one.peak for one in context.allocators):
        capacity, fragmentation = peak.capacity_bytes, peak.fragmentation_at_peak
        if not capacity or fragmentation is None or fragmentation < FRAGMENTED:
            continue
        free = capacity - peak.peak_bytes
        if peak.peak_bytes < LOAD * capacity or free < FREE * capacity:
            continue
        yield KIND.finding(
            f"{allocator_text(peak.allocator)}: {fragmentation:.0%} of the pool's free memory is "
            "in small pieces at the peak",
            {
                "allocator": peak.allocator,
                "fragmentation": fragmentation,
                "free_bytes": free,
                "capacity_bytes": capacity,
            },
            "Keep sizes and shapes constant from step to step, and free large buffers before "
            "allocating larger ones.",
        )
