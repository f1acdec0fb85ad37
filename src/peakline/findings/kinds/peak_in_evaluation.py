"""Memory is fullest in evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import Kind
from peakline.findings.lone_peaks import COLUMNS, findings_of, of_programs
from peakline.memory.peak.lone import EVALUATION

if TYPE_CHECKING:
    from peakline.findings.context import Findings, MemoryContext

KIND = Kind(
    "peak_in_evaluation",
    __doc__,
    about="memory",
    phrase="the peak is in evaluation",
    severity="warning",
    section="peak",
    columns=COLUMNS,
    saves="saved_bytes",
)


def find(context: MemoryContext) -> Findings:
    """Of each allocator whose steps are known."""
    yield from of_programs(context, KIND, in_evaluation=True)
    yield from findings_of(
        context,
        KIND,
        EVALUATION,
        "Evaluate in smaller batches and without gradients (torch.inference_mode, no "
        "tf.GradientTape, jit without value_and_grad), and reduce outputs batch by batch in "
        "place of joining them.",
    )
