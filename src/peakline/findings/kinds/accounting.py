"""The live buffers and the memory from before the profile exceed what is in use."""

from peakline.findings.context import Findings, MemoryContext
from peakline.findings.kind import Kind, columns
from peakline.memory.peak.explained import UNATTRIBUTED
from peakline.text import allocator_text

KIND = Kind(
    "accounting",
    __doc__,
    about="memory",
    phrase="the records name more than is in use",
    severity="warning",
    section="peak",
    columns=columns(
        "allocator", "peak_bytes",
        unattributed_bytes="In use, less what the records name",
        double_allocations="Allocations where a buffer was live",
        unmatched_deallocations="Deallocations of no known buffer",
    ),
)  # fmt: skip


def find(context: MemoryContext) -> Findings:
    """Of each allocator whose peak has a negative rest."""
    for peak in (one.peak for one in context.allocators):
        rest = sum(buffer.bytes for buffer in peak.peak_buffers if buffer.op == UNATTRIBUTED)
        if rest >= 0:
            continue
        yield KIND.finding(
            f"{allocator_text(peak.allocator)}: the buffers at the peak exceed the memory in use "
            f"by {-rest} bytes",
            {
                "allocator": peak.allocator,
                "peak_bytes": peak.peak_bytes,
                "unattributed_bytes": rest,
                "double_allocations": peak.double_allocations,
                "unmatched_deallocations": peak.unmatched_deallocations,
            },
            "Records of deallocations are missing or out of order; capture a shorter profile.",
        )
