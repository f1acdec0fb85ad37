"""A second copy of weights or gradients is held at the peak."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.frames import FRAME, of_frame
from peakline.findings.kind import Kind, columns
from peakline.text import allocator_text, size_text

if TYPE_CHECKING:
    from peakline.findings.context import Findings, MemoryContext

KIND = Kind(
    "redundant_copy",
    __doc__,
    about="memory",
    phrase="a second copy is held",
    severity="warning",
    section="peak",
    columns=FRAME
    | columns(
        "allocator", "op", "region_type", "shape", "count", "bytes", "peak_bytes", "program",
        copy_bytes="The copy", original="What it is a copy of", made_by="Made by",
        least_saved_bytes="Saves at least",
    ),
    saves="copy_bytes",
)  # fmt: skip


def find(context: MemoryContext) -> Findings:
    """Of each allocator whose buffers have call stacks, each copy; of compiled programs what they
    make anew and could overwrite.
    """
    from peakline.memory.peak import BEFORE_PROFILE
    from peakline.memory.second_copies import buffers_in, second_copies

    yield from (one for one in context.program_findings if one.kind == KIND.name)
    history = context.history
    if history is None or context.origins is None:
        return
    for one in context.allocators:
        if one.at_peak is None:
            continue
        for found in second_copies(history, one.at_peak, context.origins):
            copy, original = found.copy, found.original
            count = buffers_in(history, copy)
            is_before = original.title == BEFORE_PROFILE
            are = "a second copy" if found.times == 1 else f"{found.times} more copies"
            yield KIND.finding(
                f"{allocator_text(one.allocator)}: {size_text(copy.bytes)} are {are}: "
                f"{count} buffers made by {copy.title}, of the sizes of what "
                + ("was there before the profile" if is_before else f"{original.title} made"),
                {
                    "allocator": one.allocator,
                    "op": copy.op,
                    "made_by": copy.title,
                    "original": original.title,
                    "count": count,
                    "copy_bytes": copy.bytes,
                    "peak_bytes": one.peak.peak_bytes,
                    **of_frame(copy.stack.program),
                },
                "Work in place (torch._foreach_mul_, clip_grad_norm_, donated arguments), hold the "
                "copy on the host or on disk (a checkpoint), or make it of one tensor at a time.",
            )
