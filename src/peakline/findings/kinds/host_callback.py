"""A compiled program calls back into Python, and waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import FRAME, Kind, columns
from peakline.findings.steps import COLUMNS, gain_of, where_of
from peakline.timing.frame_work import function_inside
from peakline.trace.work_classes import Work

if TYPE_CHECKING:
    from peakline.findings.context import Findings
    from peakline.findings.time_context import TimeContext

KIND = Kind(
    "host_callback",
    __doc__,
    about="time",
    phrase="the program calls back into Python",
    severity="warning",
    least=0.05,
    much=0.20,
    section="steps",
    columns=COLUMNS | FRAME | columns("op", "op_type", times_a_step="Times a step", op_ps="Time"),
    saves="gain_share",
)
_ROWS = 10


def find(context: TimeContext) -> Findings:
    """At most one, with the ops that call back."""
    ops = context.ops
    if ops is None or not ops.wall_ps:
        return
    chosen = (ops.work == Work.CALLBACK) & ~ops.is_inner
    lost = ops.alone_ps(chosen)
    share = lost / ops.wall_ps
    if share < KIND.least:
        return
    result = ops.by_op(chosen)
    name, op_type, _, times = result[0]
    frame = function_inside(context.profile, ops.event[chosen])
    where, source = where_of(context, ops, chosen, frame)
    if frame is not None:
        where = f", which runs {frame.title}"
    whole = "step time" if ops.has_steps else "profile's time"
    yield KIND.finding(
        f"{share:.0%} of the {whole} goes to calls from the program back into Python: {name} "
        f"({times:,.0f} times a step){where}",
        {
            "steps": ops.steps,
            "wall_ps": ops.wall_ps,
            "op": name,
            "op_type": op_type,
            "times_a_step": round(times, 1),
            **source,
            **gain_of(context.facts, share, lost * context.facts.lanes),
        },
        "Write what the callback does in ops of the framework; call back every hundredth step "
        "(lax.cond, tf.cond), with small values; or return the values and log them outside.",
        tuple(
            {"op": op, "op_type": kind, "times_a_step": round(each, 1), "op_ps": whole_ps}
            for op, kind, whole_ps, each in result[:_ROWS]
        ),
    )
