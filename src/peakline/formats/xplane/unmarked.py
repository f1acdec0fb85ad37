"""Steps of a profile in which nothing is marked with a number."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array
from peakline.formats.common.annotations import counted, outermost, steps_columns, turns
from peakline.formats.xplane.names import IMPLICIT_ROOTS, TPU_STEP_LINES
from peakline.tables.columns import Columns, Names
from peakline.tables.joins import causes

COLUMNS = frozenset(("line_id", "name", "start_ps", "duration_ps", "step_id"))
"""What is read of the events."""
_CALL = re.compile(r"(?:Pjit|Pmap|Compiled)Function\(")
"""What JAX writes around every call of a compiled function: only the program lies around it."""
_PYTHON = "$"
"""What the names of Python's frames begin with."""
_EAGER = re.compile(r"EagerLocalExecute: __(?:inference|forward|backward)_(.+)_\d+")
"""What TensorFlow writes around the run of a function that was called."""


@dataclass(frozen=True)
class Unmarked:
    """What events of a host's threads can be looked at for, by their names alone.

    ``annotations``: calls of JAX, that `annotated_steps` may find something around; ``functions``:
    what says to `named_runs` which function ran.
    """

    annotations: bool
    functions: bool

    @classmethod
    def of(cls, names: AbstractSet[str]) -> Unmarked:
        """For events of these names."""
        return cls(any(map(_CALL.match, names)), any(map(_EAGER.fullmatch, names)))


def recorded_steps(events: Columns, lines: Columns, planes: Columns) -> Columns:
    """The ``steps`` table of a file whose events say their group themselves.

    A group is a step where the ``Steps`` line of a device shows it; without such a line where the
    outermost event of a thread that has the group is one that begins a step.
    """
    names = lines.names("name").to_list()
    on_step_line = np.array([name in TPU_STEP_LINES for name in names], np.bool_)
    has = events.is_valid("step_id") & events.is_valid("start_ps")
    line = events.array("line_id")
    rows = np.flatnonzero(has & (on_step_line & _on(planes, lines, "device"))[line])
    found_by = "device"
    if not rows.size:
        found_by = "function"
        begins = _named(events, IMPLICIT_ROOTS.__contains__)
        rows = np.flatnonzero(has & begins & _on(planes, lines, "host")[line])
    start = events.array("start_ps")[rows]
    end = start + events.array("duration_ps")[rows]
    step = events.array("step_id")[rows].astype(np.int64)
    order = np.lexsort((-end, start, step))
    ids, first = np.unique(step[order], return_index=True)
    at = order[first]
    last = end[at]
    shown = [str(number) for number in ids.tolist()]
    if found_by == "device" and ids.size:
        # Several devices show the same step.
        last = np.maximum.reduceat(end[order], first)
        shown = [name or "" for name in events.names("name").take(rows[at]).to_list()]
    return steps_columns(ids, shown, start[at], last, Names.constant(found_by, ids.size))


def named_runs(steps: Columns, events: Columns) -> Columns:
    """The table ``steps`` of runs of functions, by what TensorFlow says which function it was."""
    rows = np.flatnonzero(_named(events, _EAGER.fullmatch))
    start = events.array("start_ps")[rows]
    rows = rows[np.argsort(start, kind="stable")]
    start = events.array("start_ps")[rows]
    if not rows.size:
        return steps
    end = start + events.array("duration_ps")[rows]
    at = np.maximum(np.searchsorted(start, steps.array("start_ps"), side="right") - 1, 0)
    inside = (start[at] <= steps.array("start_ps")) & (end[at] >= steps.array("end_ps"))
    names = events.names("name").take(rows[at]).to_list()
    known = [
        match[1] if fits and (match := _EAGER.fullmatch(name or "")) else None
        for name, fits in zip(names, inside.tolist(), strict=True)
    ]
    if not any(known):
        return steps
    in_time = np.argsort(steps.array("start_ps"), kind="stable").tolist()
    shown = counted(known[row] or "function" for row in in_time)
    texts = [""] * steps.rows
    for row, text in zip(in_time, shown, strict=True):
        texts[row] = text
    return Columns({**steps.data, "name": Names.encode(texts)}, steps.valid)


def annotated_steps(events: Columns, lines: Columns, planes: Columns) -> Columns | None:
    """The ``steps`` table of a program that annotated each turn of its loop without a number.

    Such is what lies around calls of compiled functions, in nothing but frames of Python, is
    called the same twice or more, and is not called as a part of a turn; of several threads the
    one with the longest time. None without any. ``planes`` and ``lines`` are the whole tables.
    """
    line, start = events.array("line_id"), events.array("start_ps")
    end = start + events.array("duration_ps")
    on_host = _on(planes, lines, "host")
    calls = np.flatnonzero(_named(events, _CALL.match))
    best: AnyArray = calls[:0]
    most = 0
    for number in np.unique(line[calls]).tolist():
        if not on_host[number]:
            continue
        own = np.flatnonzero((line == number) & events.is_valid("start_ps") & (end > start))
        own = own[~_named(events.take(own), lambda name: name.startswith(_PYTHON))]
        own = outermost(own, start, events.array("duration_ps"))
        called = np.sort(start[calls[line[calls] == number]])
        first, last = (np.searchsorted(called, times[own]) for times in (start, end))
        own = own[last > first]
        own = turns(own, events.names("name").take(own), _CALL.match)
        length = int((end[own] - start[own]).sum())
        if length > most:
            best, most = own, length
    if not best.size:
        return None
    shown = counted(name or "" for name in events.names("name").take(best).to_list())
    ids, found_by = np.arange(best.size, dtype=np.int64), Names.constant("annotation", best.size)
    return steps_columns(ids, shown, start[best], end[best], found_by)


def steps_by_time(
    steps: Columns, events: Columns, lines: Columns, planes: Columns, correlation: Columns
) -> Int32Array:
    """For every event the row of its step, -1 for none: that in which an event of a host begins,
    and for work of a device that of the event with the same ``correlation`` (typed stats), of
    several that which began last before it.
    """
    at = step_at(steps, events.array("start_ps"))
    on_host = _on(planes, lines, "host")[events.array("line_id")]
    found = np.where(on_host & events.is_valid("start_ps"), at, np.int32(-1))
    event, number = correlation.array("event_id"), correlation.array("integer")
    launches, works = on_host[event], ~on_host[event]
    start = events.array("start_ps")[event]
    cause = causes(number[launches], start[launches], number[works], start[works])
    known = cause >= 0
    found[event[works][known]] = found[event[launches][cause[known]]]
    return found


def step_at(steps: Columns, time: AnyArray) -> Int32Array:
    """The place of the step in which each moment lies, -1 for none; steps follow one another."""
    if not steps.rows:
        return np.full(time.size, -1, np.int32)
    at = np.searchsorted(steps.array("start_ps"), time, side="right") - 1
    inside = (at >= 0) & (time < steps.array("end_ps")[np.maximum(at, 0)])
    return np.where(inside, at, -1).astype(np.int32)


def _on(planes: Columns, lines: Columns, kind: str) -> BoolArray:
    """Which lines are on planes of a kind."""
    kinds = planes.names("kind")
    own = kinds.codes == kinds.code_of(kind)
    found: BoolArray = own[lines.array("plane_id")]
    return found


def _named(events: Columns, fits: Any) -> BoolArray:
    """Which events have a name that fits."""
    return events.names("name").per_row(fits, np.bool_)
