"""A second copy of weights or gradients is held at the peak."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import FRAME, Kind, columns, of_frame
from peakline.findings.program_values import ProgramOfDevices, each_program
from peakline.memory.peak.buffers import peak_without_signatures
from peakline.memory.peak.copies import buffers_in, joined_copies, parts_of, second_copies
from peakline.memory.peak.explained import BEFORE_PROFILE
from peakline.text import allocator_text, size_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peakline.findings.context import Findings, MemoryContext
    from peakline.findings.finding import Finding
    from peakline.memory.details import MemoryDetails
    from peakline.memory.peak.buffers import AtPeak
    from peakline.memory.peak.copies import Part
    from peakline.memory.signatures import History

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

_DONATED = 0.10
"""State that is not donated counts from this share of what the program needs on."""
_LEAST_DONATED = 4 << 20


def find(context: MemoryContext) -> Findings:
    """Of each allocator whose buffers have call stacks, each copy; of compiled programs what they
    make anew and could overwrite.
    """
    yield from each_program(context.programs, _undonated)

    history, origins = context.history, context.origins
    if history is None or origins is None or not origins.has_frames:
        return
    for one in context.allocators:
        if one.at_peak is not None:
            parts = parts_of(history, one.at_peak, origins)
            yield from _second(one, one.at_peak, history, parts)
            yield from _joined(one, one.at_peak, history, parts)


def _second(one: MemoryDetails, at_peak: AtPeak, history: History, parts: list[Part]) -> Findings:
    for result in second_copies(history, at_peak, parts):
        copy, original = result.copy, "all weights"
        count = buffers_in(history, copy)
        of = original
        if result.original is not None:
            original = result.original.title
            is_before = original == BEFORE_PROFILE
            made = f"what {original} made" if original else "other buffers"
            of = "what was there before the profile" if is_before else made
        are = "a second copy" if result.times == 1 else f"{result.times} more copies"
        yield _finding(
            one,
            at_peak,
            history,
            copy,
            f"are {are}: {count} buffers made by {copy.title}, of the sizes of {of}",
            original,
            result.needed,
            "Work in place (torch._foreach_mul_, clip_grad_norm_, donated arguments), hold the "
            "copy on the host or on disk (a checkpoint), or make it of one tensor at a time.",
        )


def _joined(one: MemoryDetails, at_peak: AtPeak, history: History, parts: list[Part]) -> Findings:
    for result in joined_copies(history, at_peak, parts):
        copy = result.part
        count = buffers_in(history, copy)
        buffers = "a buffer" if count == 1 else f"{count} buffers"
        yield _finding(
            one,
            at_peak,
            history,
            copy,
            f"are {buffers} made by {copy.title}, {'each ' if count > 1 else ''}as large as "
            f"{result.what} together",
            result.what,
            0,
            "Compute from one tensor after the other in place of joining them "
            "(torch._foreach_norm, a sum of torch.dot, optax.global_norm), let gradients be views "
            "of the buckets (gradient_as_bucket_view=True), and hold no vector of the step before.",
        )


def _finding(
    one: MemoryDetails,
    at_peak: AtPeak,
    history: History,
    copy: Part,
    are: str,
    original: str,
    needed: int,
    advice: str,
) -> Finding:
    left = peak_without_signatures(history, at_peak.allocator, copy.rows)
    return KIND.finding(
        f"{allocator_text(one.allocator)}: {size_text(copy.bytes)} {are}",
        {
            "allocator": one.allocator,
            "op": copy.op,
            "made_by": copy.title,
            "original": original,
            "count": buffers_in(history, copy),
            "copy_bytes": copy.bytes,
            "least_saved_bytes": min(max(at_peak.peak - left, 0), copy.bytes) - needed,
            "peak_bytes": one.peak.peak_bytes,
            **of_frame(copy.stack.program),
        },
        advice,
    )


def _undonated(one: ProgramOfDevices) -> Findings:
    """New copies that a program makes of what it is given."""
    need = one.need
    for advice in need.program.advice:
        least = max(_DONATED * need.bytes, _LEAST_DONATED)
        if advice.kind != "donate" or advice.bytes < least:
            continue
        row = advice.rows[0]
        # Fewer copies may be live at once, as far as the program's present order says.
        values = sum(size for copy in advice.rows if isinstance(size := copy.get("bytes"), int))
        yield KIND.finding(
            f"{need.program.label}: the program makes new copies of what it is given, for "
            f"{size_text(advice.bytes)} of the {size_text(need.bytes)} that it needs: "
            f"{advice.title}",
            {
                "allocator": need.device or need.program.name,
                "op": _made_by(row),
                "shape": row.get("shape"),
                "copy_bytes": max(values, advice.bytes),
                "least_saved_bytes": advice.bytes,
                "peak_bytes": need.bytes,
                "program": need.program.label,
            },
            advice.suggestion,
            tuple(
                {"op": _made_by(copy), "shape": copy.get("shape"), "bytes": copy.get("bytes")}
                for copy in advice.rows
            ),
        )
        return


def _made_by(row: Mapping[str, object]) -> str:
    return str(row.get("op_name") or row.get("instruction") or "")
