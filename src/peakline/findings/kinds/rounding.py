"""Allocations take much more memory than was requested."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from peakline.findings.kind import SIGNATURE, Kind, about_signature, columns
from peakline.text import allocator_text, size_text

if TYPE_CHECKING:
    from peakline.findings.context import Findings, MemoryContext

KIND = Kind(
    "rounding",
    __doc__,
    about="memory",
    phrase="allocations are rounded up",
    severity="warning",
    section="peak",
    least=0.15,
    much=0.30,
    columns=columns(
        *SIGNATURE, "scope", "count", "bytes", "peak_bytes", "share", "buffer_bytes",
        saved_bytes="More than was requested",
    ),
    saves="saved_bytes",
)  # fmt: skip

MANY = 16
"""So many buffers of one size are rounded alike; of fewer a free piece that was larger was taken
whole, which another run need not do: for information only, ..."""
ONCE = 0.5
"""... from this share of the peak on: in healthy runs of TensorFlow it is up to a third."""
LEAST = 1 << 20
"""Less than this is not worth a word, ..."""
CAPACITY = 1e-4
"""... nor is less than this share of the device's capacity."""
_ROWS = 10


def find(context: MemoryContext) -> Findings:
    """Of each allocator whose records say what was requested."""
    history = context.history
    if history is None:
        return
    for one in context.allocators:
        result = one.at_peak
        if result is None or not result.peak:
            continue
        waste = result.bytes - result.requested
        whole = int(waste.sum())
        share = whole / result.peak
        if share < KIND.least or whole < max(LEAST, CAPACITY * (one.peak.capacity_bytes or 0)):
            continue
        codes, place = np.unique(result.codes, return_inverse=True)
        totals = np.bincount(place, waste, codes.size)
        counts = np.bincount(place)
        order = np.argsort(-totals, kind="stable").tolist()
        first = history.signatures[int(codes[order[0]])]
        is_alike = counts[order[0]] >= MANY
        if not is_alike and share < ONCE:
            continue
        yield KIND.finding(
            f"{allocator_text(one.allocator)}: {size_text(whole)} of the peak ({share:.0%}) are "
            f"more than was requested, most in {counts[order[0]]:,} x {first.title}",
            {
                **about_signature(first),
                "buffer_bytes": first.bytes,
                "count": int(counts[order[0]]),
                "saved_bytes": whole,
                "share": share,
                "peak_bytes": result.peak,
            },
            "Put many small tensors into few large ones (views of one buffer, stacked weights), "
            "and sizes just below what the allocator rounds to: 512 bytes in PyTorch, 256 in "
            "TensorFlow, whole segments of 2 MiB from 1 MiB on.",
            tuple(
                history.signatures[int(codes[place])].as_row()
                | {
                    "count": int(counts[place]),
                    "bytes": int(result.bytes[result.codes == codes[place]].sum()),
                    "saved_bytes": int(totals[place]),
                }
                for place in order[:_ROWS]
            ),
            severity="" if is_alike else "info",
        )
