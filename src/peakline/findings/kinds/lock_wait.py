"""The training loop sleeps, or waits for another thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from peakline.findings.kind import FRAME, Kind
from peakline.findings.steps import COLUMNS, about_frame, frame_rows, gain_of
from peakline.trace.calls import Call

if TYPE_CHECKING:
    from peakline.findings.context import Findings
    from peakline.findings.time_context import TimeContext

KIND = Kind(
    "lock_wait",
    __doc__,
    about="time",
    phrase="the loop sleeps or waits for another thread",
    severity="warning",
    least=0.05,
    much=0.20,
    section="steps",
    columns=COLUMNS | FRAME,
    saves="gain_share",
)

_WAITS = (Call.SLEEP, Call.LOCK)


def find(context: TimeContext) -> Findings:
    """At most one, of steps whose Python frames were recorded."""
    idle = context.idle
    if idle is None:
        return
    chosen = np.isin(idle.call, _WAITS) & idle.is_usual & ~idle.is_input
    result = idle.by_function(chosen)
    lost = idle.total(chosen)
    share = lost / idle.threads.wall_ps if idle.threads.wall_ps else 0.0
    if share < KIND.least or not result:
        return
    first = result[0]
    sleeps = first.call == Call.SLEEP
    what = "sleeps" if sleeps else "waits for another thread"
    whole = "step time" if idle.threads.has_steps else "profile's time"
    yield KIND.finding(
        f"{share:.0%} of the {whole} the loop {what}, in {first.frame.title}, which calls "
        f"{first.callee or what}",
        {
            "steps": idle.threads.steps,
            "wall_ps": idle.threads.wall_ps,
            **about_frame(first),
            **gain_of(context.facts, share, lost * context.facts.lanes),
        },
        "Take the sleep out of the loop, or wait for the event itself."
        if sleeps
        else "Hold locks for shorter, give the other thread a queue and do not wait for its answer "
        "in the step, and let only one thread of Python compute (others hold its lock).",
        frame_rows(result),
    )
