"""The ``events`` table without the columns that need the events to be nested and grouped.

Names, times and lines stand in the file as they are: one decoding of exactly the fields that the
wanted columns are made from, without looking at any stat.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import numpy.typing as npt

from peakline import schema
from peakline.profile.columns import Columns, Names
from peakline.sources.files import SourceFile
from peakline.sources.xplane.lines import LINE_FACTS, LineFacts, line_facts, read_headers
from peakline.sources.xplane.outline import Outline, PlaneOutline
from peakline.sources.xplane.places import names_of_types, places_of, type_bases
from peakline.sources.xplane.store import Found
from peakline.sources.xplane.times import OCCURRENCES, Far, limit_durations, place_runs
from peakline.wire import Damage, Plan, WireTable, stream

__all__ = ["PLAIN", "read_plain_events"]

_Array = npt.NDArray[Any]
PLAIN = frozenset(("event_id", "line_id", "name", "start_ps", "duration_ps", "category", "type_id"))
"""Columns that this module can read."""
_FIELDS = {
    "name": ("events.metadata_id",),
    "type_id": ("events.metadata_id",),
    "start_ps": ("events.data",),
    "duration_ps": ("events.duration_ps",),
}
_OFFSET = 2


def read_plain_events(
    file: SourceFile, outline: Outline, zero_ps: int, wanted: AbstractSet[str]
) -> tuple[Columns, dict[int, Damage], dict[int, list[LineFacts]], Far]:
    """The ``wanted`` columns of ``events`` in file order (all of `PLAIN`); by plane the damage,
    what its lines say about themselves, and how many times were out of reach.

    Rows and values are those of the whole table. The file is read piece by piece into columns that
    are made once.
    """
    fields = {field: None for name in _FIELDS if name in wanted for field in _FIELDS[name]}
    plan = Plan(schema.descriptor("tensorflow.profiler.XLine"), (*LINE_FACTS, "events.@", *fields))
    found, counts, far = Found(), [np.zeros(0, np.int64)], Far()
    damage: dict[int, Damage] = {}
    facts: dict[int, list[LineFacts]] = {}
    bases = type_bases(outline)
    all_bytes = float(sum(int(plane.lines.length.sum()) for plane in outline.planes)) or 1.0
    before = 0.0
    for plane in outline.planes:
        bytes_here = float(plane.lines.length.sum())
        first = int(plane.lines.start[0]) if len(plane.lines) else 0
        counts.append(np.zeros(len(plane.lines), np.int64))
        damage[plane.index] = Damage()
        line_bases = _line_bases(file, plane, zero_ps) if "start_ps" in wanted else None
        for part in stream(file.buffer, plan, plane.lines):
            damage[plane.index] += part.damage
            events = part.tables["events"]
            read = min(bytes_here, float(part.position - first))
            found.reserve("event", events.rows, min(1.0, max(before + read, 1.0) / all_bytes))
            far += _add(found, events, plane, int(bases[plane.index]), line_bases, wanted)
            if events.rows:
                counts[-1] += np.bincount(events.parent, minlength=counts[-1].size)
            file.release(part.position)
        facts[plane.index] = line_facts(file.buffer, part.tables[""])
        before += bytes_here
    columns = _as_columns(found, outline, np.concatenate(counts), wanted)
    return columns, damage, facts, far


def _add(
    found: Found,
    events: WireTable,
    plane: PlaneOutline,
    first_type: int,
    line_bases: list[int] | None,
    wanted: AbstractSet[str],
) -> Far:
    """Write one piece's events behind those that are there; which of its times were too far."""
    rows, far = events.rows, Far()
    if "name" in wanted or "type_id" in wanted:
        types = found.free("event_place")[:rows]
        types[:] = places_of(events.array("metadata_id"), plane)
        types[types >= 0] += np.int32(first_type)
    if "duration_ps" in wanted:
        length = found.free("event_length")[:rows]
        length[:] = events.array("duration_ps")
        far[plane.index, "duration"] = limit_durations(length)
    if line_bases is not None:
        data = events.union("data")
        found.free("event_case")[:rows] = data.case
        begin = found.free("event_begin")[:rows]
        begin[:] = data.bits
        begin[data.case != _OFFSET] = 0
        far[plane.index, "start"] = place_runs(begin, events.parent, line_bases, data.case)
    found.used["event"] += rows
    return far


def _line_bases(file: SourceFile, plane: PlaneOutline, zero_ps: int) -> list[int]:
    """When each line begins, on the profile's clock."""
    return [h.timestamp_ns * 1000 - zero_ps for h in read_headers(file.buffer, plane)]


def _as_columns(
    found: Found, outline: Outline, counts: _Array, wanted: AbstractSet[str]
) -> Columns:
    rows = found.used["event"]
    data: dict[str, _Array | Names] = {}
    valid: dict[str, npt.NDArray[np.bool_]] = {}
    if "event_id" in wanted:
        data["event_id"] = np.arange(rows, dtype=np.int64)
    if "line_id" in wanted:
        data["line_id"] = np.repeat(np.arange(counts.size, dtype=np.int32), counts)
    types = found.get("event_place")
    if "name" in wanted:
        data["name"] = names_of_types(types, outline)
    if "type_id" in wanted:
        data["type_id"] = types
        valid["type_id"] = types >= 0
    if "start_ps" in wanted:
        data["start_ps"] = found.get("event_begin")
        valid["start_ps"] = found.get("event_case") != OCCURRENCES
    if "duration_ps" in wanted:
        data["duration_ps"] = found.get("event_length")
    return Columns(data, {name: mask for name, mask in valid.items() if not mask.all()})
