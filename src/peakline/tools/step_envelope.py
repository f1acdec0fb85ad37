"""The ``step_envelope`` tool: the steps of a device for so many pixels, and some of them as rows.

However many steps there are, an answer has at most ``width`` columns and ``limit`` rows. The rows
are those of the table ``step_breakdown``, with their ``place`` among the device's steps.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from peakline import document, findings, timing
from peakline.errors import NotFoundError
from peakline.tables.once import once
from peakline.text import check_repeated
from peakline.toolbox.parameters import Parameters, check_choice, parameter
from peakline.toolbox.registry import Tool
from peakline.toolbox.written import compact_json

if TYPE_CHECKING:
    from peakline.arrays import Int64Array
    from peakline.tables import Profile
    from peakline.timing.step_breakdown import StepTimes

_LONGEST_NAME = 1000
_MOST = 1 << 40
_MOST_WIDTH, _MOST_ROWS = 2048, 2048


class StepEnvelopeParameters(Parameters):
    """The parameters; text is accepted for every value."""

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
    width: int = parameter(600, ge=0, le=_MOST_WIDTH, description="at most so many columns")
    step: str | None = parameter(
        None, max_length=_LONGEST_NAME, description="the id or name of a step to find"
    )
    sort: str = parameter(
        "start_ps",
        max_length=40,
        description="the column that orders the rows; -column: the largest first",
    )
    offset: int = parameter(0, ge=0, le=_MOST, description="rows from this one on")
    limit: int = parameter(100, ge=0, le=_MOST_ROWS, description="at most so many rows")


def _run(profile: Profile, parameters: StepEnvelopeParameters, _output_format: str) -> bytes:
    times = timing.step_times(profile)
    if not times.rows:
        profile.warn(findings.NO_STEPS, findings.UNMARKED, once=True)
        return compact_json(_NONE)
    return compact_json(_document(profile, times, parameters))


_NONE: dict[str, Any] = {
    "device": None, "devices": [], "steps": 0, "number_of_steps": 0, "first": 0, "last": 0,
    "found_by": None,
    "parts": [], "mean": None, "shortest": None,
    "columns": {"first": [], "last": [], "min_ps": [], "median_ps": [], "mean_ps": [],
                "max_ps": [], "longest": [], "step_id": [], "name": [], "slow": [],
                "is_slow": [], "is_warm_up": [], "is_cut_off": [], "parts": {}},
    "step": None, "rows": [], "rows_total": 0, "variation": [], "straggler": None,
    "straggler_text": "",
}  # fmt: skip


def _document(
    profile: Profile, times: StepTimes, parameters: StepEnvelopeParameters
) -> dict[str, Any]:
    number = timing.device_of(times, parameters.device)
    own = times.rows_of(number)
    last = own.size if parameters.last is None else min(parameters.last, own.size)
    first = min(parameters.first, last)
    parts = [name for k, name in enumerate(timing.PARTS) if times.parts[own, k].any()]
    rows = _Rows(profile, times, own)
    listed = rows.ordered(first, last, parameters.sort)
    shown = listed[parameters.offset : parameters.offset + parameters.limit]
    columns = _columns(times, rows, first, last, parameters.width, parts)
    whole = own[~times.is_cut_off[own]]
    whole = whole if whole.size else own
    check_repeated([name or "" for name in columns["name"]])
    return {
        "device": None if number < 0 else times.devices[number],
        "devices": list(times.devices),
        "steps": int(own.size),
        "number_of_steps": timing.step_facts_of(profile).number_of_steps,
        "first": first,
        "last": last,
        "found_by": times.found_by[int(own[0])],
        "parts": parts,
        "mean": _mean(profile, times, own),
        "shortest": int(times.step_id[whole[times.wall[whole].argmin()]]),
        "columns": columns,
        "step": _found(times, rows, number, parameters.step),
        "rows": rows.objects(shown),
        "rows_total": int(listed.size),
        "variation": _variation(profile),
        **_straggler(profile),
    }


class _Rows:
    """The steps of a device as rows, with what is said of the slow ones."""

    def __init__(self, profile: Profile, times: StepTimes, own: Int64Array) -> None:
        self.own = own
        self.facts = timing.step_facts_of(profile)
        self.table = times.columns()
        self.slow, self.is_first = timing.slow_rows_of(profile, times, own)

    def ordered(self, first: int, last: int, sort: str) -> Int64Array:
        """The places from ``first`` to before ``last`` in the order of a column."""
        check_choice(sort.removeprefix("-"), list(self.table), "step_envelope: no column")
        return first + timing.order_by(self.table.take(self.own[first:last]), sort)

    def objects(self, places: Int64Array) -> list[dict[str, Any]]:
        """Rows at these places."""
        rows = self.table.take(self.own[places]).to_pylist()
        return [
            row | {"place": place} | self._slow(place)
            for row, place in zip(rows, places.tolist(), strict=True)
        ]

    def _slow(self, place: int) -> dict[str, Any]:
        row, is_first = int(self.slow[place]), bool(self.is_first[place])
        says = None
        if row >= 0:
            usual = float(self.facts.usual_ps(self.slow[place : place + 1])[0])
            says = findings.beyond_median(self.facts, row, usual)
        return {"is_slow": row >= 0 and not is_first, "is_warm_up": is_first, "says": says}


def _columns(
    times: StepTimes, rows: _Rows, first: int, last: int, width: int, parts: list[str]
) -> dict[str, Any]:
    import numpy as np

    own = rows.own[first:last]
    result = timing.envelope_of(times, own, width)
    slow = np.concatenate([[0], np.cumsum((rows.slow >= 0) & ~rows.is_first)])
    place = first + result.longest
    longest = own[result.longest]
    return {
        "first": (first + result.first).tolist(),
        "last": (first + result.last).tolist(),
        "min_ps": result.least.tolist(),
        "median_ps": result.median.tolist(),
        "mean_ps": result.mean.tolist(),
        "max_ps": result.most.tolist(),
        "longest": place.tolist(),
        "step_id": times.step_id[longest].tolist(),
        "name": times.name.take(longest).to_list(),
        "slow": (slow[first + result.last] - slow[first + result.first]).tolist(),
        "is_slow": ((rows.slow[place] >= 0) & ~rows.is_first[place]).tolist(),
        "is_warm_up": rows.is_first[place].tolist(),
        "is_cut_off": times.is_cut_off[longest].tolist(),
        "parts": {name: result.parts[:, timing.PARTS.index(name)].tolist() for name in parts},
    }


def _found(times: StepTimes, rows: _Rows, number: int, step: str | None) -> dict[str, Any] | None:
    """The row of a step, with the ids of the one before and the one after; None for no such one."""
    import numpy as np

    if step is None:
        return None
    try:
        row = timing.row_of_step(times, step, number)
    except NotFoundError:
        return None
    place = int(np.searchsorted(rows.own, row))
    ids = times.step_id[rows.own]
    (result,) = rows.objects(np.array([place]))
    return result | {
        "previous_id": int(ids[place - 1]) if place else None,
        "next_id": int(ids[place + 1]) if place + 1 < ids.size else None,
    }


def _mean(profile: Profile, times: StepTimes, own: Int64Array) -> dict[str, Any] | None:
    """The mean step of the name whose whole steps take most time: its parts."""
    facts = timing.step_facts_of(profile)
    number = int(times.device[own[0]])
    device = facts.devices.index(times.devices[number]) if number >= 0 else 0
    result = [rows for name in facts.populations if (rows := facts.rows_of(device, name)).size]
    if not result:
        return None
    rows = max(result, key=lambda one: int(facts.part("wall_ps")[one].sum()))
    return {
        "steps": int(rows.size),
        "parts": {name: float(facts.part(f"{name}_ps")[rows].mean()) for name in timing.PARTS},
    }


@once
def _variation(profile: Profile) -> tuple[dict[str, Any], ...]:
    """As ``step_breakdown`` says it, with the numbers of slow steps and of those that warm up in
    place of these steps.
    """
    result = []
    for one in timing.variation_of(timing.step_facts_of(profile)):
        first = sum(slow.is_first for slow in one.slow)
        result.append(asdict(one) | {"slow": len(one.slow) - first, "warm_up": first})
    return tuple(result)


@once
def _straggler(profile: Profile) -> dict[str, Any]:
    """The device that the others wait for, and what is said of it where there are others."""
    times = timing.step_times(profile)
    straggler = timing.device_straggler(times)
    seen = bool(times.communication_total.any())
    text = document.straggler_text(straggler, len(times.devices), communicates=seen)
    return {
        "straggler": None if straggler is None else asdict(straggler),
        "straggler_text": text if len(times.devices) > 1 else "",
    }


TOOL = Tool(
    name="step_envelope",
    doc="The steps of a device for so many pixels, and some of them as rows.",
    parameters=StepEnvelopeParameters,
    formats=("json",),
    shows=(("events",), ("op_runs",)),
    run=_run,
)
