"""A model is loaded, or built, again in each step or for each request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.findings.kind import FRAME, Kind, columns, of_frame
from peakline.findings.steps import COLUMNS
from peakline.timing.model_loads import model_loads_of

if TYPE_CHECKING:
    from peakline.findings.context import Findings
    from peakline.findings.time_context import TimeContext

KIND = Kind(
    "model_loaded",
    __doc__,
    about="time",
    phrase="a model is loaded in every step",
    severity="warning",
    least=0.05,
    section="steps",
    columns=COLUMNS | FRAME | columns("most_gain_share", times_a_step="Times a step"),
    saves="gain_share",
)

_LEAST_OF, _MOST_OF, _LIMIT = 0.8, 1.3, 0.99
"""In pairs so much of the time went, or nearly all that the function takes: what follows reads new
weights for the first time, and the old ones are given back."""


def find(context: TimeContext) -> Findings:
    """At most one, of PyTorch, where frames of Python were recorded."""
    result = model_loads_of(context.profile, context.facts.main)
    if result is None or result.ps < KIND.least * result.wall_ps:
        return
    share = result.ps / result.wall_ps
    least, most = (
        _LEAST_OF * share,
        min(max(_MOST_OF * share, result.whole_ps / result.wall_ps), _LIMIT),
    )
    where = "" if result.function is None else f", in {result.function.title}"
    does = "loaded from a file" if result.is_read else "built with new weights"
    unit = "each step" if context.facts.rows else f"{result.times:,.0f} times"
    yield KIND.finding(
        f"a model is {does} in {unit}{where}: {least:.0%} to {most:.0%} of the time would go where "
        "it is held",
        {
            "steps": result.steps,
            "wall_ps": result.wall_ps,
            "times_a_step": round(result.times, 1),
            **of_frame(result.function),
            "share": share,
            "gain_ps": round(_LEAST_OF * result.ps),
            "gain_share": least,
            "most_gain_share": most,
        },
        "Make it once, before the loop or when the service starts, and hold it (a global, "
        "functools.cache, an attribute); where several are served hold the last used ones, and "
        "build under torch.device('meta') with load_state_dict(assign=True), so that no weights "
        "are made to be overwritten.",
    )
