"""Memory that every layer of one forward pass leaves, for the backward pass: no leak."""

from peakline.findings.context import Findings, MemoryContext
from peakline.findings.growth import COLUMNS, evidence_of, named, rows_of, titles
from peakline.findings.kind import Kind, columns
from peakline.memory.growth.grown import worth
from peakline.memory.growth.single_pass import FOR_BACKWARD
from peakline.text import size_text

KIND = Kind(
    "one_pass",
    __doc__,
    about="memory",
    phrase="memory is held for the backward pass",
    severity="info",
    section="growth",
    columns=COLUMNS
    | columns(
        held_for="Held for", layers="Layers", layer_bytes="One layer", live_bytes="All layers"
    ),
)


def find(context: MemoryContext) -> Findings:
    """Of each allocator in which the layers of one pass, or repetitions, release nothing."""
    for one in context.allocators:
        growth, result = one.growth, one.grown.one_pass
        if growth is None or growth.one_pass is None or not result:
            continue
        one_pass, rows = growth.one_pass, worth(result)
        is_backward, count = one_pass.held_for == FOR_BACKWARD, one_pass.layers
        each = size_text(one_pass.bytes / count)
        what = (
            f"stored for the backward pass, {count} layers, {each} each"
            if is_backward
            else f"{count} repetitions hold {each} each, and none shows a release"
        )
        yield KIND.finding(
            f"{named(growth)}: {what}: {titles(rows)}",
            {
                **evidence_of(growth, result[0]),
                "held_for": one_pass.held_for,
                "layers": count,
                "layer_bytes": round(one_pass.bytes / count),
                "live_bytes": one_pass.bytes,
                "peak_bytes": growth.peak_bytes,
            },
            "This is no leak: the backward pass needs it, and frees it. Recompute some of it there "
            "(torch.utils.checkpoint), or make the batch smaller, to hold less."
            if is_backward
            else "These may be layers of one pass, or steps of a loop that keeps what it makes: "
            "mark the steps, or record more of them, to see which.",
            rows_of(growth, rows),
        )
