"""What findings say of the functions of a program: the evidence, and a row for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import columns

if TYPE_CHECKING:
    from peakline.trace.frames import Frame

FRAME = columns(
    "function", "file", "line", "module", "path",
    does="What it does", callee="What it calls", calls_per_step="Calls per step",
    function_ps="Time",
)  # fmt: skip


def of_frame(frame: Frame | None) -> dict[str, object]:
    """The columns that say which function it is, empty where none is known."""
    if frame is None:
        return {}
    return {"function": frame.function, "file": frame.file, "line": frame.line}
