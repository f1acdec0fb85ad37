"""torch.compile breaks its graph, and resumes it, several times in a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import FRAME, Kind, columns
from peakline.findings.steps import COLUMNS
from peakline.text import source_text
from peakline.timing.ops.graph_breaks import graph_breaks_of
from peakline.timing.ops.in_steps import step_ops_of

if TYPE_CHECKING:
    from peakline.findings.context import Findings
    from peakline.findings.time_context import TimeContext

KIND = Kind(
    "graph_breaks",
    __doc__,
    about="time",
    phrase="compiled graphs break",
    severity="warning",
    section="steps",
    columns=COLUMNS
    | FRAME
    | columns("op", breaks="Breaks a step", regions="Compiled regions a step"),
    saves="gain_share",
)


def find(context: TimeContext) -> Findings:
    """At most one, of what ``torch.compile`` compiled."""
    ops = step_ops_of(context.profile, of_host=True)
    result = None if ops is None or not ops.wall_ps else graph_breaks_of(context.profile, ops)
    if ops is None or result is None:
        return
    where = ", ".join(
        f"{function} ({source_text(file, line)})" for function, file, line in result.places[:2]
    )
    source = {}
    if result.places:
        function, file, line = result.places[0]
        source = {"function": function, "file": file, "line": line}
    by = f", by {result.op}" if result.op else ""
    most = result.nested_ps / ops.wall_ps
    yield KIND.finding(
        f"torch.compile runs {result.regions:,.0f} graphs a step in place of "
        f"{result.regions - result.per_step:,.0f}: {result.per_step:,.0f} breaks"
        f"{by}{where and f', in {where}'}; up to {most:.0%} of the step time runs after them",
        {
            "steps": ops.steps,
            "wall_ps": ops.wall_ps,
            "op": result.op,
            "breaks": round(result.per_step, 1),
            "regions": round(result.regions, 1),
            **source,
            "gain_ps": 0,
            "gain_share": 0.0,
            "most_gain_share": min(most, 1.0),
        },
        "Move what Python must see out of the compiled function: read values (item, float, print, "
        "a condition on a tensor) after it, or use torch.where and torch.cond; fullgraph=True "
        "raises at the first break, TORCH_LOGS=graph_breaks lists them.",
    )
