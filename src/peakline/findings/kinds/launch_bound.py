"""The device waits for one piece of work after the other, each launched by the host."""

import numpy as np

from peakline.findings.context import Findings
from peakline.findings.kind import Kind, columns
from peakline.findings.steps import COLUMNS, evidence_of, rows_by_step
from peakline.findings.time_context import TimeContext
from peakline.timing.launches.gaps import launching_ps

# Shares of the step time from which launching is said, and is a warning. XProf calls 3 % moderate
# and 15 % high; what is under a twentieth nobody would rewrite a program for.
KIND = Kind(
    "launch_bound",
    __doc__,
    about="time",
    phrase="the device waits for its next work to be launched",
    severity="warning",
    least=0.05,
    much=0.15,
    section="steps",
    columns=COLUMNS | columns("launch_ps", "gaps_per_step", "gaps_ps", "launch_wait_ps", "gaps"),
    saves="gain_share",
)


def find(context: TimeContext) -> Findings:
    """At most one, of steps with a device."""
    facts = context.facts
    if not facts.has_device or not facts.wall_ps:
        return
    gaps = context.gaps
    lost = np.maximum(launching_ps(facts, gaps) - context.first_use_ps, 0)
    share = int(lost.sum()) / facts.wall_ps
    if share < KIND.least:
        return
    each = int(gaps.count.sum()) / facts.rows
    often = f", {each:.0f} times a step" if each >= 1 else ""
    numbers = {"gaps_per_step": each, "gaps_ps": int(gaps.ps.sum()) // facts.lanes}
    yield KIND.finding(
        f"{share:.0%} of the step time the device waits for its next work to be launched{often}",
        evidence_of(facts, share, int(lost.sum()), "launch_ps") | numbers,
        "Launch less often and more at a time: compile the step as one program (tf.function, "
        "jax.jit, torch.compile), fuse small ops, use CUDA graphs or XLA's command buffers, or "
        "make the batch larger.",
        rows_by_step(facts, lost, launch_wait_ps=lost, gaps=gaps.count),
    )
