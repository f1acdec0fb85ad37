"""Much of the step computes in float64."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import FRAME, Kind, columns
from peakline.findings.steps import COLUMNS, gain_of, where_of
from peakline.timing.frame_work import function_around
from peakline.timing.ops.in_steps import is_float64

if TYPE_CHECKING:
    from peakline.findings.context import Findings
    from peakline.findings.time_context import TimeContext

KIND = Kind(
    "float64_compute",
    __doc__,
    about="time",
    phrase="float64 is computed with",
    severity="warning",
    least=0.15,
    much=0.30,
    section="steps",
    columns=COLUMNS | FRAME | columns("op", "op_type", "data_type", "times_a_step", op_ps="Time"),
    saves="gain_share",
)
_HALF = 0.5
"""In float32 half the bytes are moved, and units of vectors compute twice as many at a time."""
_ROWS = 10


def find(context: TimeContext) -> Findings:
    """At most one, where the profile says of which type ops are."""
    ops = context.ops
    if ops is None or not ops.wall_ps:
        return
    chosen = is_float64(context.profile, ops)
    if not chosen.any():
        return
    whole = ops.self_ps(chosen)
    share = whole / ops.wall_ps
    if share < KIND.least:
        return
    result = ops.by_op(chosen, of_self=True)
    frame = function_around(context.profile, ops.event[chosen])
    where, source = where_of(context, ops, chosen, frame)
    names = ", ".join(dict.fromkeys(name for name, _, _, _ in result[:3]))
    lost = int(_HALF * whole)
    yield KIND.finding(
        f"{share:.0%} of the step time computes in float64: {names}{where}",
        {
            "steps": ops.steps,
            "wall_ps": ops.wall_ps,
            "op": result[0][0],
            "op_type": result[0][1],
            "data_type": "float64",
            **source,
            **gain_of(context.facts, lost / ops.wall_ps, lost * context.facts.lanes),
            "share": share,
        },
        "Convert to float32 where the data come in: NumPy makes float64 by default "
        "(torch.from_numpy(x).float(), tf.cast, jnp.float32; torch.set_default_dtype and "
        "jax_enable_x64 set it for the whole program). Mixed precision saves as much again.",
        tuple(
            {"op": op, "op_type": kind, "times_a_step": round(each, 1), "op_ps": ps}
            for op, kind, ps, each in result[:_ROWS]
        ),
    )
