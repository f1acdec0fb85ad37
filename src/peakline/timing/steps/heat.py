"""How much of each step goes to each op, part or function: a matrix, made for so many pixels.

An op's share of a step is the self time of its events within the step's window, on all lines that
say what the step's time goes to; a part's is that of ``step_breakdown``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from peakline.arrays import AnyArray, Float64Array, Int64Array
from peakline.tables import Profile
from peakline.tables.joins import summed
from peakline.tables.once import once
from peakline.timing.step_breakdown import PARTS, step_times
from peakline.timing.steps.attribution import window_self_times
from peakline.timing.steps.difference import frame_codes
from peakline.timing.steps.envelope import column_bounds
from peakline.trace.activity_sets import (
    device_lines_between,
    device_sets_of,
    host_lines_between,
    thread_events_between,
)
from peakline.trace.events import trace_of
from peakline.trace.windows import windows_of

OP, PART, FUNCTION = "op", "part", "function"


@dataclass(frozen=True, eq=False)
class StepWork:
    """What each step of a device spends on what, only where it is more than nothing; ordered by
    step. ``step`` are places among the device's steps in order of time, ``row`` places in
    ``names``, ``count`` how many events it is (0 for a part).
    """

    names: tuple[str, ...]
    step: Int64Array
    row: Int64Array
    ps: Int64Array
    steps: int
    count: Int64Array


@dataclass(frozen=True, eq=False)
class Heat:
    """``names`` x columns of steps: ``mean`` and ``most`` (ps) of the steps ``first`` to before
    ``last`` of each column, and which step has the most; places among the device's steps.

    ``total`` is what a row comes to in all these steps, ``deviation`` its standard deviation.
    """

    names: tuple[str, ...]
    first: Int64Array
    last: Int64Array
    mean: Int64Array
    most: Int64Array
    which: Int64Array
    total: Int64Array
    deviation: Float64Array
    rows_in_all: int


@once
def step_work_of(profile: Profile, device: int, by: str) -> StepWork:
    """The work of the steps of a device (-1: the host) by ``op``, ``part`` or ``function``.

    Raises InputError when the profile cannot be read.
    """
    times = step_times(profile)
    rows = times.rows_of(device)
    if by == PART:
        step, part = np.nonzero(times.parts[rows])
        ps = times.parts[rows][step, part]
        return StepWork(PARTS, step, part, ps, rows.size, np.zeros_like(step))
    begin = times.start[rows]
    # Of steps that overlap a moment is the later one's.
    end = np.minimum(times.end[rows], np.append(begin[1:], times.end[rows][-1:]))
    event = step_events_of(profile, device, of_threads=by == FUNCTION)
    result = window_self_times(profile, event, begin, np.maximum(end, begin))
    spends = result.ps > 0
    event, at, own = result.event[spends], result.window[spends], result.ps[spends]
    trace = trace_of(profile)
    codes = trace.name.codes[event].astype(np.int64)
    if by == FUNCTION:
        codes = frame_codes(profile, event)
        known = codes >= 0
        codes, at, own = codes[known], at[known], own[known]
    width = len(trace.name.values) + 1
    keys, place = np.unique(at * width + codes + 1, return_inverse=True)
    used, row = np.unique(keys % width - 1, return_inverse=True)
    names = tuple(trace.name.values[code] if code >= 0 else "" for code in used.tolist())
    ps, count = summed(place, own, keys.size), np.bincount(place, minlength=keys.size)
    return StepWork(names, keys // width, row, ps, rows.size, count)


def heat_of(
    work: StepWork, first: int, last: int, width: int, limit: int, *, by_variance: bool
) -> Heat:
    """The heat of the steps from ``first`` to before ``last`` in at most ``width`` columns, of the
    ``limit`` rows that take most time, or differ most among these steps.
    """
    first, last = max(first, 0), min(last, work.steps)
    many = max(last - first, 0)
    own = slice(*np.searchsorted(work.step, [first, max(last, first)]).tolist())
    step, row, ps = work.step[own] - first, work.row[own], work.ps[own]
    size = len(work.names)
    total = summed(row, ps, size)
    mean = total / max(many, 1)
    square = np.bincount(row, ps.astype(np.float64) ** 2, size) / max(many, 1)
    deviation = np.sqrt(np.maximum(square - mean**2, 0))
    order = np.lexsort((-total, -deviation)) if by_variance else np.argsort(-total, kind="stable")
    order = order[total[order] > 0]
    chosen = order[:limit]
    place = np.full(size, -1, np.int64)
    place[chosen] = np.arange(chosen.size)
    mine = place[row] >= 0
    cells = np.zeros((chosen.size, many), np.int64)
    cells[place[row[mine]], step[mine]] = ps[mine]
    bounds = column_bounds(many, width)
    columns = bounds.size - 1
    result = [_column(cells[:, a:b]) for a, b in pairwise(bounds.tolist())]
    means, most, which = (
        np.array([one[k] for one in result], np.int64).reshape(columns, chosen.size).T
        for k in range(3)
    )
    return Heat(
        tuple(work.names[k] for k in chosen.tolist()),
        first + bounds[:-1],
        first + bounds[1:],
        means,
        most,
        which + bounds[:-1] + first,
        total[chosen],
        deviation[chosen],
        int(order.size),
    )


def _column(cells: AnyArray) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Mean, most and where that is, of each row of some steps."""
    return cells.sum(axis=1) // cells.shape[1], cells.max(axis=1), cells.argmax(axis=1)


def step_events_of(profile: Profile, device: int, *, of_threads: bool = False) -> Int64Array:
    """The events that say what the time of the steps of a device (-1: the host) goes to, ascending;
    ``of_threads`` only those of the steps' own threads.
    """
    trace = trace_of(profile)
    threads = dict(thread_events_between(profile, trace.span()))
    if of_threads:
        return np.unique(np.concatenate([np.zeros(0, np.int64), *threads.values()]))
    lines = {line.line: line.event for line in host_lines_between(profile)} | threads
    own = windows_of(profile)[device].device if device >= 0 else None
    for one in device_sets_of(profile):
        if own is not None and one.device.plane_id == own.plane_id:
            lines |= {line.line: line.event for line in device_lines_between(profile, one.device)}
    return np.unique(np.concatenate([np.zeros(0, np.int64), *lines.values()]))
