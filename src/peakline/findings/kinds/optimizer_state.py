"""The state of an optimizer is in memory twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import FRAME, Kind, columns, of_frame
from peakline.memory.peak.copies import second_states
from peakline.memory.peak.optimizers import second_slots
from peakline.text import allocator_text, size_text

if TYPE_CHECKING:
    from peakline.findings.context import Findings, MemoryContext

KIND = Kind(
    "optimizer_state",
    __doc__,
    about="memory",
    phrase="an optimizer's state exists twice",
    severity="warning",
    section="peak",
    columns=FRAME
    | columns(
        "allocator", "op", "count", "peak_bytes", "saved_bytes",
        made_by="Made by", since="First made in", again="Made again in",
    ),
    saves="saved_bytes",
)  # fmt: skip


def find(context: MemoryContext) -> Findings:
    """Of each allocator: by call stacks, and by the ops that update TensorFlow's variables."""
    yield from _slots(context)

    history = context.history
    if history is None or context.origins is None:
        return
    for one in context.allocators:
        if one.at_peak is None:
            continue
        extra = second_states(history, one.at_peak, context.origins)
        if extra is None:
            continue
        library = extra.stack.library
        made_by = library.title if library is not None else extra.title
        yield KIND.finding(
            f"{allocator_text(one.allocator)}: the state of the optimizer is there twice: "
            f"{extra.rows.size} buffers, {size_text(extra.bytes)}, made again by {made_by}"
            + (f", called in {extra.stack.program.title}" if extra.stack.program else ""),
            {
                "allocator": one.allocator,
                "op": extra.op,
                "made_by": made_by,
                "count": int(extra.rows.size),
                "saved_bytes": extra.bytes,
                "peak_bytes": one.peak.peak_bytes,
                **of_frame(extra.stack.program),
            },
            "Make the optimizer once, and add parameters to it (add_param_group); where a new one "
            "takes its place, drop the old one and all that holds it (schedulers, closures, "
            "checkpointers) before its first step.",
        )


def _slots(context: MemoryContext) -> Findings:
    history = context.history
    if history is None:
        return
    for one in context.allocators:
        if one.at_peak is None:
            continue
        extra = second_slots(history, one.at_peak)
        if extra is None:
            continue
        first = history.signatures[int(history.signatures.codes[extra.rows[0]])]
        yield KIND.finding(
            f"{allocator_text(one.allocator)}: the state of the optimizer is there twice: "
            f"{extra.rows.size} buffers of zeros ({first.title} first), where {extra.update} needs "
            f"{extra.needed} for these weights",
            {
                "allocator": one.allocator,
                "op": first.op,
                "made_by": extra.update,
                "count": int(extra.rows.size) - extra.needed,
                "saved_bytes": extra.saved_bytes,
                "peak_bytes": one.peak.peak_bytes,
            },
            "Build each optimizer over the variables that it updates, and only those "
            "(optimizer.build(network.trainable_variables)).",
        )
