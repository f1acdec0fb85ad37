"""Buffers of one kind make much of the peak, and need not be there at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import ORIGIN, SIGNATURE, Kind, columns
from peakline.memory.fit.answer import SCARCE
from peakline.text import allocator_text, size_text

if TYPE_CHECKING:
    from peakline.findings.context import Findings, MemoryContext
    from peakline.memory.details import MemoryDetails
    from peakline.memory.savings.answer import Saving

KIND = Kind(
    "peak_saving",
    __doc__,
    about="memory",
    phrase="one saving lowers the peak most",
    severity="info",
    section="peak",
    least=0.40,
    columns=columns(
        *SIGNATURE, *ORIGIN, "scope", "count", "bytes", "since_ps", "peak_bytes", "share",
        how="How", saved_bytes="Saves", least_saved_bytes="Saves at least",
        peak_after_bytes="Peak without it",
    ),
    saves="saved_bytes",
)  # fmt: skip

_SURE = 0.5
"""So much of what is saved is sure to come true."""
LEAST_BYTES = 4 << 20
_KINDS = frozenset(("temporary", "recompute", "program"))
"""Other savings (half the batch, another device) any program has."""


def find(context: MemoryContext) -> Findings:
    """Of each allocator the saving of the savings page that lowers the peak most, where memory may
    be scarce; not where a finding says what it holds for nothing.
    """
    for one in context.allocators:
        saving = largest_saving(one)
        if saving is not None:
            row = saving.rows[0]
            full = one.peak.peak_bytes
            yield KIND.finding(
                f"{allocator_text(one.allocator)}: {saving.title} make the peak: without them it "
                f"would be {size_text(saving.peak_after)} instead of {size_text(full)}",
                {
                    "allocator": one.allocator,
                    **{name: row[name] for name in SIGNATURE[1:] if name in row},
                    "how": saving.kind,
                    "count": row["count"],
                    "saved_bytes": saving.bytes,
                    "least_saved_bytes": saving.lower_bytes,
                    "peak_after_bytes": saving.peak_after,
                    "share": saving.bytes / max(full, 1),
                    "peak_bytes": full,
                },
                saving.suggestion,
            )


def largest_saving(one: MemoryDetails) -> Saving | None:
    """The largest saving of an allocator, where it is worth a finding."""
    full = one.peak.peak_bytes
    least = max(KIND.least * full, LEAST_BYTES)
    savings = [
        saving
        for saving in one.savings
        if saving.kind in _KINDS and saving.bytes >= least and saving.rows
    ]
    best = max(savings, key=lambda saving: saving.bytes, default=None)
    if best is None or best.lower_bytes < _SURE * best.bytes:
        return None
    # Where nothing says how much there is, it may be too little.
    return best if SCARCE * (one.peak.capacity_bytes or 0) <= full else None
