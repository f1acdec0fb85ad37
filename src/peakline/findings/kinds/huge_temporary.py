"""One kind of short-lived buffer makes the peak."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from peakline.findings.kind import ORIGIN, SIGNATURE, Kind, about_signature, columns, of_frame
from peakline.findings.program_values import (
    ProgramOfDevices,
    alike,
    each_program,
    evidence_of,
    forms_of,
    rows_of,
    together,
    what_is,
    where_made,
    with_readers,
)
from peakline.memory.peak.optimizers import DENSE_OP, dense_gradients, optimizer_temporaries
from peakline.memory.peak.temporaries import DENSE, materialised
from peakline.text import allocator_text, size_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peakline.findings.context import Findings, MemoryContext
    from peakline.findings.finding import Finding
    from peakline.memory.details import MemoryDetails
    from peakline.memory.savings.answer import Saving

KIND = Kind(
    "huge_temporary",
    __doc__,
    about="memory",
    phrase="one kind of temporary makes the peak",
    severity="warning",
    section="peak",
    columns=columns(
        *SIGNATURE, *ORIGIN, "scope", "bytes", "count", "since_ps", "peak_bytes",
        what="What it is",
        program="Program",
        saved_bytes="Saves",
        least_saved_bytes="Saves at least",
        peak_after_bytes="Peak without it",
    ),
    saves="saved_bytes",
)  # fmt: skip

HUGE = 0.35
"""One kind of temporary makes the peak when the peak would be lower by this share without it."""
HUGE_PROGRAM = 0.5
"""... and so much without what a compiled program takes as a whole, which nothing takes apart."""
HUGE_BYTES = 4 << 20
"""... and that is worth a word only from so many bytes on, ..."""
MOST, MOST_BYTES = 0.5, 2 << 20
"""... or, where it is most of the peak, from so many, ..."""
HUGE_CAPACITY = 1e-4
"""... and from this share of the device's capacity."""
OPTIMIZER = 0.20
"""... and so much without what an optimizer computes for all weights: they, their gradients and
what Adam holds are four times as much as one such list."""
STEP = "what an optimizer computes for all weights at once"

ADVICE = {
    STEP: "Use the fused form of the optimizer, which makes no such lists (fused=True), or the "
    "one that goes from weight to weight (foreach=False); or update each weight as soon as it has "
    "its gradient (Tensor.register_post_accumulate_grad_hook).",
    "the whole attention matrix": "Use fused attention, which never makes it: "
    "scaled_dot_product_attention (PyTorch), jax.nn.dot_product_attention, "
    "keras.layers.MultiHeadAttention with flash attention; or attend in blocks.",
    "one-hot vectors": "Use the indices: sparse cross entropy, a gather (embedding lookup) in "
    "place of a product with one-hot vectors, a segment sum in place of its transpose.",
    "all patches of an image (im2col)": "Use a convolution, or work on some patches at a time.",
    "a dense gradient of an embedding": "Make the gradient sparse (nn.Embedding(sparse=True), "
    "tf.IndexedSlices left as they are), so that only the rows that were used are stored.",
    "a gradient for each example": "Work on some examples at a time (lax.map with batch_size, a "
    "loop over micro-batches), or sum the gradients where only the sum is needed.",
    "a sparse matrix, written out with its zeros": "Work along the entries that there are: a "
    "segment sum over edges (jax.ops.segment_sum, tf.math.unsorted_segment_sum, index_add_), or a "
    "sparse matrix (jax.experimental.sparse.BCOO, tf.sparse, torch.sparse).",
    "rows looked up for each pair of positions": "Multiply with the table of distances, and shift "
    "the products into place (pad, reshape, slice: the skewing of Music Transformer), or add one "
    "number for each distance to the scores.",
    "what is the same for many items, repeated for each": "Compute with it before it is repeated: "
    "a product with what is joined is the sum of a product with each part (two weights in place of "
    "one), and broadcasting adds the smaller one.",
    "a broadcast intermediate": "Compute it in pieces, or in a form that needs no such "
    "intermediate: a matrix product in place of broadcasting (|a-b|^2 = a^2 + b^2 - 2ab, "
    "torch.cdist, einsum), a fused op, a compiler (jit_compile=True, torch.compile).",
}


def find(context: MemoryContext) -> Findings:
    """Of each allocator what an optimizer's step makes, else the first such saving; of compiled
    programs the largest temporaries.
    """
    yield from each_program(context.programs, _of_program)

    for one in context.allocators:
        optimizer = _optimizer(context, one)
        if optimizer is not None:
            yield optimizer
            continue
        for saving in one.savings:
            if saving.kind not in {"temporary", "program"} or not _is_huge(one, saving):
                continue
            first, what = None, ""
            if saving.kind == "temporary" and context.history is not None and one.at_peak:
                heavy = materialised(
                    context.history, one.at_peak, saving.codes, context.op_types(),
                    context.origins, context.op_events,
                )  # fmt: skip
                if heavy is None:
                    continue
                first, what = heavy.first, heavy.what
            yield _finding(context, saving, first, what)
            break
        else:
            yield from _dense(context, one)


