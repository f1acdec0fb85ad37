"""The same small ops run hundreds of times in a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from peakline.findings.kind import FRAME, Kind, columns
from peakline.findings.steps import COLUMNS, where_of
from peakline.text import time_text
from peakline.timing.frame_work import function_around
from peakline.timing.ops.elementwise import in_optimizer
from peakline.timing.ops.in_steps import step_ops_of
from peakline.timing.ops.tiny import in_cell_loops, tiny_ops_of

if TYPE_CHECKING:
    from peakline.arrays import BoolArray
    from peakline.findings.context import Findings
    from peakline.findings.time_context import TimeContext
    from peakline.timing.ops.in_steps import StepOps

KIND = Kind(
    "tiny_ops",
    __doc__,
    about="time",
    phrase="a loop runs small ops over and over",
    severity="warning",
    least=0.30,
    much=0.50,
    section="steps",
    columns=COLUMNS
    | FRAME
    | columns(
        "most_gain_share",
        "op",
        "ops_per_step",
        "median_ps",
        "times_a_step",
        loop_ps="Time in the loops",
    )
    | columns("most_gain_share", loop="Loop", turns="Turns a step"),
    saves="gain_share",
)

MANY = 100
"""Fewer runs in a step are no alarm."""
SURE = 500
"""So many in a step are an alarm; of fewer many healthy models of cells and layers are made."""
_LEAST, _MOST, _LIMIT = 0.2, 1.75, 0.95
"""In pairs with and without such a loop from so much of its share of the recording to so much of it
went of the time of a step, and never all: recording an op takes as long as a small op, and what
takes the place of the loop has its own work.
"""
_WORTH = 0.75
"""Of an optimizer's time at least so much goes to running ops at all, and not to their work."""
_IDLE = 0.25
"""With a device they cost something only where it waits for so much of the steps."""
_OPTIMIZER = 0.25
"""An optimizer takes much of a step from this share on."""
_ROWS = 10
_LOOP = (
    "Work on all items at once: one op over a whole axis in place of a loop over its parts "
    "(a batched product, cumsum, unfold, vmap, tf.vectorized_map; LSTM in place of LSTMCell), "
    "or compile the loop (torch.compile, tf.function with jit_compile, jax.jit with lax.scan)."
)
_COMPILED = (
    "The loop is compiled already: where its turns do not need one another, work on all at once "
    "(vmap, lax.associative_scan, a product outside of the loop); else let a turn do more "
    "(unroll= of lax.scan, larger batches)."
)


def find(context: TimeContext) -> Findings:
    """At most two, with the ops that run most often: of loops, and of an optimizer."""
    facts = context.facts
    if facts.has_device and facts.share("launch_ps", "host_compute_ps", "idle_ps") < _IDLE:
        return
    ops = step_ops_of(context.profile, of_host=True)
    if ops is None or not ops.wall_ps:
        return
    optimizer = in_optimizer(context.profile, ops)
    yield from _optimizer(ops, optimizer)
    result = tiny_ops_of(ops, optimizer, in_cell_loops(context.profile, ops))
    if result is None:
        return
    share = result.loop_ps / ops.wall_ps
    if share < KIND.least:
        return
    frame = function_around(context.profile, result.events)
    where, source = where_of(context, ops, np.isin(ops.event, result.events), frame)
    # What a person wrote are the ops of the forward pass; their gradients run as often.
    written = [name for name, _ in result.ops if not name.startswith("autograd::")]
    names = ", ".join((written or [name for name, _ in result.ops])[:3])
    each, whole = (" a step", "step time") if ops.has_steps else ("", "profile's time")
    # The turns of a loop that is compiled need one another's results, or it would be none.
    is_compiled = bool(ops.is_hlo[np.isin(ops.event, result.events)].all())
    is_much = share >= KIND.much and result.per_step >= SURE and not is_compiled
    least_gain, most_gain = _LEAST * share, min(_MOST * share, _LIMIT)
    what = f"{result.per_step:,.0f} small ops{each} ({names})"
    loop = result.loop
    if loop is not None:
        most = ops.by_op(loop.events)
        longest = ", ".join(name.rpartition("/")[2] for name, _, _, _ in most[:3])
        what = (
            f"{loop.turns:,.0f} turns{each} of the loop {loop.name}, of "
            f"{result.per_step / loop.turns:,.0f} small ops ({longest})"
        )
    yield KIND.finding(
        f"{what}, {time_text(result.median_ps)} each, take {share:.0%} of the "
        f"{whole}{where}; together they would save {least_gain:.0%} to {most_gain:.0%}",
        {
            "steps": ops.steps,
            "wall_ps": ops.wall_ps,
            "op": (written or [result.ops[0][0]])[0],
            "ops_per_step": round(result.per_step, 1),
            "median_ps": result.median_ps,
            "loop_ps": result.loop_ps,
            "loop": loop.name if loop else None,
            "turns": loop.turns if loop else None,
            **source,
            "share": share,
            "gain_ps": int(_LEAST * result.loop_ps),
            "gain_share": least_gain,
            "most_gain_share": most_gain,
        },
        _COMPILED if is_compiled else _LOOP,
        tuple({"op": op, "times_a_step": round(times, 1)} for op, times in result.ops[:_ROWS]),
        severity="warning" if is_much else "info",
    )


def _optimizer(ops: StepOps, inside: BoolArray) -> Findings:
    """An optimizer goes from tensor to tensor with an op for each part of its formula."""
    outer = inside & ops.is_outermost
    per_step = int(outer.sum()) / ops.steps / ops.lanes
    share = ops.covered_ps(outer) / ops.wall_ps
    if share < _OPTIMIZER or per_step < MANY * (1 if ops.has_steps else ops.steps):
        return
    result = ops.by_op(outer)
    names = ", ".join(name for name, _, _, _ in result[:3])
    each, whole = (" a step", "step time") if ops.has_steps else ("", "profile's time")
    yield KIND.finding(
        f"the optimizer's step (Optimizer.step) takes {share:.0%} of the {whole} in "
        f"{per_step:,.0f} ops{each}: {names}",
        {
            "steps": ops.steps,
            "wall_ps": ops.wall_ps,
            "op": result[0][0],
            "ops_per_step": round(per_step, 1),
            "share": share,
            "gain_ps": int(_WORTH * share * ops.wall_ps),
            "gain_share": _WORTH * share,
        },
        "Use one op for all tensors: fused=True or foreach=True of PyTorch's optimizers, "
        "torch._foreach_* in one of your own; or torch.compile its step.",
        tuple({"op": op, "times_a_step": round(times, 1)} for op, _, _, times in result[:_ROWS]),
        severity="info",
    )
