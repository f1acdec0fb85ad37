"""Gradients are set to zero in place of being given back, and live through the forward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import FRAME, Kind, columns, of_frame
from peakline.memory.peak.zeroed_gradients import lasting_gradients, zeroed_gradients
from peakline.text import allocator_text, size_text

if TYPE_CHECKING:
    from peakline.findings.context import Findings, MemoryContext

KIND = Kind(
    "zeroed_gradients",
    __doc__,
    about="memory",
    phrase="gradients live through the forward pass",
    severity="warning",
    section="peak",
    least=0.05,
    much=0.10,
    columns=FRAME
    | columns("allocator", "op", "count", "bytes", "share", "peak_bytes", saved_bytes="Saves"),
    saves="saved_bytes",
)


_ADVICE = (
    "Give gradients back after the optimizer's step: zero_grad(set_to_none=True), the default "
    "since PyTorch 2.0, or parameter.grad = None; the backward pass makes them anew."
)


def find(context: MemoryContext) -> Findings:
    """Of each allocator of PyTorch whose records have ops, or stacks alone."""
    history, runs, origins = context.history, context.op_events, context.origins
    if history is None or history.descriptions is None or (runs is None and origins is None):
        return
    for one in context.allocators:
        if one.at_peak is None:
            continue
        if runs is not None:
            result = zeroed_gradients(history, one.at_peak, runs)
        elif origins is not None:
            result = lasting_gradients(history, one.at_peak, origins)
        if result is None:
            continue
        where = "" if result.function is None else f", in {result.function.title}"
        evidence = {
            "allocator": one.allocator,
            "op": result.op,
            "peak_bytes": one.peak.peak_bytes,
            **of_frame(result.function),
        }
        if not result.rows.size:
            yield KIND.finding(
                f"{allocator_text(one.allocator)}: gradients are set to zero by {result.op}{where} "
                "in place of being given back, and live through the forward pass; they are from "
                "before the recording, which does not say how large they are",
                evidence,
                _ADVICE,
                severity="info",
            )
            continue
        saved = one.at_peak.peak - result.peak_after
        share = saved / one.at_peak.peak
        if share < KIND.least:
            continue
        how = f"set to zero by {result.op}{where}"
        if not result.op:
            how = f"held over the optimizer's step{where}, and added to by later backward passes"
        yield KIND.finding(
            f"{allocator_text(one.allocator)}: {size_text(result.bytes)} of gradients "
            f"({result.rows.size} buffers) live through the forward pass, {how}: "
            f"without them the peak would be {size_text(result.peak_after)} "
            f"instead of {size_text(one.at_peak.peak)}",
            {
                **evidence,
                "count": int(result.rows.size),
                "bytes": result.bytes,
                "saved_bytes": saved,
                "share": share,
            },
            _ADVICE,
        )
