"""The tables of an XSpace that have few rows: planes, lines and steps."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from peakline.formats.common.annotations import steps_columns
from peakline.formats.xplane.line_parts import LineFacts
from peakline.formats.xplane.opening import Step
from peakline.formats.xplane.outline import PlaneOutline
from peakline.formats.xplane.times import Far, nearest_duration, nearest_line, nearest_start
from peakline.tables.columns import Columns, Names


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
    ids = np.array([step.step_id for step in found], np.int64)
    start, end = np.array(begins, np.int64), np.array(ends, np.int64)
    found_by = Names.encode([step.found_by for step in found])
    return steps_columns(ids, [step.name for step in found], start, end, found_by), far
