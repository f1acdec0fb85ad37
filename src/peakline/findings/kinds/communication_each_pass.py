"""Gradients are reduced over all processes in every backward pass of an accumulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from peakline.findings.kind import FRAME, Kind, columns
from peakline.findings.steps import COLUMNS, where_of
from peakline.timing.frame_work import function_of_loop
from peakline.timing.ops.gradient_sync import gradient_sync_of

if TYPE_CHECKING:
    from peakline.findings.context import Findings
    from peakline.findings.time_context import TimeContext

KIND = Kind(
    "communication_each_pass",
    __doc__,
    about="time",
    phrase="gradients are reduced in every micro-batch",
    severity="warning",
    least=0.05,
    section="steps",
    columns=COLUMNS
    | FRAME
    | columns(
        "op", passes="Backward passes per update", times_a_step="Times a step",
        most_gain_share="Would save at most",
    ),
    saves="gain_share",
)  # fmt: skip


def find(context: TimeContext) -> Findings:
    """At most one, of PyTorch's data parallel training."""
    ops = context.ops if context.ops is None or context.ops.side == "host" else None
    if ops is None or not ops.wall_ps:
        return
    result = gradient_sync_of(context.profile, ops)
    if result is None or result.least_ps < KIND.least * ops.wall_ps / 5:
        return
    least, most = result.least_ps / ops.wall_ps, result.most_ps / ops.wall_ps
    frame = function_of_loop(context.profile, result.event)
    where, source = where_of(context, ops, np.isin(ops.event, result.event), frame)
    yield KIND.finding(
        f"gradients are reduced over all processes in each of the {result.passes:,.0f} backward "
        f"passes per optimizer step ({result.op}, {result.times:,.0f} times a step{where}), where "
        f"the last one would do: {least:.0%} to {most:.0%} of the step time",
        {
            "steps": ops.steps,
            "wall_ps": ops.wall_ps,
            "op": result.op,
            "passes": round(result.passes, 1),
            "times_a_step": round(result.times, 1),
            **source,
            "gain_ps": result.least_ps,
            "gain_share": least,
            "most_gain_share": most,
        },
        "Accumulate locally, and reduce with the last micro-batch: run the others within "
        "model.no_sync() (Accelerator.accumulate, set_requires_gradient_sync(False) of FSDP, which "
        "then holds whole gradients).",
    )
