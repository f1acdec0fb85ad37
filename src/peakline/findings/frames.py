"""What findings say of the functions of a program: the evidence, and a row for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peakline.arrays import BoolArray
    from peakline.findings.context import TimeContext
    from peakline.timing.frame_work import FrameWork
    from peakline.timing.step_ops import StepOps
    from peakline.trace.frames import Frame

ROWS = 10
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


def about_frame(work: FrameWork) -> dict[str, object]:
    """Which function, what it does, and how long."""
    from peakline.trace.calls import WORDS

    return {
        **of_frame(work.frame),
        "does": WORDS[work.call],
        "callee": work.callee,
        "calls_per_step": round(work.calls, 1),
        "function_ps": work.ps,
    }


def frame_rows(found: Sequence[FrameWork]) -> tuple[dict[str, object], ...]:
    """The functions with most time."""
    return tuple({**about_frame(one), "share": one.share} for one in found[:ROWS])


def where_of(
    context: TimeContext, ops: StepOps, chosen: BoolArray, frame: Frame | None
) -> tuple[str, dict[str, object]]:
    """What a title says of where ops come from, and its evidence: the function around them, else
    the line of the program that their instructions come from.
    """
    from peakline.text import source_text
    from peakline.timing.op_sources import source_of

    if frame is not None:
        return f", in {frame.title}", of_frame(frame)
    file, line = source_of(context.profile, ops, chosen)
    if not file:
        return "", {}
    return f", from {source_text(file, line)}", {"file": file, "line": line}
