"""Track events of Perfetto: slices and marks with their arguments and arrows."""

from __future__ import annotations

import numpy as np

from peakline.arrays import AnyArray, Int64Array
from peakline.kernels.trace_layout import END
from peakline.schema import descriptor
from peakline.tables import Columns
from peakline.tables.joins import ranges
from peakline.trace.nesting import Lanes
from peakline.wire.encode import Field, Messages, Number, Spans, encode, fixed

INSTANT, COUNTER = 3, 4
_SLICE_BEGIN, _SLICE_END = 1, 2
_TYPE_OF = np.array([_SLICE_BEGIN, _SLICE_END, INSTANT], np.uint8)


def field_numbers(message: str) -> dict[str, int]:
    """The field numbers of one of Perfetto's messages."""
    fields = descriptor(f"perfetto.protos.{message}").fields
    return {field.name: field.number for field in fields}


PACKET, EVENT = field_numbers("TracePacket"), field_numbers("TrackEvent")
_ANNOTATION = field_numbers("DebugAnnotation")


class Tracks:
    """The track of every line and lane."""

    def __init__(self, tracks: dict[tuple[int, int], int]) -> None:
        lines = max((line for line, _ in tracks), default=-1) + 1
        lanes = np.zeros(lines + 1, np.int64)
        for line, lane in tracks:
            lanes[line] = max(lanes[line], lane + 1)
        self._first = np.cumsum(lanes) - lanes
        self._uuids = np.zeros(int(lanes.sum()), np.int64)
        for (line, lane), uuid in tracks.items():
            self._uuids[self._first[line] + lane] = uuid

    def of(self, line: AnyArray, lane: AnyArray) -> Int64Array:
        """The number of each track."""
        uuids: Int64Array = self._uuids[self._first[line] + lane]
        return uuids


class EventPackets:
    """Makes the track events of a profile's events."""

    def __init__(
        self, events: Columns, slices: Lanes, tracks: Tracks, names: int,
        categories: int | None, arguments: Arguments | None, arrows: Arrows | None,
    ) -> None:  # fmt: skip
        self._slices, self._tracks = slices, tracks
        self._name, self._first_name = events.names("name"), names
        self._category = None if categories is None else events.names("category")
        self._first_category = categories or 0
        self._arguments, self._arrows = arguments, arrows

    def of(self, part: slice) -> tuple[AnyArray, Messages]:
        """Times and track events at some of the moments of `Lanes`."""
        slices = self._slices
        moments = slices.moments[part]
        event, kind = moments >> 2, moments & 3
        ends = kind == END
        row = slices.rows[event]
        time = np.where(ends, slices.end[event], slices.start[event])
        name = self._name.codes[row].astype(np.int64)
        name = np.where(name < 0, len(self._name.values), name) + self._first_name
        fields: list[Field] = [
            Number(EVENT["type"], _TYPE_OF[kind]),
            Number(EVENT["name_iid"], name, ~ends),
            Number(EVENT["track_uuid"], self._tracks.of(slices.line[event], slices.lane[event])),
        ]
        if self._category is not None:
            codes = self._category.codes[row].astype(np.int64)
            number = codes + self._first_category
            fields.append(Number(EVENT["category_iids"], number, ~ends & (codes >= 0)))
        begins = np.flatnonzero(~ends)
        if self._arguments is not None:
            fields.append(self._arguments.of(row, begins))
        if self._arrows is not None:
            fields.append(self._arrows.of(event, begins))
        return time, encode(moments.size, fields, frame=PACKET["track_event"])


def _at(rows: int, chosen: AnyArray, many: AnyArray, messages: Messages) -> Spans:
    """A repeated field of some rows: ``many`` messages for each of ``chosen``, in order."""
    count = np.zeros(rows + 1, np.int64)
    count[chosen + 1] = many
    return messages.of(np.cumsum(count))


class Arguments:
    """The stats of events as debug annotations."""

    def __init__(self, stats: Columns, events: int, keys: int, values: int) -> None:
        self._first = np.searchsorted(stats.array("event_id"), np.arange(events + 1))
        self._name, self._value = stats.names("name"), stats.names("value")
        self._keys, self._values = keys, values

    def of(self, row: AnyArray, begins: AnyArray) -> Spans:
        """Those of the events ``row[begins]``, where they begin."""
        first, last = self._first[row[begins]], self._first[row[begins] + 1]
        stats = ranges(first, last)
        value = self._value.codes[stats].astype(np.int64)
        value = np.where(value < 0, len(self._value.values), value) + self._values
        name = self._name.codes[stats].astype(np.int64) + self._keys
        each = encode(
            stats.size,
            [Number(_ANNOTATION["name_iid"], name), Number(_ANNOTATION["string_value_iid"], value)],
            frame=EVENT["debug_annotations"],
        )
        return _at(row.size, begins, last - first, each)


class Arrows:
    """The ends of arrows at the slices that they are bound to."""

    def __init__(self, flows: Columns, owner: AnyArray, slices: int) -> None:
        order = np.argsort(owner, kind="stable")
        order = order[owner[order] >= 0]
        self._flow = flows.array("flow_id")[order]
        self._first = np.searchsorted(owner[order], np.arange(slices + 1))

    def of(self, event: AnyArray, begins: AnyArray) -> Spans:
        """Those of the slices ``event[begins]``."""
        first, last = self._first[event[begins]], self._first[event[begins] + 1]
        ids = flow_ids(self._flow[ranges(first, last)])
        return _at(event.size, begins, last - first, ids)


def flow_ids(flow: AnyArray) -> Messages:
    """Numbers of arrows; 0 is never one."""
    return fixed(EVENT["flow_ids"], flow.astype(np.int64) + 1)
