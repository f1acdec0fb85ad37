"""What a reader of lines takes and gives: numbers of ids and events, parts of lines, facts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, Int32Array, Int64Array, UInt8Array
from peakline.formats.xplane.outline import Outline, PlaneOutline
from peakline.formats.xplane.times import FARTHEST_PS, LONGEST_PS, nearest_line
from peakline.tables.columns import Names
from peakline.tables.joins import positions
from peakline.wire import Buffer, Spans, Union


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


_MOST_IDS = 1 << 20
"""Ids of metadata are looked up in a table where they are below this, as all are in practice."""
NO_END = -FARTHEST_PS
"""Stands for the end of a line without events."""
Stats = tuple[AnyArray, ...]


@dataclass(frozen=True)
class LineFacts:
    """What a line says about itself; ``end_ps`` is when its last event ends, in ps after the
    line's time (`NO_END` without any, and where the events have not been read).
    """

    native_id: int
    name: str
    display_name: str
    timestamp_ns: int
    end_ps: int = NO_END

    @property
    def shown(self) -> str:
        """The name to display."""
        return self.display_name or self.name

    def last_end_ps(self, zero_ps: int) -> int:
        """When its last event ends, in ps after the profile's start; 0 without any."""
        end = nearest_line(self.timestamp_ns * 1000 - zero_ps) + self.end_ps
        return min(max(end, 0), FARTHEST_PS + LONGEST_PS)


class Lookup:
    """Small numbers for integer keys, by table where the keys are small; ``other`` for any key
    that has none.
    """

    def __init__(self, values: Mapping[int, int], other: int = 0) -> None:
        self._other = np.uint8(other)
        self.keys = np.array(sorted(values), np.int64)
        self._values = np.array([values[key] for key in self.keys.tolist()], np.uint8)
        self.table: AnyArray | None = None
        """The value by key; None where keys are too large, or negative."""
        if not self.keys.size or (self.keys[0] >= 0 and self.keys[-1] < _MOST_IDS):
            # One more than the largest key stands for all that are larger.
            self.table = np.full(int(self.keys.max(initial=-1)) + 2, other, np.uint8)
            self.table[self.keys] = self._values

    def of(self, keys: AnyArray) -> UInt8Array:
        """The value per key."""
        if self.table is not None:
            last = np.uint64(self.table.size - 1)
            return self.table[np.minimum(keys.view(np.uint64), last).view(np.int64)]
        at = np.minimum(np.searchsorted(self.keys, keys), self.keys.size - 1)
        return np.where(self.keys[at] == keys, self._values[at], self._other)


@dataclass(frozen=True, eq=False)
class LinePart:
    """Some events of one line, in file order: ``line`` is the number of its span.

    Columns are as `line_decode` writes them, valid until the next part is read. Offsets of
    texts count from the beginning of the file; ``buffer`` holds the bytes from ``base`` on, those
    of the part among them. ``position`` is how far the file has been read.
    """

    line: int
    begins: AnyArray
    ids: AnyArray
    kinds: AnyArray
    case: AnyArray
    bits: AnyArray
    duration: AnyArray
    stats: Stats
    """Of every stat: its event, id, role, and case, bits and length of its value."""
    memory: int
    """How many of the events allocate or free memory."""
    buffer: Buffer
    base: int
    position: int

    def pieces(self, spans: Spans) -> Iterator[tuple[Buffer, Spans]]:
        """The bytes of texts of the part, as `SourceFile.pieces`: in one piece."""
        yield self.buffer, Spans(spans.start - self.base, spans.length)


@dataclass(frozen=True, eq=False)
class StatRows:
    """Stats of one plane's events as they stand in the file.

    ``event`` is the number of the event in the plane, ascending, ``number`` the stat's id.
    """

    plane: PlaneOutline
    event: AnyArray
    number: Int64Array
    value: Union

    def named(self, wanted: AbstractSet[str]) -> StatRows:
        """Those that have one of the names ``wanted``."""
        known = self.plane.stat_names.items()
        ids = [number for number, name in known if name in wanted]
        rows = np.flatnonzero(np.isin(self.number, ids))
        return StatRows(self.plane, self.event[rows], self.number[rows], self.value.take(rows))
