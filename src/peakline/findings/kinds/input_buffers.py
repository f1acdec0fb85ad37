"""A stage of tf.data holds much of the peak."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import SIGNATURE, Kind, about_signature, columns
from peakline.memory.peak.batches_ahead import ENOUGH
from peakline.memory.peak.buffers import peak_without_signatures
from peakline.memory.peak.input_buffers import HeldBuffers, held_buffers, may_hold, pipelines_of
from peakline.safe_text import one_line
from peakline.text import allocator_text, size_text

if TYPE_CHECKING:
    from peakline.findings.context import Findings, MemoryContext

KIND = Kind(
    "input_buffers",
    __doc__,
    about="memory",
    phrase="the input pipeline holds much of the peak",
    severity="warning",
    section="peak",
    least=0.20,
    much=0.50,
    columns=columns(
        *SIGNATURE, "count", "bytes", "peak_bytes", "share",
        stage="Stage", elements="Elements", limit="May hold", saved_bytes="Saves",
        least_saved_bytes="Saves at least",
    ),
    saves="saved_bytes",
)  # fmt: skip

_LEAST = 4 << 20
"""Less than this is not worth a word."""
_LEAST_SAVED = 0.5
"""How far a buffer may shrink the data says, and not the profile: half of it, or all but two."""
_EXAMPLES = 0.75
"""A shuffle of single examples mixes them as it should: an alarm only from this share on."""


def _least(peak: int) -> float:
    return max(_LEAST, KIND.least * peak)


def find(context: MemoryContext) -> Findings:
    """Of each allocator the stage that holds most, where stages say how much they hold."""
    history = context.history
    if history is None or context.profile is None:
        return
    for one in context.allocators:
        at_peak = one.at_peak
        if at_peak is None or not may_hold(history, at_peak, _least(at_peak.peak)):
            continue
        pipelines = pipelines_of(context.profile)
        if pipelines is None:
            return
        held = held_buffers(history, at_peak, pipelines)
        peak = at_peak.peak
        if not held or held[0].bytes < _least(peak):
            continue
        first = held[0]
        largest = first.rows[int(history.allocated[first.rows].argmax())]
        signature = history.signatures[int(history.signatures.codes[largest])]
        number, share = first.holding.number, first.bytes / peak
        left = peak_without_signatures(history, at_peak.allocator, first.rows)
        saved = min(first.bytes - ENOUGH * first.bytes // max(number, ENOUGH), peak - left)
        few = _kind(first) == "shuffle" and not first.of_batches and share < _EXAMPLES
        what = "batches" if first.of_batches else "elements"
        limit = first.holding.limit
        most = f" of at most {limit:,}" if limit and limit >= number else ""
        yield KIND.finding(
            f"{allocator_text(one.allocator)}: {_kind(first)} of tf.data holds {number:,} {what}"
            f"{most}, {size_text(first.bytes)} of {size_text(peak)} "
            f"({one_line(first.holding.name)})",
            {
                **about_signature(signature),
                "stage": first.holding.name,
                "elements": number,
                "limit": limit,
                "count": int(first.rows.size),
                "bytes": first.bytes,
                "saved_bytes": saved,
                "least_saved_bytes": round(_LEAST_SAVED * saved),
                "share": share,
                "peak_bytes": peak,
            },
            _advice(first),
            tuple(_row(some) for some in held),
            severity="info" if few else "",
        )


def _row(held: HeldBuffers) -> dict[str, object]:
    return {
        "stage": held.holding.name,
        "elements": held.holding.number,
        "count": int(held.rows.size),
        "bytes": held.bytes,
    }


_KINDS = {
    "shuffle": "shuffle", "memorycache": "cache", "cache": "cache", "prefetch": "prefetch",
    "parallelinterleave": "interleave", "parallelmap": "map", "mapandbatch": "map and batch",
    "parallelbatch": "batch", "batch": "batch", "paddedbatch": "batch",
}  # fmt: skip


def _kind(held: HeldBuffers) -> str:
    """What a program calls the stage: ``cache`` of ``MemoryCacheImpl``."""
    own = held.holding.kind.lower()
    known = sorted(_KINDS, key=len, reverse=True)
    return next((_KINDS[name] for name in known if own.startswith(name)), one_line(own))


def _advice(held: HeldBuffers) -> str:
    kind = _kind(held)
    if kind == "shuffle" and held.of_batches:
        return (
            "Shuffle single examples and batch after it (dataset.shuffle(n).batch(b)): as many "
            "examples take a fraction of as many batches; or give shuffle a smaller buffer_size."
        )
    if kind == "shuffle":
        return (
            "Give shuffle a smaller buffer_size, or shuffle what is small (names of files, "
            "indices, encoded records) before the map that reads or decodes it."
        )
    if kind == "cache":
        return (
            "Cache before the stage that makes elements large (encoded or uint8 images in place of "
            "resized float ones), or in a file: dataset.cache(filename)."
        )
    if kind == "prefetch":
        return (
            "Prefetch two or three batches (dataset.prefetch(2)), or let tf.data choose "
            "(tf.data.AUTOTUNE, Options.autotune.ram_budget): more only helps where single batches "
            "take very long."
        )
    return "Let fewer elements be made at a time: a smaller num_parallel_calls or cycle_length."
