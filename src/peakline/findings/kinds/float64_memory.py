"""Much of the peak is float64."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from peakline.findings.kind import ORIGIN, SIGNATURE, Kind, about_signature, columns
from peakline.findings.program_values import (
    ProgramOfDevices,
    each_program,
    evidence_of,
    rows_of,
    where_made,
)
from peakline.memory.origins.element_types import float64_rows
from peakline.text import allocator_text, size_text

if TYPE_CHECKING:
    from peakline.findings.context import Findings, MemoryContext

KIND = Kind(
    "float64_memory",
    __doc__,
    about="memory",
    phrase="buffers are float64",
    severity="warning",
    section="peak",
    columns=columns(
        *SIGNATURE, *ORIGIN, "scope", "buffer_bytes", "count", "bytes", "peak_bytes",
        wide_bytes="In float64",
        saved_bytes="Saves",
        least_saved_bytes="Saves at least",
        program="Program",
    ),
    least=0.20,
    saves="saved_bytes",
)  # fmt: skip

_ROWS = 10
ADVICE = (
    "float32 takes half: convert where the data come in. NumPy makes float64 by default "
    "(torch.from_numpy(x).float(), tf.cast(x, tf.float32), jnp.float32)."
)


def find(context: MemoryContext) -> Findings:
    """At most one of each allocator, where the file says of which type buffers are."""
    yield from each_program(context.programs, _of_program)
    history = context.history
    if history is None:
        return
    for one in context.allocators:
        result = one.at_peak
        if result is None or not result.peak:
            continue
        wide = float64_rows(history, result.rows, context.op_events)
        size = int(result.bytes[wide].sum())
        if size < KIND.least * result.peak:
            continue
        codes, totals = result.by_code(wide)
        order = np.argsort(-totals, kind="stable").tolist()
        first = history.signatures[int(codes[order[0]])]
        others = len(order) - 1
        yield KIND.finding(
            f"{allocator_text(one.allocator)}: {size_text(size)} of the peak are float64: "
            f"{first.title}" + (f" and {others} more" if others else ""),
            {
                **about_signature(first),
                "buffer_bytes": first.bytes,
                "wide_bytes": size,
                "saved_bytes": size // 2,
                # While one is converted both of it are there.
                "least_saved_bytes": (size - int(result.bytes[wide].max())) // 2,
                "peak_bytes": result.peak,
            },
            ADVICE,
            tuple(
                history.signatures[int(codes[place])].as_row()
                | {
                    "bytes": int(totals[place]),
                    "count": int(np.count_nonzero(wide & (result.codes == codes[place]))),
                }
                for place in order[:_ROWS]
            ),
        )


def _of_program(one: ProgramOfDevices) -> Findings:
    need = one.need
    wide = [value for value in one.live if value.shape.startswith(("f64[", "c128["))]
    size = sum(value.bytes for value in wide)
    if not wide or size < KIND.least * need.bytes:
        return
    first = wide[0]
    yield KIND.finding(
        f"{need.program.label}: {size_text(size)} of the {size_text(need.bytes)} that the program "
        f"needs are float64: {first.shape} of {first.op_name or first.instruction}"
        f"{where_made(first)}",
        {**evidence_of(need, first), "wide_bytes": size, "saved_bytes": size // 2},
        ADVICE,
        rows_of(wide),
    )
