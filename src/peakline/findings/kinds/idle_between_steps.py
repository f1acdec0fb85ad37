"""The device does nothing between two steps; without a device, no op runs between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from peakline.findings.kind import Kind, columns
from peakline.findings.steps import COLUMNS, gain_of, rows_by_step
from peakline.text import time_text
from peakline.timing.launches.gaps import runs_between, stalls_of

if TYPE_CHECKING:
    from peakline.arrays import AnyArray
    from peakline.findings.context import Findings
    from peakline.findings.time_context import TimeContext
    from peakline.timing.steps.facts import StepFacts

# The device does nothing between two steps, as a share of the time from step to step: XProf's
# bounds for what it cannot name are 3 % and 15 %.
KIND = Kind(
    "idle_between_steps",
    __doc__,
    about="time",
    phrase="nothing runs between the steps",
    severity="warning",
    least=0.05,
    much=0.15,
    section="steps",
    columns=COLUMNS
    | columns("gap_ps", "median_gap_ps", "longest_gap_ps", "stalls", runs="What runs there")
    | columns("idle_from_ps", "idle_before_ps"),
    saves="gain_share",
)

HOST_BETWEEN = 0.25
"""Without a device the program may do anything between the steps it marks; said where it is much
of the time and nothing is seen to run, for information only."""

_STALLS = 3


def find(context: TimeContext) -> Findings:
    """At most one; waiting for input counts as that."""
    facts = context.facts
    if facts.count < 2 or not facts.period_ps:
        return
    gaps = context.between.nothing
    gap = int(gaps.sum())
    share = gap / facts.period_ps
    if share < (KIND.least if facts.has_device else HOST_BETWEEN):
        return
    usual = int(np.median(gaps[facts.number > 0]))
    stalls = stalls_of(facts, gaps, usual)
    runs = runs_between(context.profile, facts)
    beside = f"; what runs there: {', '.join(runs)}" if runs else ""
    who = "the device is idle" if facts.has_device else "no op runs"
    yield KIND.finding(
        f"{who} between the steps for {share:.0%} of the time: "
        f"{_how(facts, gaps, usual, stalls)}{beside}",
        {
            "steps": facts.count,
            "devices": len(facts.devices),
            "gap_ps": gap // facts.lanes,
            "median_gap_ps": usual,
            "longest_gap_ps": int(gaps.max()),
            "stalls": int(stalls.size),
            "runs": runs,
            **gain_of(facts, share, gap),
        },
        "Move what runs between the steps off the training loop: write checkpoints and logs on "
        "another thread, fetch the next batch while the device computes, and do not wait for a "
        "step's result before the next one is launched."
        if facts.has_device
        else "Look for what the program waits for between two steps, or mark it as part of them.",
        rows_by_step(
            facts,
            gaps,
            idle_from_ps=facts.part("start_ps") - facts.part("gap_before_ps"),
            idle_before_ps=gaps,
        ),
        severity="" if facts.has_device else "info",
    )


def _how(facts: StepFacts, gaps: AnyArray, usual: int, stalls: AnyArray) -> str:
    """The long stalls by when they began, where a few make most of it."""
    if not stalls.size:
        return f"{time_text(usual)} each (median), {time_text(int(gaps.max()))} at most"
    begin = facts.part("start_ps") - facts.part("gap_before_ps")
    some = ", ".join(
        f"{time_text(int(gaps[row]))} at {time_text(int(begin[row]))}"
        for row in stalls[:_STALLS].tolist()
    )
    some += ", ..." if stalls.size > _STALLS else ""
    long = "1 long stall" if stalls.size == 1 else f"{stalls.size} long stalls"
    return f"{long} ({some}), else {time_text(usual)} each (median)"
