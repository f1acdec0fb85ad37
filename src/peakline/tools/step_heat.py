"""The ``step_heat`` tool: which op, part or function takes how long in which step, for so many
pixels.

However many steps there are, an answer has at most ``width`` columns of ``limit`` rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from peakline import findings, timing
from peakline.text import check_repeated
from peakline.toolbox.parameters import Parameters, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json

if TYPE_CHECKING:
    from peakline.tables import Profile

_LONGEST_NAME = 1000
_MOST = 1 << 40
_MOST_WIDTH, _MOST_ROWS = 2048, 100


class StepHeatParameters(Parameters):
    """The parameters; text is accepted for every value."""

    by: Literal["op", "part", "function"] = parameter(
        "op",
        description="rows: ops (events by name), parts of a step's time, functions of the program",
    )
    sort: Literal["time", "variance"] = parameter(
        "time", description="the rows that take most time, or that differ most among the steps"
    )
    device: str | None = parameter(
        None,
        max_length=_LONGEST_NAME,
        description="this device. Default: the one whose steps take longest",
    )
    first: int = parameter(
        0, ge=0, le=_MOST, description="from this step on, counted from 0 in order of time"
    )
    last: int | None = parameter(
        None, ge=0, le=_MOST, description="to before this step. Default: all"
    )
    width: int = parameter(600, ge=1, le=_MOST_WIDTH, description="at most so many columns")
    limit: int = parameter(24, ge=1, le=_MOST_ROWS, description="at most so many rows")


def _run(profile: Profile, parameters: StepHeatParameters, _output_format: str) -> bytes:
    times = timing.step_times(profile)
    document: dict[str, Any] = {
        "device": None, "by": parameters.by, "steps": 0,
        "columns": {"first": [], "last": [], "longest": [], "wall_ps": []},
        "rows": [], "names": {}, "rows_total": 0,
    }  # fmt: skip
    if not times.rows:
        profile.warn(findings.NO_STEPS, findings.UNMARKED, once=True)
        return compact_json(document)
    import numpy as np

    device = timing.device_of(times, parameters.device)
    rows = times.rows_of(device)
    ids, wall = times.step_id[rows], times.wall[rows]
    work = timing.step_work_of(profile, device, parameters.by)
    last = work.steps if parameters.last is None else parameters.last
    heat = timing.heat_of(
        work, parameters.first, last, parameters.width, parameters.limit,
        by_variance=parameters.sort == "variance",
    )  # fmt: skip
    check_repeated(list(heat.names))
    bounds = list(zip(heat.first.tolist(), heat.last.tolist(), strict=True))
    longest = [a + int(wall[a:b].argmax()) for a, b in bounds]
    most_ids = ids[heat.which]
    named = np.unique(heat.which)
    names = times.name.take(rows[named]).to_list()
    check_repeated([name or "" for name in names])
    document |= {
        "device": None if device < 0 else times.devices[device],
        "steps": work.steps,
        "columns": {
            "first": heat.first.tolist(),
            "last": heat.last.tolist(),
            "longest": ids[longest].tolist(),
            "wall_ps": wall[longest].tolist(),
        },
        "rows": [
            {
                "name": name,
                "title": name if parameters.by == "part" else findings.title_of(name),
                "total_ps": int(heat.total[k]),
                "deviation_ps": float(heat.deviation[k]),
                "mean_ps": heat.mean[k].tolist(),
                "most_ps": heat.most[k].tolist(),
                "step_id": most_ids[k].tolist(),
            }
            for k, name in enumerate(heat.names)
        ],
        "names": dict(zip(ids[named].tolist(), names, strict=True)),
        "rows_total": heat.rows_in_all,
    }
    return compact_json(document)


TOOL = Tool(
    name="step_heat",
    doc="Which op, part or function takes how long in which step, for so many pixels.",
    parameters=StepHeatParameters,
    formats=("json",),
    shows=(("events",), ("op_runs",)),
    run=_run,
)
