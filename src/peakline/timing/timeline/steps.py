"""The steps of every device as they are drawn: at most some per pixel, however many there are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int32Array, Int64Array
from peakline.timing.step_breakdown import StepTimes


@dataclass(frozen=True, eq=False)
class DrawnSteps:
    """Items on the rows of devices, in order of device and time; times in ps.

    An item is one step, or neighbours of a device that are shorter than the resolution and begin in
    the same cell of it: ``count`` of them, from the first begin to the last end. ``step`` is the
    row in `StepTimes` of its longest one (of equal ones the first), ``place`` the number of its
    first among the device's steps.
    """

    device: Int32Array
    place: Int64Array
    begin_ps: Int64Array
    until_ps: Int64Array
    count: Int64Array
    step: Int64Array


def devices_in_order(times: StepTimes) -> list[int]:
    """The numbers of the devices that have steps, by name; -1 is the host, which comes first."""
    numbers = np.unique(times.device).tolist()
    return sorted(numbers, key=lambda one: (one >= 0, times.devices[one] if one >= 0 else ""))


def draw_steps(
    times: StepTimes, devices: list[int], start_ps: int, end_ps: int, resolution_ps: int
) -> DrawnSteps:
    """The steps of ``devices`` that run from ``start_ps`` to before ``end_ps``, or begin there."""
    parts = [
        _drawn(times, row, times.rows_of(number), start_ps, end_ps, resolution_ps)
        for row, number in enumerate(devices)
    ]
    none = np.zeros(0, np.int64)
    device, place, begin, until, count, step = (
        np.concatenate([none, *column]) for column in zip(*parts, strict=True)
    ) if parts else (none,) * 6  # fmt: skip
    return DrawnSteps(device.astype(np.int32), place, begin, until, count, step)


def _drawn(
    times: StepTimes, row: int, own: Int64Array, start_ps: int, end_ps: int, resolution_ps: int
) -> tuple[Int64Array, ...]:
    begin, end = times.start[own], times.end[own]
    places = np.flatnonzero((begin < end_ps) & ((end > start_ps) | (begin >= start_ps)))
    begin, end = begin[places], end[places]
    first = np.flatnonzero(_is_new(begin, end - begin, resolution_ps))
    if not first.size:
        return (first,) * 6
    count = np.diff(np.append(first, places.size))
    item = np.repeat(np.arange(first.size), count)
    # Of equally long ones the first is the longest.
    order = np.lexsort((np.arange(places.size), begin - end, item))
    return (
        np.full(first.size, row),
        places[first],
        begin[first],
        np.maximum.reduceat(end, first),
        count,
        own[places[order[first]]],
    )


def _is_new(begin: Int64Array, wall: Int64Array, resolution_ps: int) -> BoolArray:
    """Which steps, in order of time, begin an item."""
    is_new = np.ones(begin.size, np.bool_)
    if resolution_ps > 0 and begin.size:
        is_short, cell = wall < resolution_ps, begin // resolution_ps
        is_new[1:] = ~(is_short[1:] & is_short[:-1] & (cell[1:] == cell[:-1]))
    return is_new


def step_meant(times: StepTimes, devices: list[int], step: str, device: int | None) -> int:
    """The row in `StepTimes` of a step by its id, else by its name; -1 for none.

    Of several that have it, the one of ``device`` (a number of `StepTimes`), else the one that
    begins first, of equal ones on the first of ``devices``.
    """
    result = np.zeros(0, np.int64)
    if step.isdecimal() and len(step) <= 18:
        result = np.flatnonzero(times.step_id == int(step))
    if not result.size:
        code = times.name.code_of(step)
        result = np.flatnonzero(times.name.codes == code) if code >= 0 else result
    if not result.size:
        return -1
    own = result[times.device[result] == device] if device is not None else result[:0]
    result = own if own.size else result
    rank = {number: at for at, number in enumerate(devices)}
    order = np.array([rank[number] for number in times.device[result].tolist()])
    return int(result[np.lexsort((order, times.start[result]))[0]])


def step_after(times: StepTimes, device: int, at_ps: int) -> int:
    """The row of the first step of a device that ends after a moment, else of its last; -1 for
    none.
    """
    own = times.rows_of(device)
    later = own[times.end[own] > at_ps]
    return int(later[0]) if later.size else int(own[-1]) if own.size else -1


def beside(times: StepTimes, row: int) -> tuple[int, int]:
    """The rows of the steps of the same device before and after it; -1 for none."""
    own = times.rows_of(int(times.device[row]))
    at = int(np.searchsorted(own, row))
    return (int(own[at - 1]) if at else -1, int(own[at + 1]) if at + 1 < own.size else -1)
