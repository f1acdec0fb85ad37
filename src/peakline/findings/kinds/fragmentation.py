"""Enough was free, but in pieces: which small long-lived buffers lie between them."""

from peakline.findings.context import Findings, MemoryContext
from peakline.findings.kind import SIGNATURE, Kind, about_signature, columns
from peakline.text import allocator_text, size_text

KIND = Kind(
    "fragmentation",
    __doc__,
    about="memory",
    phrase="free memory lies in pieces",
    severity="warning",
    section="fragmentation",
    columns=columns(
        *SIGNATURE, "scope", "free_bytes", "largest_hole_bytes", "time_ps", "bytes", "count",
        "since_ps",
        pins="Small buffers between the pieces",
        pin_bytes="Their bytes",
        holes="Free pieces in a row",
        row_bytes="The row would be one piece of",
        asked_bytes="Requested",
        asked_by="Requested by",
        wasted_bytes="Needed only because of the pieces",
        peak_bytes="Most in use at known addresses",
    ),
    saves="wasted_bytes",
)  # fmt: skip

_ROWS = 10


def find(context: MemoryContext) -> Findings:
    """Of each allocator in which free pieces were too small when memory was needed in one."""
    for found in (one.fragmentation for one in context.allocators):
        if found is None or found.worst is None or found.pins is None or not found.is_harmful:
            continue
        worst, pins = found.worst, found.pins
        first = pins.pins[0]
        count = sum(pin.count for pin in pins.pins)
        yield KIND.finding(
            f"{allocator_text(found.allocator)}: {size_text(worst.free)} were free, in pieces of "
            f"at most {size_text(worst.largest)}, when {worst.signature.op or 'an op'} requested "
            f"{size_text(worst.bytes)}: {count} small buffers of {first.signature.title} lie "
            "between the pieces",
            {
                **about_signature(first.signature),
                "pins": count,
                "pin_bytes": sum(pin.bytes for pin in pins.pins),
                "holes": pins.holes,
                "row_bytes": pins.bytes,
                "largest_hole_bytes": worst.largest,
                "free_bytes": worst.free,
                "asked_bytes": worst.bytes,
                "asked_by": worst.signature.op,
                "time_ps": worst.time_ps,
                "wasted_bytes": found.recoverable_bytes,
                "peak_bytes": found.peak_bytes,
            },
            "Make the small long-lived buffers before the large ones, or after those are freed, so "
            "that they lie together; or copy them once the large ones are gone.",
            tuple(
                pin.signature.as_row()
                | {"count": pin.count, "bytes": pin.bytes, "since_ps": pin.since_ps}
                for pin in pins.pins[:_ROWS]
            ),
        )