def _optimizer(context: MemoryContext, one: MemoryDetails) -> Finding | None:
    """Where the peak is in a step of an optimizer that goes over all weights at once."""
    history = context.history
    if history is None or one.at_peak is None:
        return None
    heavy = optimizer_temporaries(history, one.at_peak, context.origins, context.op_events)
    if heavy is None or not _is_much(one, OPTIMIZER, one.at_peak.peak, heavy.peak_after):
        return None
    before, stack = one.at_peak.peak, heavy.stack
    largest = heavy.rows[int(history.allocated[heavy.rows].argmax())]
    signature = history.signatures[int(history.signatures.codes[largest])]
    made_by = stack.op or signature.op if stack.library is None else stack.library.title
    where = f", called in {stack.program.title}" if stack.program is not None else ""
    saved = before - heavy.peak_after
    return KIND.finding(
        f"{allocator_text(one.allocator)}: without {STEP} ({heavy.rows.size} buffers, "
        f"{size_text(heavy.bytes)}, made by {made_by}{where}), which are freed in the same step of "
        f"the optimizer, the peak would be {size_text(heavy.peak_after)} instead of "
        f"{size_text(before)}",
        {
            **about_signature(signature),
            "what": STEP,
            "count": int(heavy.rows.size),
            "bytes": heavy.bytes,
            "saved_bytes": saved,
            "least_saved_bytes": saved,
            "peak_bytes": before,
            "peak_after_bytes": heavy.peak_after,
            "callee": made_by,
            **of_frame(stack.program),
            **({"path": " > ".join(frame.title for frame in stack.path)} if stack.path else {}),
        },
        ADVICE[STEP],
    )


def _dense(context: MemoryContext, one: MemoryDetails) -> Findings:
    """Gradients of embeddings live into the next step, and are no temporaries of one."""
    history = context.history
    if history is None or one.at_peak is None or context.op_events is None:
        return
    heavy = dense_gradients(history, one.at_peak, context.op_events)
    if heavy is None or not _is_much(one, HUGE, one.at_peak.peak, heavy.peak_after):
        return
    if one.at_peak.peak - heavy.peak_after < HUGE_BYTES:
        return
    largest = heavy.rows[int(history.allocated[heavy.rows].argmax())]
    signature = history.signatures[int(history.signatures.codes[largest])]
    before, count = one.at_peak.peak, int(heavy.rows.size)
    saved = before - heavy.peak_after
    what = f"{count} dense gradients of embeddings" if count > 1 else DENSE
    yield KIND.finding(
        f"{allocator_text(one.allocator)}: without {what} ({DENSE_OP}, "
        f"{size_text(heavy.bytes)}: rows of the whole table, few of them used), the peak would be "
        f"{size_text(heavy.peak_after)} instead of {size_text(before)}",
        {
            **about_signature(signature),
            "what": DENSE,
            "count": count,
            "bytes": heavy.bytes,
            "saved_bytes": saved,
            "least_saved_bytes": saved,
            "peak_bytes": before,
            "peak_after_bytes": heavy.peak_after,
        },
        ADVICE[DENSE],
    )


def _finding(context: MemoryContext, saving: Saving, first: int | None, what: str) -> Finding:
    before = saving.bytes + saving.peak_after
    # The op that made the first and largest of them is the one to change.
    row: Mapping[str, object] = saving.rows[0]
    by = ""
    if first is not None and context.history is not None:
        signatures = context.history.signatures
        one = signatures[int(signatures.codes[first])]
        row = {**one.as_row(), "bytes": saving.rows[0]["bytes"]}
        by = f", first made by {one.op}" if one.op and one.op not in saving.title else ""
    are = "are" if sum(int(str(one["count"])) for one in saving.rows) > 1 else "is"
    which = f" ({what}{by})" if what else ""
    return KIND.finding(
        f"{allocator_text(saving.allocator)}: without {saving.title}{which}, which {are} "
        f"freed in the same step, the peak would be {size_text(saving.peak_after)} instead of "
        f"{size_text(before)}",
        {
            "allocator": saving.allocator,
            **{name: row[name] for name in SIGNATURE[1:]},
            "what": what,
            "bytes": row["bytes"],
            "saved_bytes": saving.bytes,
            "least_saved_bytes": saving.lower_bytes,
            "peak_bytes": before,
            "peak_after_bytes": saving.peak_after,
        },
        ADVICE.get(what, saving.suggestion),
        saving.rows,
    )


def _of_program(one: ProgramOfDevices) -> Findings:
    """The first of its large temporaries that is none that a model needs."""
    need, live = one.need, one.live
    for alike_forms in alike(forms_of(live, "temporary")):
        form = alike_forms
        if form.bytes < max(HUGE * need.bytes, HUGE_BYTES):
            return
        if not any(value.op_name for value in form.values):
            form = replace(form, values=with_readers(one.profile, need.program, form.values))
        what = what_is(form, live)
        if not what:
            continue
        values = together(form, what, live)
        first, size = form.first, sum(value.bytes for value in values)
        same = sum(value.shape == form.shape for value in values)
        count = f"{same} x " if same > 1 else ""
        more = len(values) - same
        others = f" and {more} of other shapes" if more else ""
        yield KIND.finding(
            f"{need.program.label}: {count}{form.shape} of {first.op_name or first.instruction} "
            f"({what}){others} hold {size_text(size)} of the {size_text(need.bytes)} that the "
            f"program needs{where_made(first)}",
            {
                **evidence_of(need, first),
                "what": what,
                "bytes": size,
                "saved_bytes": size,
                # One of them may be there at a time.
                "least_saved_bytes": size - first.bytes,
                "peak_after_bytes": need.bytes - size,
            },
            ADVICE[what],
            rows_of(values),
        )
        return


def _is_huge(one: MemoryDetails, saving: Saving) -> bool:
    share = HUGE if saving.kind == "temporary" else HUGE_PROGRAM
    return _is_much(one, share, saving.bytes + saving.peak_after, saving.peak_after)


def _is_much(one: MemoryDetails, share: float, peak: int, after: int) -> bool:
    capacity = one.peak.capacity_bytes or 0
    least = MOST_BYTES if peak - after > MOST * peak else HUGE_BYTES
    return peak - after >= max(share * peak, least, HUGE_CAPACITY * capacity)
