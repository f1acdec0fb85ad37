"""Enough was free, but in pieces: which small long-lived buffers lie between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.context import Findings, MemoryContext
from peakline.findings.kind import FRAME, SIGNATURE, Kind, about_signature, columns, of_frame
from peakline.memory.fragmentation.segments import segments_taken
from peakline.text import allocator_text, size_text

if TYPE_CHECKING:
    from peakline.memory.details import MemoryDetails
    from peakline.memory.fragmentation.holes import Fragmentation

KIND = Kind(
    "fragmentation",
    __doc__,
    about="memory",
    phrase="free memory lies in pieces",
    severity="warning",
    section="fragmentation",
    columns=FRAME
    | columns(
        *SIGNATURE, "scope", "free_bytes", "largest_hole_bytes", "time_ps", "bytes", "count",
        "since_ps",
        pins="Small buffers between the pieces",
        pin_bytes="Their bytes",
        holes="Free pieces in a row",
        row_bytes="The row would be one piece of",
        asked_bytes="Requested",
        asked_by="Requested by",
        wasted_bytes="Needed only because of the pieces",
        segments="Segments taken",
        forced="Of them while enough was free",
        reserved_bytes="Reserved",
        peak_bytes="Most in use at known addresses",
    ),
    saves="wasted_bytes",
)  # fmt: skip

_ROWS = 10


def find(context: MemoryContext) -> Findings:
    """Of each allocator in which free pieces were too small when memory was needed in one."""
    yield from _segments(context)
    for one in context.allocators:
        result = one.fragmentation
        if result is None or result.worst is None or result.pins is None or not result.is_harmful:
            continue
        worst, pins = result.worst, result.pins
        first = pins.pins[0]
        count = sum(pin.count for pin in pins.pins)
        yield KIND.finding(
            f"{allocator_text(result.allocator)}: {size_text(worst.free)} were free, in pieces of "
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
                "wasted_bytes": _wasted(one, result),
                "peak_bytes": result.peak_bytes,
            },
            "Make the small long-lived buffers before the large ones, or after those are freed, so "
            "that they lie together; or copy them once the large ones are gone.",
            tuple(
                pin.signature.as_row()
                | {"count": pin.count, "bytes": pin.bytes, "since_ps": pin.since_ps}
                for pin in pins.pins[:_ROWS]
            ),
        )


def _wasted(one: MemoryDetails, result: Fragmentation) -> int:
    """What a perfect packing would save where the recording was replayed, else what was taken only
    because of the pieces.
    """
    savings = (saving for saving in one.savings if saving.kind == KIND.name and saving.is_replayed)
    return next((saving.bytes for saving in savings), result.recoverable_bytes)


def _segments(context: MemoryContext) -> Findings:
    """Of each caching allocator that took more from its device while enough was free."""
    history = context.history
    if history is None:
        return
    for one in context.allocators:
        number = history.lifetimes.allocators.index(one.allocator)
        result = segments_taken(history, number)
        if result is None:
            continue
        op, _, _ = result.ops[0]
        evidence: dict[str, object] = {
            "allocator": one.allocator,
            "op": op,
            "segments": result.segments,
            "forced": result.forced,
            "reserved_bytes": result.reserved_bytes,
            "wasted_bytes": min(result.forced_bytes, result.reserved_bytes - result.used_bytes),
            "peak_bytes": result.used_bytes,
        }
        where = ""
        if context.origins is not None:
            sizes = history.events.array("allocated_bytes")[result.rows]
            frame = context.origins.function(result.rows, sizes)
            evidence |= of_frame(frame)
            where = f", in {frame.title}" if frame is not None else ""
        yield KIND.finding(
            f"{allocator_text(one.allocator)}: {size_text(result.reserved_bytes)} are reserved for "
            f"at most {size_text(result.used_bytes)} in use: {result.forced} of {result.segments} "
            f"segments were taken while enough was free, in pieces too small, most for {op}{where}",
            evidence,
            "Make sizes the same from step to step (pad batches to a few lengths, the longest "
            "first), or let segments grow: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True.",
            tuple(
                {"op": name, "bytes": size, "count": count}
                for name, size, count in result.ops[:_ROWS]
            ),
        )
