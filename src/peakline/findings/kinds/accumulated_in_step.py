"""A step adds up buffers of many turns of a loop, and frees them together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import ORIGIN, SIGNATURE, Kind, about_signature, columns
from peakline.memory.peak.copies import added_up, gradients
from peakline.text import allocator_text, size_text

if TYPE_CHECKING:
    from peakline.findings.context import Findings, MemoryContext

KIND = Kind(
    "accumulated_in_step",
    __doc__,
    about="memory",
    phrase="a step adds up what each turn of a loop makes",
    severity="warning",
    section="peak",
    columns=columns(
        *SIGNATURE, *ORIGIN, "scope", "buffer_bytes", "count", "peak_bytes",
        held_bytes="Added up", saved_bytes="Saves",
    ),
    saves="saved_bytes",
)  # fmt: skip


def find(context: MemoryContext) -> Findings:
    """Of each allocator with steps, each signature that the step of the peak adds up."""
    history = context.history
    if history is None:
        return
    for one in context.allocators:
        if one.at_peak is None:
            continue
        backward = (
            gradients(history) if context.op_events is None else context.op_events.is_backward
        )
        for sums in added_up(history, one.at_peak, backward):
            signature = history.signatures[sums.code]
            others = sums.rows.size // sums.turns - 1
            yield KIND.finding(
                f"{allocator_text(one.allocator)}: {sums.turns} x {signature.title}"
                + (f" and {others} others" if others > 0 else "")
                + f" are held until the end of the step, {size_text(sums.bytes)} of the peak, one "
                "of each turn of a loop"
                + (" with a backward pass" if sums.has_passes else "")
                + ("" if sums.is_sure else ", or of each layer"),
                {
                    **about_signature(signature),
                    "buffer_bytes": signature.bytes,
                    "count": sums.turns,
                    "held_bytes": sums.bytes,
                    "saved_bytes": sums.bytes - sums.bytes // sums.turns,
                    "peak_bytes": one.peak.peak_bytes,
                },
                "Reduce each to the number that is needed before the next turn (argmax, sum, "
                "loss.item(), detach().cpu()), in place of a list of whole tensors; add each "
                "gradient to a sum.",
                severity="" if sums.is_sure else "info",
            )
