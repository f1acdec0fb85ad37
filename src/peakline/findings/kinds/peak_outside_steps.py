"""Memory is fullest outside of the steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import Kind
from peakline.findings.lone_peaks import COLUMNS, findings_of
from peakline.memory.peak.lone import OUTSIDE

if TYPE_CHECKING:
    from peakline.findings.context import Findings, MemoryContext

KIND = Kind(
    "peak_outside_steps",
    __doc__,
    about="memory",
    phrase="the peak is outside of the steps",
    severity="warning",
    section="peak",
    columns=COLUMNS,
    saves="saved_bytes",
)


def find(context: MemoryContext) -> Findings:
    """Of each allocator whose steps are known."""
    yield from findings_of(
        context,
        KIND,
        OUTSIDE,
        "Make the data and the weights piece by piece, in the type in which they stay, and "
        "free what only the preparation needs before the first step (a dataset in place of "
        "one large constant, generators, del).",
    )
