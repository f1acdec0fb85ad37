"""The ``headline`` tool: what is said of a profile before anything else.

Each subject is a question of its own, so that a page shows what is quick while it waits for the
rest: memory and time come from the records alone, savings from all that `peakline memory` finds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from peakline import findings
from peakline.timing.steps.facts import step_facts_of
from peakline.timing.timeline.counters import MEMORY, counters_of
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json

if TYPE_CHECKING:
    from peakline.tables import Profile


WIDTH = 240
"""Pixels of either at most."""


def memory_curve(profile: Profile, allocator: str) -> dict[str, object] | None:
    """Memory in use of an allocator from its first record to its last, on `WIDTH` pixels: the least
    and the most of each, in bytes; None where it is of one moment. NaN does not occur.
    """
    of_memory = (one for one in counters_of(profile) if one.group == MEMORY)
    result = next((one for one in of_memory if one.name == allocator), None)
    if result is None or result.time_ps[0] == result.time_ps[-1]:
        return None
    start, end = int(result.time_ps[0]), int(result.time_ps[-1]) + 1
    pixels = result.pixels(start, end, WIDTH)
    return {
        "allocator": allocator,
        "start_ps": start,
        "end_ps": end,
        "low": np.nan_to_num(pixels.low).tolist(),
        "high": np.nan_to_num(pixels.high).tolist(),
    }


def step_strip(profile: Profile) -> dict[str, list[object]] | None:
    """The steps in order of time, on at most `WIDTH` bars of equally many; of each bar the longest
    step: its name, its length, and whether it is slow, or slow and one of the first of its name,
    which warm up. None without steps.
    """
    facts = step_facts_of(profile)
    if not facts.rows:
        return None
    rows, wall = facts.slowest_lane()
    first = np.unique(np.linspace(0, rows.size, WIDTH, endpoint=False).astype(np.int64))
    ends = np.append(first[1:], rows.size)
    longest = [
        int(begin + wall[begin:end].argmax())
        for begin, end in zip(first.tolist(), ends.tolist(), strict=True)
    ]
    slow = np.isin(rows, facts.slow_rows())
    is_first = facts.is_first[rows]
    return {
        "name": [facts.label(int(rows[place])) for place in longest],
        "device": [
            facts.devices[int(facts.device[rows[place]])] if facts.devices else None
            for place in longest
        ],
        "wall_ps": wall[longest].tolist(),
        "is_slow": (slow & ~is_first)[longest].tolist(),
        "is_warm_up": (slow & is_first)[longest].tolist(),
        "steps": (ends - first).tolist(),
    }


class HeadlineParameters(Parameters):
    """What it is about."""

    about: Literal["memory", "time", "savings"] = parameter(
        "memory",
        description="memory: failure, peak and rounding, else what a graph is; time: "
        "steps, slow ones, devices; savings: what would lower the peak",
    )


def _run(profile: Profile, parameters: HeadlineParameters, _format: str) -> bytes:
    picture: object = None
    if parameters.about == "memory":
        result = findings.memory_headline(profile) or findings.graph_headline(profile)
        of_peak = (phrase.params for one in result if one.kind == "peak" for phrase in one.phrases)
        allocator = next((one["allocator"] for one in of_peak if "allocator" in one), None)
        picture = None if allocator is None else memory_curve(profile, str(allocator))
    elif parameters.about == "time":
        result = findings.time_headline(profile)
        picture = step_strip(profile)
    else:
        result = findings.savings_headline(findings.memory_of(profile))
    return compact_json(
        {"sentences": [sentence.as_json() for sentence in result], "picture": picture}
    )


TOOL = Tool(
    name="headline",
    doc="What is said first of a profile: the peak, the steps, what made one slow, with what each "
    "noun names.",
    parameters=HeadlineParameters,
    formats=("json",),
    shows=(
        ("events",), ("op_runs",), ("allocator_events",), ("oom_reports",), ("hlo_modules",),
        ("graphs",), ("printed_ops",),
    ),
    run=_run,
)  # fmt: skip
