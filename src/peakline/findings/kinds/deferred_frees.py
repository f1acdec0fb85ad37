"""Deferred deallocations leave two bounds for the peak."""

from peakline.findings.context import Findings, MemoryContext
from peakline.findings.kind import Kind, columns
from peakline.text import allocator_text

KIND = Kind(
    "deferred_frees",
    __doc__,
    about="memory",
    phrase="deallocations are deferred",
    severity="info",
    section="peak",
    columns=columns(
        "allocator", "peak_bytes",
        deferred="Deferred deallocations",
        completed="Those that were completed",
        upper_peak_bytes="Peak, if they count when completed",
    ),
)  # fmt: skip


def find(context: MemoryContext) -> Findings:
    """Of each allocator whose peak is not certain."""
    for one in context.allocators:
        peak, deferred = one.peak, one.deferred
        if deferred is None:
            continue
        yield KIND.finding(
            f"{allocator_text(peak.allocator)}: {deferred.count} deallocations were deferred; the "
            f"peak lies between {peak.peak_bytes} and {deferred.upper_peak_bytes} bytes",
            {
                "allocator": peak.allocator,
                "deferred": deferred.count,
                "completed": deferred.completed,
                "peak_bytes": peak.peak_bytes,
                "upper_peak_bytes": deferred.upper_peak_bytes,
            },
            "The lower bound holds where memory can be handed out again at once (current "
            "TensorFlow), the upper one where it waits for the device (PyTorch's streams, old "
            "TensorFlow).",
        )
