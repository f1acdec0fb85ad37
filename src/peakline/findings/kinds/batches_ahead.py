"""Many batches of input are in memory at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import FRAME, SIGNATURE, Kind, about_signature, columns, of_frame
from peakline.memory.peak.batches_ahead import ENOUGH, batches_ahead
from peakline.text import allocator_text, size_text

if TYPE_CHECKING:
    from peakline.findings.context import Findings, MemoryContext

KIND = Kind(
    "batches_ahead",
    __doc__,
    about="memory",
    phrase="many batches are in memory at once",
    severity="warning",
    section="peak",
    least=0.35,
    much=0.50,
    columns=FRAME
    | columns(
        *SIGNATURE, "buffer_bytes", "peak_bytes", "share",
        batches="Batches", bytes="Input", saved_bytes="Saves",
    ),
    saves="saved_bytes",
)  # fmt: skip

LEAST = 4 << 20
"""Less than this is not worth a word."""


def find(context: MemoryContext) -> Findings:
    """Of each allocator whose buffers have categories or call stacks."""
    history = context.history
    if history is None or context.origins is None:
        return
    for one in context.allocators:
        if one.at_peak is None:
            continue
        result = batches_ahead(history, one.at_peak, context.origins)
        if result is None or result.bytes < LEAST:
            continue
        largest = result.rows[int(history.allocated[result.rows].argmax())]
        signature = history.signatures[int(history.signatures.codes[largest])]
        by = f", put there by {result.maker.title}" if result.maker is not None else ""
        yield KIND.finding(
            f"{allocator_text(one.allocator)}: {result.number} batches of input are in memory at "
            f"once, {size_text(result.bytes)} of {size_text(one.at_peak.peak)}{by}",
            {
                **about_signature(signature),
                "buffer_bytes": signature.bytes,
                "batches": result.number,
                "bytes": result.bytes,
                "saved_bytes": result.bytes - ENOUGH * result.bytes // result.number,
                "share": result.bytes / one.at_peak.peak,
                "peak_bytes": one.at_peak.peak,
                **of_frame(result.maker),
            },
            "Hold two or three batches ahead (a bound for the queue, prefetch_factor, "
            "prefetch_to_device(iterator, 2)), and move each to the device when its step is next, "
            "in place of a list of all.",
        )
