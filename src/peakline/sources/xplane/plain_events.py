"""The ``events`` table without the columns that need the events to be nested and grouped.

Names, times and lines stand in the file as they are: one decoding of exactly the fields that the
wanted columns are made from.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import numpy.typing as npt

from peakline import schema
from peakline.profile.columns import Columns, Names
from peakline.sources.files import SourceFile
from peakline.sources.xplane.lines import read_headers
from peakline.sources.xplane.outline import Outline, PlaneOutline
from peakline.sources.xplane.sorting import wrap
from peakline.wire import Damage, Plan, WireTable, decode

__all__ = ["PLAIN", "read_plain_events"]

_Array = npt.NDArray[Any]
PLAIN = frozenset(("event_id", "line_id", "name", "start_ps", "duration_ps", "category"))
"""Columns that this module can read."""
_FIELDS = {
    "name": ("events.metadata_id",),
    "start_ps": ("events.data",),
    "duration_ps": ("events.duration_ps",),
}
_OFFSET, _OCCURRENCES = 2, 5
_MOST_IDS = 1 << 22


def read_plain_events(
    file: SourceFile, outline: Outline, zero_ps: int, wanted: AbstractSet[str]
) -> tuple[Columns, dict[int, Damage]]:
    """The ``wanted`` columns of ``events`` in file order (all of `PLAIN`), and the damage by plane.

    Rows and values are those of the whole table.
    """
    fields = [field for name in _FIELDS if name in wanted for field in _FIELDS[name]]
    plan = Plan(schema.descriptor("tensorflow.profiler.XLine"), ("events.@", *fields))
    names: dict[str, int] = {}
    parts: dict[str, list[_Array]] = {name: [] for name in wanted}
    timed: list[_Array] = []
    damage: dict[int, Damage] = {}
    rows = 0
    for plane in outline.planes:
        decoded = decode(file.buffer, plan, plane.lines)
        damage[plane.index] = decoded.damage
        events = decoded["events"]
        rows += events.rows
        if "line_id" in wanted:
            parts["line_id"].append(events.parent + np.int64(plane.first_line))
        if "name" in wanted:
            parts["name"].append(_codes(events.array("metadata_id"), plane, names))
        if "start_ps" in wanted:
            start, has_time = _starts(file, plane, events, zero_ps)
            parts["start_ps"].append(start)
            timed.append(has_time)
        if "duration_ps" in wanted:
            parts["duration_ps"].append(events.array("duration_ps"))
    data: dict[str, _Array | Names] = {}
    if "event_id" in wanted:
        data["event_id"] = np.arange(rows, dtype=np.int64)
    for name in ("line_id", "name", "start_ps", "duration_ps"):
        if name not in wanted:
            continue
        if name == "name":
            data[name] = Names(_all(parts[name], np.int32), list(names))
        else:
            data[name] = _all(parts[name], np.int64)
    valid = {}
    if "start_ps" in wanted:
        has_time = _all(timed, np.bool_)
        if not has_time.all():
            valid["start_ps"] = has_time
    return Columns(data, valid), damage


def _codes(metadata: _Array, plane: PlaneOutline, names: dict[str, int]) -> _Array:
    """The code of each event's name; metadata that the file does not give has the empty name."""
    ids = np.array(sorted(plane.event_names), np.int64)
    known = np.array(
        [names.setdefault(plane.event_names[int(i)], len(names)) for i in ids], np.int32
    )
    unknown = -1
    if ids.size and ids[0] >= 0 and ids[-1] < _MOST_IDS:
        table = np.full(int(ids[-1]) + 2, unknown, np.int32)
        table[ids] = known
        last = np.uint64(table.size - 1)
        codes = table[np.minimum(metadata.astype(np.uint64, copy=False), last).view(np.int64)]
    else:
        at = np.minimum(np.searchsorted(ids, metadata), max(ids.size - 1, 0))
        found = ids[at] == metadata if ids.size else np.zeros(metadata.size, np.bool_)
        codes = np.where(found, known[at] if ids.size else unknown, unknown).astype(np.int32)
    if codes.size and codes.min() < 0:
        codes[codes < 0] = names.setdefault("", len(names))
    return codes


def _starts(
    file: SourceFile, plane: PlaneOutline, events: WireTable, zero_ps: int
) -> tuple[_Array, _Array]:
    """Start on the common clock, and whether the event has a time at all."""
    data = events.union("data")
    bases = np.array(
        [wrap(h.timestamp_ns * 1000 - zero_ps) for h in read_headers(file.buffer, plane)], np.int64
    )
    start = np.where(data.case == _OFFSET, data.bits, 0).astype(np.int64, copy=False)
    with np.errstate(over="ignore"):
        # Lines are long runs: one addition per line instead of a gather.
        bounds = np.searchsorted(events.parent, np.arange(bases.size + 1))
        for base, lo, hi in zip(bases, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            start[lo:hi] += base
    return start, data.case != _OCCURRENCES


def _all(parts: list[_Array], dtype: Any) -> _Array:
    joined: _Array = np.concatenate([np.zeros(0, dtype), *parts], dtype=dtype)
    return joined
