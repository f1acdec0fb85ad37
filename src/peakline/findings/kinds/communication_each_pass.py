"""Gradients are reduced over all processes in every backward pass of an accumulation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from peakline.findings.kind import FRAME, Kind, columns
from peakline.findings.steps import COLUMNS, where_of
from peakline.hlo.loop_reductions import loop_reductions
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
    """At most one: of PyTorch's data parallel training, or of a loop in a compiled program."""
    yield from _of_loop(context)
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


def _of_loop(context: TimeContext) -> Findings:
    """Where a program sums over devices in each turn what it could in the last (XLA)."""
    ops = context.ops
    if ops is None or not ops.wall_ps or not ops.is_hlo.any():
        return
    reductions = loop_reductions(context.profile)
    if not reductions:
        return
    names = {one.name for one in reductions} & {*ops.trace.name.values}
    mine = np.isin(ops.trace.name.codes[ops.event], [*map(ops.trace.name.code_of, names)])
    mine &= ops.is_hlo
    if not mine.any():
        return
    first = next(one for one in reductions if one.name in names)
    spare = 1 - 1 / first.turns if first.turns else 0.5
    # Threads of one host are its devices: while one waits for the others it takes no processor.
    most_ps = round(spare * ops.covered_ps(mine))
    least_ps = min(round(spare * ops.alone_ps(mine)), most_ps)
    least, most = least_ps / ops.wall_ps, most_ps / ops.wall_ps
    if most < KIND.least:
        return
    where, source = where_of(context, ops, mine, None)
    times = int(mine.sum()) / ops.steps
    turns = f"each of the {first.turns:,} turns" if first.turns else "each turn"
    op = first.op_name.rpartition("/")[2] or first.name
    yield KIND.finding(
        f"gradients are reduced over all devices in {turns} of a loop ({op}, {times:,.0f} times a "
        f"step{where}), where once after it would do: {least:.0%} to {most:.0%} of the step time",
        {
            "steps": ops.steps,
            "wall_ps": ops.wall_ps,
            "op": first.op_name or first.name,
            "passes": first.turns,
            "times_a_step": round(times, 1),
            **source,
            "gain_ps": least_ps,
            "gain_share": least,
            "most_gain_share": most,
        },
        "Add up the gradients of each device in the loop, and reduce their sum once after it "
        "(jax.lax.psum behind lax.scan; with shard_map let what the loop carries vary over the "
        "axis).",
    )
