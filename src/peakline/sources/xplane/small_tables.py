"""The tables of an XSpace that have few rows: planes, lines and steps."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from peakline.profile.columns import Columns, Names
from peakline.sources.xplane.grouping import Step
from peakline.sources.xplane.line_reader import LineFacts
from peakline.sources.xplane.names import IMPLICIT_ROOTS, TPU_STEP_LINES
from peakline.sources.xplane.outline import PlaneOutline
from peakline.sources.xplane.times import Far, nearest_duration, nearest_line, nearest_start

__all__ = ["lines_table", "planes_table", "recorded_steps", "steps_table"]


def planes_table(planes: list[PlaneOutline]) -> Columns:
    """The ``planes`` table."""
    return Columns(
        {
            "plane_id": np.arange(len(planes), dtype=np.int64),
            "name": Names.encode([plane.name for plane in planes]),
            "kind": Names.encode([plane.kind for plane in planes]),
            "native_id": np.array([plane.native_id for plane in planes], np.int64),
        }
    )


def lines_table(facts: list[list[LineFacts]], zero_ps: int) -> tuple[Columns, Far]:
    """The ``lines`` table from what the lines of each plane say, and how many of its times were
    out of reach.
    """
    every = [(plane, fact) for plane, some in enumerate(facts) for fact in some]
    times = [fact.timestamp_ns * 1000 - zero_ps for _, fact in every]
    starts = [nearest_line(time) for time in times]
    rows = zip(every, times, starts, strict=True)
    far = Far((plane, "line") for (plane, _), time, start in rows if time != start)
    table = Columns(
        {
            "line_id": np.arange(len(every), dtype=np.int64),
            "plane_id": np.array([plane for plane, _ in every], np.int64),
            "name": Names.encode([fact.shown for _, fact in every]),
            "start_ps": np.array(starts, np.int64),
            "native_id": np.array([fact.native_id for _, fact in every], np.int64),
        }
    )
    return table, far


def steps_table(steps: Iterable[Step], zero_ps: int) -> tuple[Columns, Far]:
    """The ``steps`` table, and how many of its times were out of reach."""
    found = sorted(steps, key=lambda step: step.step_id)
    begins, ends, far = list[int](), list[int](), Far()
    for step in found:
        base = step.line_ps - zero_ps
        begin, length = nearest_start(base, step.offset_ps), nearest_duration(step.length_ps)
        begins.append(begin)
        ends.append(begin + length)
        if begin != base + step.offset_ps:
            far[step.plane, "start"] += 1
        if length != step.length_ps:
            far[step.plane, "duration"] += 1
    table = Columns(
        {
            "step_id": np.array([step.step_id for step in found], np.int64),
            "name": Names.encode([step.name for step in found]),
            "start_ps": np.array(begins, np.int64),
            "end_ps": np.array(ends, np.int64),
            "found_by": Names.encode([step.found_by for step in found]),
            "is_cut_off": np.zeros(len(found), np.bool_),
        }
    )
    return table, far


def recorded_steps(events: Columns, lines: Columns, planes: Columns) -> Columns:
    """The ``steps`` table of a file whose events say their group themselves.

    A group is a step where the ``Steps`` line of a device shows it; without such a line where the
    outermost event of a thread that has the group is one that begins a step.
    """
    kind = planes.names("kind").take(lines.array("plane_id"))
    named = np.array([name in TPU_STEP_LINES for name in lines.names("name").to_list()], np.bool_)
    has = events.is_valid("step_id") & events.is_valid("start_ps")
    found_by = "device"
    rows = np.flatnonzero(has & (named & _is(kind, "device"))[events.array("line_id")])
    if not rows.size:
        found_by = "function"
        names = events.names("name")
        begins = np.array([*(name in IMPLICIT_ROOTS for name in names.values), False], np.bool_)
        on_host = _is(kind, "host")[events.array("line_id")]
        rows = np.flatnonzero(has & on_host & begins[names.codes])
    own = events.take(rows)
    start = own.array("start_ps")
    end = start + own.array("duration_ps")
    step = own.array("step_id").astype(np.int64)
    order = np.lexsort((-end, start, step))
    ids, first = np.unique(step[order], return_index=True)
    if found_by == "device":
        last = np.maximum.reduceat(end[order], first) if ids.size else end
    else:
        last = end[order[first]]
    rows = order[first]
    return Columns(
        {
            "step_id": ids,
            "name": own.names("name").take(rows)
            if found_by == "device"
            else Names.encode([str(number) for number in ids.tolist()]),
            "start_ps": start[rows],
            "end_ps": last,
            "found_by": Names.constant(found_by, ids.size),
            "is_cut_off": np.zeros(ids.size, np.bool_),
        }
    )


def _is(names: Names, text: str) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = names.codes == names.code_of(text)
    return found
