"""All weights are copied in every step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import FRAME, Kind, columns, of_frame
from peakline.findings.steps import COLUMNS
from peakline.timing.ops.in_steps import step_ops_of
from peakline.timing.ops.model_copies import model_copies_of

if TYPE_CHECKING:
    from peakline.findings.context import Findings
    from peakline.findings.time_context import TimeContext

KIND = Kind(
    "model_copied",
    __doc__,
    about="time",
    phrase="all weights are copied in every step",
    severity="warning",
    least=0.03,
    section="steps",
    columns=COLUMNS
    | FRAME
    | columns(
        "op", times_a_step="Times a step", weights="Weights",
        most_gain_share="Would save at most",
    ),
    saves="gain_share",
)  # fmt: skip


def find(context: TimeContext) -> Findings:
    """At most one, of a loop of PyTorch."""
    ops = step_ops_of(context.profile, of_host=True)
    result = None if ops is None or not ops.wall_ps else model_copies_of(context.profile, ops)
    if ops is None or result is None or result.most_ps < KIND.least * ops.wall_ps:
        return
    least, most = result.least_ps / ops.wall_ps, result.most_ps / ops.wall_ps
    where = "" if result.function is None else f", in {result.function.title}"
    takes = f"{least:.0%} to {most:.0%}" if f"{least:.0%}" != f"{most:.0%}" else f"{least:.0%}"
    yield KIND.finding(
        f"all weights are copied in every step ({result.op} {result.per_step:,.0f} times, for "
        f"{result.weights:,.0f} weights that learn{where}): {takes} of the step time, with what is "
        "done with the copies",
        {
            "steps": ops.steps,
            "wall_ps": ops.wall_ps,
            "op": result.op,
            "times_a_step": round(result.per_step, 1),
            "weights": round(result.weights),
            **of_frame(result.function),
            "gain_ps": result.least_ps,
            "gain_share": least,
            "most_gain_share": most,
        },
        "Average in place (torch._foreach_lerp_, torch.optim.swa_utils.AveragedModel), from the "
        "weights themselves and not from a copy of them; copy for a checkpoint only every so many "
        "steps, to the host.",
    )
