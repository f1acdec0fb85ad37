"""A step holds the gradients of each example of its batch, of all weights, at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import FRAME, Kind, columns, of_frame
from peakline.memory.peak.per_example import per_example_gradients
from peakline.text import allocator_text, size_text

if TYPE_CHECKING:
    from peakline.findings.context import Findings, MemoryContext

KIND = Kind(
    "per_example_gradients",
    __doc__,
    about="memory",
    phrase="gradients of each example are held at once",
    severity="warning",
    section="peak",
    least=0.10,
    columns=FRAME
    | columns(
        "allocator", "op", "count", "bytes", "share", "peak_bytes", examples="Examples",
        each_bytes="Of one example", more_bytes="Made of all of them", saved_bytes="Saves",
        least_saved_bytes="Saves at least",
    ),
    saves="saved_bytes",
)  # fmt: skip


def find(context: MemoryContext) -> Findings:
    """At most one of each allocator whose records and ops PyTorch's profiler recorded."""
    history, runs = context.history, context.op_events
    if history is None or runs is None:
        return
    for one in context.allocators:
        if one.at_peak is None:
            continue
        result = per_example_gradients(history, one.at_peak, runs)
        peak = one.at_peak.peak
        if result is None or result.bytes + result.more_bytes < KIND.least * peak:
            continue
        each = result.bytes // max(result.examples, 1)
        of = (
            f"{result.examples} examples, {size_text(each)} each"
            if result.examples
            else "each example of a batch (vmap of grad)"
        )
        where = "" if result.function is None else f", in {result.function.title}"
        more = f" and {size_text(result.more_bytes)} made of them" if result.more_bytes else ""
        least, most = (size_text(size) for size in (result.least_after, result.most_after))
        after = least if least == most else f"{least} to {most}"
        yield KIND.finding(
            f"{allocator_text(one.allocator)}: {size_text(result.bytes)} of gradients of {of}, are "
            f"held at once{more}{where}: without them the peak would be {after} instead of "
            f"{size_text(peak)}",
            {
                "allocator": one.allocator,
                "op": result.op,
                **of_frame(result.function),
                "count": int(result.rows.size),
                "examples": result.examples,
                "bytes": result.bytes,
                "each_bytes": each,
                "more_bytes": result.more_bytes,
                "share": result.bytes / peak,
                "saved_bytes": peak - result.least_after,
                "least_saved_bytes": peak - result.most_after,
                "peak_bytes": peak,
            },
            "Where their mean is all that is needed, run one backward pass of the mean loss. To "
            "clip each, add it to a sum as soon as it is made and clipped, take few examples at a "
            "time (torch.func.vmap(chunk_size=...), micro-batches), or compute the norms alone "
            "(ghost clipping) and weigh the losses of one backward pass by them.",
        )
