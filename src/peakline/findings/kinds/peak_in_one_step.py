"""One step of many needs much more memory than the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import Kind
from peakline.findings.lone_peaks import COLUMNS, findings_of, of_programs
from peakline.memory.peak.lone import ONE_STEP

if TYPE_CHECKING:
    from peakline.findings.context import Findings, MemoryContext

KIND = Kind(
    "peak_in_one_step",
    __doc__,
    about="memory",
    phrase="one step needs more than the others",
    severity="warning",
    section="peak",
    columns=COLUMNS,
    saves="saved_bytes",
)


def find(context: MemoryContext) -> Findings:
    """Of each allocator whose steps are known."""
    yield from of_programs(context, KIND, in_evaluation=False)
    yield from findings_of(
        context,
        KIND,
        ONE_STEP,
        "Look for what only this step does (a longer batch, an evaluation, a checkpoint, a "
        "first compilation): bound the length of a batch, or do it in pieces.",
    )
