"""The loop reads a value in every step, and the device waits for what the host does then."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.frames import FRAME, about_frame
from peakline.findings.kind import Kind, columns
from peakline.findings.steps import COLUMNS, gain_of

if TYPE_CHECKING:
    from peakline.findings.context import Findings, TimeContext

KIND = Kind(
    "host_sync",
    __doc__,
    about="time",
    phrase="a value is read in every step",
    severity="warning",
    least=0.10,
    much=0.25,
    section="steps",
    columns=COLUMNS
    | FRAME
    | columns("callee", reads_per_step="Reads a step", idle_ps="Idle after"),
    saves="gain_share",
)

ALWAYS = 0.8
"""It is read in every step when it is in this share of the steps."""


def find(context: TimeContext) -> Findings:
    """At most one, of steps whose host thread shows the reads and whose work runs elsewhere."""
    from peakline.timing.host_reads import reads_of

    idle = context.idle
    if idle is None or not idle.threads.has_steps:
        return
    reads = reads_of(idle)
    if reads is None or reads.in_steps < ALWAYS:
        return
    lost = reads.idle_ps
    share = lost / idle.threads.wall_ps
    if share < KIND.least:
        return
    where = f", in {reads.frame.title}" if reads.frame is not None else ""
    yield KIND.finding(
        f"{share:.0%} of the step time the device has nothing to do after {reads.callee} waited "
        f"for it{where}: no other work was in flight",
        {
            "steps": idle.threads.steps,
            "wall_ps": idle.threads.wall_ps,
            "reads_per_step": round(reads.per_step, 1),
            "idle_ps": lost,
            "callee": reads.callee,
            **({} if reads.work is None else about_frame(reads.work)),
            **gain_of(context.facts, share, lost * context.facts.lanes),
        },
        "Start the next step before the value of this one is read: read losses every hundredth "
        "step, or those of the step before, and let metrics add up on the device.",
        # A program that waits without reading anything measures its steps.
        severity="info" if "block_until_ready" in reads.callee else "",
    )
