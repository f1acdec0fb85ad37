"""The ``step_difference`` tool: why a step takes longer than the median one, or than any other.

By part of the step, then by op and by Python function, then the events (docs/steps.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from peakline import findings, timing, trace
from peakline.text import check_repeated
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json, quoted_csv

if TYPE_CHECKING:
    from peakline.tables import Profile
    from peakline.timing.step_breakdown import StepTimes
    from peakline.timing.steps.choice import Chosen
    from peakline.timing.steps.difference import Mean, StepDifference, Work

_LONGEST_NAME = 1000
_MOST_ROWS = 500


class StepDifferenceParameters(Parameters):
    """The parameters; text is accepted for every value."""

    step: str | None = parameter(
        None,
        max_length=_LONGEST_NAME,
        description="the step's id or name. Default: the one that takes the most times the median",
    )
    last: str | None = parameter(
        None, max_length=_LONGEST_NAME, description="all steps from that to this one: their mean"
    )
    against: str | None = parameter(
        None,
        max_length=_LONGEST_NAME,
        description="the id or name of the step to compare with. Default: median, the step of the "
        "same name that takes the median time",
    )
    device: str | None = parameter(
        None,
        max_length=_LONGEST_NAME,
        description="this device. Default: the one on which the step is longest",
    )
    limit: int = parameter(
        60, ge=1, le=_MOST_ROWS, description="so many ops and functions, those that differ most"
    )


def _run(profile: Profile, parameters: StepDifferenceParameters, output_format: str) -> bytes:
    result = timing.step_difference_of(
        profile, parameters.step, parameters.last, parameters.against, parameters.device
    )
    if result is None:
        profile.warn(findings.NO_STEPS, findings.UNMARKED, once=True)
    if output_format == "csv":
        rows = [] if result is None else _works(profile, result.ops, parameters.limit)
        columns = [name for name in _COLUMNS if name not in {"events", "usual_events"}]
        return quoted_csv(columns, ([row[name] for name in columns] for row in rows))
    document = _document(profile, result, timing.step_times(profile), parameters.limit)
    return compact_json(document)


_COLUMNS = (
    "part", "name", "title", "is_frame", "side", "count", "usual_count", "ps", "usual_ps",
    "difference_ps", "self_ps", "usual_self_ps", "self_difference_ps", "events", "usual_events",
)  # fmt: skip


def _document(
    profile: Profile, result: StepDifference | None, times: StepTimes, limit: int
) -> dict[str, Any]:
    if result is None:
        facts = dict.fromkeys(("device", "step", "against", "wall_ps", "usual_wall_ps"))
        return facts | {
            "difference_ps": 0, "is_slow": False, "is_warm_up": False, "sentences": [],
            "parts": [], "ops": [], "ops_total": 0, "frames": [], "frames_total": 0,
        }  # fmt: skip
    shown = [*result.ops[:limit], *result.frames[:limit]]
    check_repeated([one.name or "" for one in shown])
    return {
        "device": result.device,
        "step": _steps(result.steps, times, result.examined),
        "against": _steps(result.usual, times, int(result.usual.rows.size)),
        "wall_ps": result.wall.value,
        "usual_wall_ps": result.wall.usual,
        "difference_ps": result.wall.difference,
        "is_slow": findings.is_slow(result),
        "is_warm_up": result.steps.is_first,
        "sentences": findings.sentences_of(result, times),
        "parts": [
            {
                "part": one.part,
                **_mean("", one.ps),
                **_mean("unattributed_", one.unattributed),
                "ops": sum(work.part == one.part for work in result.ops),
            }
            for one in result.parts
        ],
        "ops": _works(profile, result.ops, limit),
        "ops_total": len(result.ops),
        "frames": _works(profile, result.frames, limit),
        "frames_total": len(result.frames),
    }


def _steps(chosen: Chosen, times: StepTimes, examined: int) -> dict[str, Any]:
    first, last = int(chosen.rows[0]), int(chosen.rows[-1])
    return {
        "step_id": int(times.step_id[first]),
        "name": times.name[first],
        "last_id": int(times.step_id[last]),
        "last_name": times.name[last],
        "steps": int(chosen.rows.size),
        "examined": examined,
        "is_median": chosen.is_median,
        "of_steps": chosen.of_steps,
        "start_ps": int(times.start[chosen.rows].min()),
        "end_ps": int(times.end[chosen.rows].max()),
        "is_cut_off": bool(times.is_cut_off[chosen.rows].any()),
    }


def _mean(head: str, mean: Mean) -> dict[str, int]:
    """Three columns: in the steps, in those they are compared with, and the difference."""
    usual = f"usual_{head}ps"
    return {f"{head}ps": mean.value, usual: mean.usual, f"{head}difference_ps": mean.difference}


def _works(profile: Profile, works: Sequence[Work], limit: int) -> list[dict[str, Any]]:
    return [
        {
            "part": one.part,
            "name": one.name,
            "title": findings.title_of(one.name),
            "is_frame": one.name is not None and trace.frame_of(one.name) is not None,
            "side": one.side,
            "count": one.count[0],
            "usual_count": one.count[1],
            **_mean("", one.ps),
            **_mean("self_", one.self_ps),
            "events": _events(profile, one.events),
            "usual_events": _events(profile, one.usual),
        }
        for one in works[:limit]
    ]


def _events(profile: Profile, places: Sequence[int]) -> list[dict[str, Any]]:
    """Events as the ``timeline`` tool numbers them."""
    import numpy as np

    recorded, events = trace.trace_of(profile), np.array(places, np.int64)
    lines = recorded.lines_of(events).tolist()
    return [
        {
            "event": int(row),
            "line": line,
            "line_name": recorded.lines[line].name,
            "start_ps": int(recorded.start[event]),
            "duration_ps": int(recorded.end[event] - recorded.start[event]),
        }
        for event, row, line in zip(places, recorded.rows(events).tolist(), lines, strict=True)
    ]


TOOL = Tool(
    name="step_difference",
    doc="Why a step takes longer than the median one or another: by part, op, function and event.",
    parameters=StepDifferenceParameters,
    formats=("json", "csv"),
    shows=(("events",), ("op_runs",)),
    run=_run,
)
