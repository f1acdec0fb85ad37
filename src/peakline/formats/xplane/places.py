"""What an event is by number: its metadata's place in the plane, its type, its name's code."""

from __future__ import annotations

import numpy as np

from peakline.arrays import Int32Array, Int64Array
from peakline.formats.xplane.outline import Outline, PlaneOutline
from peakline.tables.columns import Names
from peakline.tables.joins import positions


def type_bases(outline: Outline) -> Int64Array:
    """The first ``type_id`` of every plane, and the end of the last.

    Types are numbered by plane, and within one in the order of their metadata's ids.
    """
    counts = [0, *(len(plane.event_names) for plane in outline.planes)]
    return np.cumsum(counts)


def names_of_types(types: Int32Array, outline: Outline) -> Names:
    """The names of events by the row of their type; one whose type is -1 has the empty name."""
    table, values = name_codes(outline)
    return named(table[types], values)


def name_codes(outline: Outline) -> tuple[Int32Array, list[str]]:
    """The code of the name of every type, by the row of the type, and the names by code.

    Behind the types comes the code of the empty name, for events without a type; where no type has
    that name it is one more than there are names (see `named`).
    """
    names: dict[str, int] = {}
    codes = [
        names.setdefault(plane.event_names[number], len(names))
        for plane in outline.planes
        for number in plane.event_ids.tolist()
    ]
    return np.array([*codes, names.get("", len(names))], np.int32), list(names)


def named(codes: Int32Array, values: list[str]) -> Names:
    """Names by codes of `name_codes`."""
    if codes.size and int(codes.max()) == len(values):
        values = [*values, ""]
    return Names(codes, values)


def places_of(metadata: Int64Array, plane: PlaneOutline) -> Int32Array:
    """The place of each metadata id among the plane's, in order; -1 for one it does not have."""
    table = plane.event_places
    if table is not None:
        last = np.uint64(table.size - 1)
        return table[np.minimum(metadata.astype(np.uint64, copy=False), last).view(np.int64)]
    return positions(plane.event_ids, metadata).astype(np.int32)
