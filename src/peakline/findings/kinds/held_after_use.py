"""Buffers are held until their successors are made, so that both are in memory at the peak."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from peakline.findings.kind import SIGNATURE, Kind, columns
from peakline.text import allocator_text, size_text

if TYPE_CHECKING:
    from peakline.findings.context import Findings, MemoryContext
    from peakline.memory.details import MemoryDetails
    from peakline.memory.savings.answer import Saving

KIND = Kind(
    "held_after_use",
    __doc__,
    about="memory",
    phrase="old buffers are held when new ones are made",
    severity="warning",
    section="peak",
    least=0.20,
    much=0.35,
    columns=columns(
        *SIGNATURE, "scope", "count", "bytes", "since_ps", "peak_bytes", "share",
        saved_bytes="Saves",
    ),
    saves="saved_bytes",
)  # fmt: skip

LEAST = 1 << 20
"""Less than this is not worth a word."""


def find(context: MemoryContext) -> Findings:
    """Of each allocator the buffers of an earlier step that live when new ones were made."""
    for one in context.allocators:
        if one.growth is None or one.growth.one_pass is not None:
            continue  # nothing says that a later one takes the place of an earlier
        for saving in one.savings:
            peak = saving.bytes + saving.peak_after
            share = saving.bytes / peak if peak else 0.0
            if saving.kind != "older_copy" or share < KIND.least or saving.bytes < LEAST:
                continue
            if _is_state(context, one, saving):
                continue
            row = saving.rows[0]
            yield KIND.finding(
                f"{allocator_text(one.allocator)}: {saving.title} live at the peak, older ones "
                f"beside the newest: without them it would be {size_text(saving.peak_after)} "
                f"instead of {size_text(peak)}",
                {
                    "allocator": one.allocator,
                    **{name: row[name] for name in SIGNATURE[1:]},
                    "count": row["count"],
                    "saved_bytes": saving.bytes,
                    "share": share,
                    "peak_bytes": peak,
                },
                saving.suggestion,
                saving.rows,
            )
            break


def _is_state(context: MemoryContext, one: MemoryDetails, saving: Saving) -> bool:
    """Whether an optimizer made them: that has findings of its own."""
    if context.origins is None or one.at_peak is None:
        return False
    rows = one.at_peak.rows[np.isin(one.at_peak.codes, saving.codes)]
    return any(stack.is_optimizer for stack in context.origins.of(rows))
