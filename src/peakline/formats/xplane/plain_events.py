"""The ``events`` table without the columns that need the events to be nested and grouped.

Names, times and lines stand in the file as they are: one decoding that passes over all stats.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from peakline.formats.common.files import SourceFile
from peakline.formats.xplane.line_parts import LineFacts, LinePart
from peakline.formats.xplane.line_reader import LineReader
from peakline.formats.xplane.outline import Outline, PlaneOutline
from peakline.formats.xplane.places import (
    name_codes,
    named,
    names_of_types,
    places_of,
    type_bases,
)
from peakline.formats.xplane.store import Found
from peakline.formats.xplane.times import OCCURRENCES, OFFSET, Far, limit_durations, place
from peakline.tables.columns import Columns, Names
from peakline.wire import Damage

PLAIN = frozenset(("event_id", "line_id", "name", "start_ps", "duration_ps", "category", "type_id"))
"""Columns that this module can read."""


def read_plain_events(
    file: SourceFile, outline: Outline, zero_ps: int, wanted: AbstractSet[str]
) -> tuple[Columns, dict[int, Damage], dict[int, list[LineFacts]], Far]:
    """The ``wanted`` columns of ``events`` in file order (all of `PLAIN`); by plane the damage,
    what its lines say about themselves, and how many times were out of reach.

    Rows and values are those of the whole table. The file is read piece by piece into columns that
    are made once.
    """
    found, counts, far = Found(), [np.zeros(0, np.int64)], Far()
    damage: dict[int, Damage] = {}
    facts: dict[int, list[LineFacts]] = {}
    bases = type_bases(outline)
    codes: Int32Array = np.zeros(0, np.int32)
    values: list[str] | None = None
    if "name" in wanted and "type_id" not in wanted:
        # Then a column of types is not needed either.
        codes, values = name_codes(outline)
    all_bytes = float(sum(int(plane.lines.length.sum()) for plane in outline.planes)) or 1.0
    before = 0.0
    for plane in outline.with_lines:
        bytes_here = float(plane.lines.length.sum())
        first = int(plane.lines.start[0]) if len(plane.lines) else 0
        counts.append(np.zeros(len(plane.lines), np.int64))
        base, after = bases[plane.index : plane.index + 2].tolist()
        here = np.append(codes[base:after], codes[-1:])
        line_bases = None
        if "start_ps" in wanted:
            # When each line begins, on the profile's clock.
            headers = LineReader(file, plane.lines).read_facts()
            line_bases = [line.timestamp_ns * 1000 - zero_ps for line in headers]
        reader = LineReader(file, plane.lines)
        for part in reader.parts():
            read = min(bytes_here, float(part.position - first))
            found.reserve("event", part.ids.size, min(1.0, max(before + read, 1.0) / all_bytes))
            _add_types(found.free("event_place"), part, plane, base, here, wanted)
            far += _add(found, part, plane, line_bases, wanted)
            counts[-1][part.line] += part.ids.size
        damage[plane.index], facts[plane.index] = reader.damage, reader.facts
        before += bytes_here
    columns = _as_columns(found, outline, np.concatenate(counts), values, wanted)
    return columns, damage, facts, far


def _add_types(
    types: Int32Array,
    part: LinePart,
    plane: PlaneOutline,
    first_type: int,
    codes: Int32Array,
    wanted: AbstractSet[str],
) -> None:
    """Write the type of each event of one part, or the code of its name, as far as is ``wanted``;
    ``codes`` are those of the plane's types, and at the end that of no type.
    """
    types = types[: part.ids.size]
    if "type_id" in wanted:
        types[:] = places_of(part.ids, plane)
        types[types >= 0] += np.int32(first_type)
    elif "name" in wanted:
        types[:] = codes[places_of(part.ids, plane)]


def _add(
    found: Found,
    part: LinePart,
    plane: PlaneOutline,
    line_bases: list[int] | None,
    wanted: AbstractSet[str],
) -> Far:
    """Write one part's events behind those that are there; which of its times were too far."""
    rows, far = part.ids.size, Far()
    if "duration_ps" in wanted:
        length = found.free("event_length")[:rows]
        length[:] = part.duration
        far[plane.index, "duration"] = limit_durations(length)
    if line_bases is not None:
        found.free("event_case")[:rows] = part.case
        begin = found.free("event_begin")[:rows]
        begin[:] = part.bits
        begin[part.case != OFFSET] = 0
        far[plane.index, "start"] = place(begin, line_bases[part.line], part.case)
    found.used["event"] += rows
    return far


def _as_columns(
    found: Found,
    outline: Outline,
    counts: Int64Array,
    values: list[str] | None,
    wanted: AbstractSet[str],
) -> Columns:
    """``values`` are the names where their codes were read, not the types."""
    rows = found.used["event"]
    data: dict[str, AnyArray | Names] = {}
    valid: dict[str, BoolArray] = {}
    if "event_id" in wanted:
        data["event_id"] = np.arange(rows, dtype=np.int64)
    if "line_id" in wanted:
        data["line_id"] = np.repeat(np.arange(counts.size, dtype=np.int32), counts)
    types = found.get("event_place")
    if "name" in wanted:
        data["name"] = names_of_types(types, outline) if values is None else named(types, values)
    if "type_id" in wanted:
        data["type_id"] = types
        valid["type_id"] = types >= 0
    if "start_ps" in wanted:
        data["start_ps"] = found.get("event_begin")
        valid["start_ps"] = found.get("event_case") != OCCURRENCES
    if "duration_ps" in wanted:
        data["duration_ps"] = found.get("event_length")
    return Columns(data, {name: mask for name, mask in valid.items() if not mask.all()})
