"""The ``timeline`` tool: any stretch of a profile's events at any width, search, details, counters.

Nothing is left out: what is too short for a pixel is merged, counted and named by its longest
event. The first question builds an index that the opened profile keeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peakline.toolbox.registry import Tool
from peakline.tools.timeline.parameters import TimelineParameters

if TYPE_CHECKING:
    from peakline.tables import Profile

__all__ = ["TOOL", "TimelineParameters"]


def _run(profile: Profile, parameters: TimelineParameters, output_format: str) -> bytes:
    from peakline.tools.timeline.format import as_binary, as_json
    from peakline.tools.timeline.relations import VIEWS

    columns = VIEWS[parameters.view](profile, parameters)
    encode = as_binary if output_format == "bin" else as_json
    return encode(parameters.view, columns)


TOOL = Tool(
    name="timeline",
    doc="Events of any stretch of time at any width, search by name, details, counters "
    "(docs/timeline.md).",
    parameters=TimelineParameters,
    formats=("json", "bin"),
    shows=(("events",), ("op_runs",), ("counters",)),
    run=_run,
)
