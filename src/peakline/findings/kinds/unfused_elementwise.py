"""Chains of element-wise ops run one by one, where one op or a compiler would do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import FRAME, Kind, columns, of_frame
from peakline.findings.steps import COLUMNS, gain_of
from peakline.timing.frame_work import function_around
from peakline.timing.ops.elementwise import chains_of

if TYPE_CHECKING:
    from peakline.findings.context import Findings
    from peakline.findings.time_context import TimeContext

KIND = Kind(
    "unfused_elementwise",
    __doc__,
    about="time",
    phrase="element-wise ops run one by one",
    severity="warning",
    least=0.20,
    much=0.40,
    section="steps",
    columns=COLUMNS
    | FRAME
    | columns("op", "op_type", "shape", "times_a_step", op_ps="Time", length="Ops in a chain"),
    saves="gain_share",
)
_ROWS = 10


def find(context: TimeContext) -> Findings:
    """At most one, of ops that no compiler has fused."""
    ops = context.ops
    if ops is None or not ops.wall_ps:
        return
    chains = chains_of(context.profile, ops)
    if chains is None:
        return
    whole = ops.alone_ps(chains.chosen)
    share = whole / ops.wall_ps
    if share < KIND.least:
        return
    result = ops.by_op(chains.chosen)
    frame = function_around(context.profile, ops.event[chains.chosen])
    where = "" if frame is None else f", in {frame.title}"
    where = where or (", in the optimizer" if chains.is_optimizer else "")
    shape = f" over {chains.shape}" if chains.shape else ""
    names = ", ".join(dict.fromkeys(name for name, _, _, _ in result[:3]))
    # Where shapes or functions are recorded the ops are known to work on the same numbers.
    is_sure = not chains.is_optimizer and bool(chains.shape or frame)
    # One pass over memory is left of as many as a chain has ops.
    lost = whole * (chains.length - 1) // chains.length
    yield KIND.finding(
        f"{share:.0%} of the step time goes to chains of element-wise ops{shape}, {chains.length} "
        f"in a row: {names}{where}",
        {
            "steps": ops.steps,
            "wall_ps": ops.wall_ps,
            "op": result[0][0],
            "op_type": result[0][1],
            "shape": chains.shape,
            "length": chains.length,
            **of_frame(frame),
            **gain_of(context.facts, lost / ops.wall_ps, lost * context.facts.lanes),
            "share": share,
        },
        "Use the fused op (fused=True of PyTorch's optimizers, foreach=True)."
        if chains.is_optimizer
        else "Use the op that does it all (gelu, silu, layer_norm, addcmul), write in place, or let"
        " "
        "a compiler fuse them: torch.compile, tf.function(jit_compile=True), jax.jit.",
        tuple(
            {"op": op, "op_type": kind, "times_a_step": round(each, 1), "op_ps": ps}
            for op, kind, ps, each in result[:_ROWS]
        ),
        severity="warning" if is_sure and share >= KIND.much else "info",
    )
