"""Which steps a person names: one, a range of them, or the median one of a name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.errors import NotFoundError
from peakline.suggest import there_is
from peakline.text import population_of
from peakline.timing.step_breakdown import StepTimes
from peakline.timing.steps.facts import SLOW, first_steps, median_row
from peakline.trace.steps import no_step

MEDIAN = "median"


@dataclass(frozen=True, eq=False)
class Chosen:
    """Rows of `StepTimes` of one device, in order of time.

    ``is_median`` says that it is the median step of its name, of ``of_steps`` whole ones, whose
    median is ``median_ps``: of an even number it lies between two;
    ``is_first`` that all are among the first of their name, which warm up.
    """

    rows: Int64Array
    is_median: bool = False
    of_steps: int = 0
    median_ps: int = 0
    is_first: bool = False

    def sample(self, most: int) -> Int64Array:
        """All rows, or an even choice of so many."""
        if self.rows.size <= most:
            return self.rows
        return self.rows[np.linspace(0, self.rows.size - 1, most).astype(np.int64)]


def chosen_steps(
    times: StepTimes, step: str | None, last: str | None, against: str | None, device: str | None
) -> tuple[int, Chosen, Chosen] | None:
    """The device (-1: the host), the steps from ``step`` to ``last``, and those to compare with.

    ``against`` is a step, or ``median`` (also None): the step of the name of the first one that
    takes the median time of those that the record holds whole, of an even number the shorter one.
    None without steps; raises NotFoundError for an unknown step or device.
    """
    if not times.rows:
        if step is not None:
            raise NotFoundError(f"no step {step!r}: the profile has no steps")
        return None
    number = None if device is None else _device(times, device)
    row = _slowest(times, number) if step is None else row_of_step(times, step, number)
    number = int(times.device[row])
    own = times.rows_of(number)
    at = int(np.flatnonzero(own == row)[0])
    until = at if last is None else int(np.flatnonzero(own == row_of_step(times, last, number))[0])
    rows = own[min(at, until) : max(at, until) + 1]
    chosen = Chosen(rows, is_first=bool(np.isin(rows, own[_is_first(times, own)]).all()))
    if against is None or against == MEDIAN:
        return number, chosen, _median(times, own, row)
    return number, chosen, Chosen(np.array([row_of_step(times, against, number)]))


def device_of(times: StepTimes, device: str | None) -> int:
    """The number of the device of that name (-1: the host, which has none); by default the one
    whose steps take longest. Raises NotFoundError for an unknown one.
    """
    if device is not None:
        return _device(times, device)
    if not times.devices:
        return -1
    sums = [int(times.wall[times.rows_of(number)].sum()) for number in range(len(times.devices))]
    return sums.index(max(sums))


def _device(times: StepTimes, device: str) -> int:
    if device == "" and not times.devices:
        return -1
    if device not in times.devices:
        raise NotFoundError(f"no device {device!r} with steps{there_is(device, times.devices)}")
    return times.devices.index(device)


def row_of_step(times: StepTimes, step: str, device: int | None) -> int:
    """The longest row of a step given by id or name, of one device or of any."""
    named = np.zeros(times.rows, np.bool_)
    if step.removeprefix("-").isdecimal() and len(step) <= 18:
        named = times.step_id == int(step)
    if not named.any():
        named = times.name.codes == times.name.code_of(step)
        named &= times.name.codes >= 0
    if device is not None:
        named = named & (times.device == device)
    result = np.flatnonzero(named)
    if not result.size:
        ids = np.unique(times.step_id)
        raise no_step(step, ids.tolist(), times.name)
    return int(result[times.wall[result].argmax()])


def stretch_of_step(times: StepTimes, step: str) -> tuple[int, int, int]:
    """The id of a step given by id or name (the longest of that name), and from when to when (ps)
    it lasts on any device. Raises NotFoundError for an unknown step.
    """
    if not times.rows:
        raise NotFoundError(f"no step {step!r:.200}: the profile has no steps")
    number = int(times.step_id[row_of_step(times, step, None)])
    rows = times.step_id == number
    return number, int(times.start[rows].min()), int(times.end[rows].max())


def _populations(times: StepTimes) -> Int64Array:
    code, _ = times.name.grouped(population_of)
    return code


def _is_first(times: StepTimes, own: Int64Array) -> BoolArray:
    """Which rows of a device are of the first steps of their name."""
    return first_steps(times.device[own], _populations(times)[own])


def _median(times: StepTimes, own: Int64Array, row: int) -> Chosen:
    code = _populations(times)
    alike = own[code[own] == code[row]]
    whole = alike[~times.is_cut_off[alike]]
    whole = whole if whole.size else alike
    return Chosen(
        np.array([median_row(whole, times.wall[whole])]),
        is_median=True,
        of_steps=int(whole.size),
        median_ps=round(float(np.median(times.wall[whole]))),
    )


def _slowest(times: StepTimes, device: int | None) -> int:
    """The step that takes the most times the median of its name, the first ones only if no other
    is slow.
    """
    code = _populations(times)
    ratio = np.zeros(times.rows)
    for number in np.unique(times.device).tolist():
        if device is not None and number != device:
            continue
        own = times.rows_of(number)
        for one in np.unique(code[own]).tolist():
            rows = own[code[own] == one]
            ratio[rows] = times.wall[rows] / max(float(np.median(times.wall[rows])), 1.0)
        is_first = _is_first(times, own)
        if (ratio[own[~is_first]] >= SLOW).any():
            ratio[own[is_first]] = 0
    return int(ratio.argmax())
