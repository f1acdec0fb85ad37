"""The ``step_series`` tool: time and memory step by step, to lay several profiles side by side."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Literal

from peakline import timing
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json

if TYPE_CHECKING:
    from peakline.tables import Profile

MOST_BINS = 4000


class StepSeriesParameters(Parameters):
    """The parameters."""

    width: int = parameter(
        800, ge=1, le=MOST_BINS, description="at most so many bins: more steps are merged evenly"
    )
    by: Literal["step", "time"] = parameter(
        "step", description="bins of steps; or even parts of the time of the memory records"
    )


def _run(profile: Profile, parameters: StepSeriesParameters, _output_format: str) -> bytes:
    result = timing.step_series(profile, parameters.width, by_time=parameters.by == "time")
    return compact_json(
        {"host": profile.host, "series": None if result is None else asdict(result)}
    )


TOOL = Tool(
    name="step_series",
    doc="Time and memory step by step, in as many bins as a picture has pixels, for comparisons.",
    parameters=StepSeriesParameters,
    formats=("json",),
    shows=(("events",), ("op_runs",), ("allocator_events",)),
    run=_run,
)
