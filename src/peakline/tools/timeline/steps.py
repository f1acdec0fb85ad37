"""The view ``steps`` of the ``timeline`` tool: the steps of every device on so many pixels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from peakline import timing
from peakline.errors import UsageError
from peakline.tables import Profile
from peakline.text import check_repeated
from peakline.timing.timeline.tiles import level_of
from peakline.tools.timeline.format import Value, stored
from peakline.tools.timeline.views import MOST_ITEMS, View, span_of
from peakline.trace.events import trace_of

if TYPE_CHECKING:
    from peakline.timing.step_breakdown import StepTimes
    from peakline.tools.timeline.parameters import TimelineParameters


def _steps(profile: Profile, parameters: TimelineParameters) -> Mapping[str, Value]:
    times = timing.step_times(profile)
    devices = timing.devices_in_order(times)
    start, end = span_of(trace_of(profile).span, parameters)
    level = level_of(start, end, parameters.width)
    shown = devices if parameters.rows is None else devices[: parameters.rows]
    drawn = timing.draw_steps(times, shown, start, end, 1 << level if level >= 0 else 0)
    if drawn.step.size > MOST_ITEMS:
        raise UsageError(
            f"timeline: {len(shown)} devices of {parameters.width} pixels are too many: "
            "request fewer (rows), or a smaller width"
        )
    names = times.name.take(drawn.step).to_list()
    check_repeated([name or "" for name in names])
    counts = [int((times.device == number).sum()) for number in devices]
    return {
        "start_ps": start,
        "end_ps": end,
        "width": parameters.width,
        "resolution_ps": 1 << level if level >= 0 else 0,
        "total": times.rows,
        "device_name": [_name(times, number) for number in devices],
        "device_steps": stored(np.array(counts, np.int64), "uint32"),
        "device": stored(drawn.device, "int32"),
        "place": stored(drawn.place, "uint32"),
        "begin_ps": stored(drawn.begin_ps - start, "float64"),
        "duration_ps": stored(drawn.until_ps - drawn.begin_ps, "float64"),
        "longest_ps": stored(times.wall[drawn.step], "float64"),
        "count": stored(drawn.count, "uint32"),
        "step_id": stored(times.step_id[drawn.step], "int64"),
        "step_name": [name or "" for name in names],
        "is_cut_off": stored(times.is_cut_off[drawn.step], "uint8"),
        "found": _found(times, devices, parameters),
    }


def _found(
    times: StepTimes, devices: list[int], parameters: TimelineParameters
) -> dict[str, Any] | None:
    if not devices:
        return None
    names = [_name(times, number) for number in devices]
    wanted = parameters.device
    device = devices[names.index(wanted)] if wanted in names else None
    row = -1
    if parameters.step is not None:
        row = timing.step_meant(times, devices, parameters.step, device)
    elif parameters.at_ps is not None:
        row = timing.step_after(times, devices[0] if device is None else device, parameters.at_ps)
    if row < 0:
        return None
    previous, following = (
        _brief(times, one) if one >= 0 else None for one in timing.beside(times, row)
    )
    return _brief(times, row) | {"previous": previous, "next": following}


def _name(times: StepTimes, number: int) -> str | None:
    return times.devices[number] if number >= 0 else None


def _brief(times: StepTimes, row: int) -> dict[str, Any]:
    return {
        "step_id": int(times.step_id[row]),
        "name": times.name[row] or "",
        "device": _name(times, int(times.device[row])),
        "start_ps": int(times.start[row]),
        "end_ps": int(times.end[row]),
        "wall_ps": int(times.wall[row]),
        "is_cut_off": bool(times.is_cut_off[row]),
    }


VIEWS: Mapping[str, View] = {"steps": _steps}
"""The view by name."""
