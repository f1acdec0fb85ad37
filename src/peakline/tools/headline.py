"""The ``headline`` tool: what is said of a profile before anything else.

Each subject is a question of its own, so that a page shows what is quick while it waits for the
rest: memory and time come from the records alone, savings from all that `peakline memory` finds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json

if TYPE_CHECKING:
    from peakline.tables import Profile


class HeadlineParameters(Parameters):
    """What it is about."""

    about: Literal["memory", "time", "savings"] = parameter(
        "memory",
        description="memory: failure, peak and rounding, else what a graph is; time: "
        "steps, slow ones, devices; savings: what would lower the peak",
    )


def _run(profile: Profile, parameters: HeadlineParameters, _format: str) -> bytes:
    from peakline.findings.headline.graph import graph_headline
    from peakline.findings.headline.memory import memory_headline, savings_headline
    from peakline.findings.headline.pictures import memory_curve, step_strip
    from peakline.findings.headline.time import time_headline
    from peakline.findings.memory_answer import memory_of

    picture: object = None
    if parameters.about == "memory":
        found = memory_headline(profile) or graph_headline(profile)
        of_peak = (phrase.params for one in found if one.kind == "peak" for phrase in one.phrases)
        allocator = next((one["allocator"] for one in of_peak if "allocator" in one), None)
        picture = None if allocator is None else memory_curve(profile, str(allocator))
    elif parameters.about == "time":
        found = time_headline(profile)
        picture = step_strip(profile)
    else:
        found = savings_headline(memory_of(profile))
    return compact_json(
        {"sentences": [sentence.as_json() for sentence in found], "picture": picture}
    )


TOOL = Tool(
    name="headline",
    doc="What is said first of a profile: the peak, the steps, what made one slow, with what each "
    "noun names.",
    parameters=HeadlineParameters,
    formats=("json",),
    shows=(
        ("events",), ("op_runs",), ("allocator_events",), ("oom_reports",), ("hlo_modules",),
        ("graphs",),
    ),
    run=_run,
)  # fmt: skip
