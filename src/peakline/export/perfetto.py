"""Perfetto's own trace: slices that nest, marks, arrows, and counters of memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.deadline import check_deadline
from peakline.export.ranks import JobTimelines, RankCollectives, RankTimeline
from peakline.export.registry import Exporter, Options, Sink
from peakline.export.timeline import TIMELINE_TABLES, Timeline, read_timeline
from peakline.kernels.trace_layout import BEGIN, END
from peakline.schema import TracePacket, descriptor
from peakline.tables import Columns, Profile
from peakline.tables.columns import Names
from peakline.tables.joins import ranges
from peakline.trace.nesting import Lanes, bind_flows, lanes_of
from peakline.viewer.events import TraceRows
from peakline.wire import threads
from peakline.wire.encode import Field, Messages, Number, Pool, Spans, encode, fixed, message
from peakline.wire.tables import varint

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
        meetings: Meetings | None,
    ) -> None:  # fmt: skip
        self._meetings = meetings
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
        if self._meetings is not None:
            fields += self._meetings.of(row, begins, np.flatnonzero(kind != BEGIN))
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
    """The ends of arrows at the slices that they are bound to; ``base`` is their first number."""

    def __init__(self, flows: Columns, owner: AnyArray, slices: int, base: int) -> None:
        self._base = base
        order = np.argsort(owner, kind="stable")
        order = order[owner[order] >= 0]
        self._flow = flows.array("flow_id")[order]
        self._first = np.searchsorted(owner[order], np.arange(slices + 1))

    def of(self, event: AnyArray, begins: AnyArray) -> Spans:
        """Those of the slices ``event[begins]``."""
        first, last = self._first[event[begins]], self._first[event[begins] + 1]
        ids = flow_ids(self._flow[ranges(first, last)], self._base)
        return _at(event.size, begins, last - first, ids)


def flow_ids(flow: AnyArray, base: int) -> Messages:
    """Numbers of arrows of one profile; 0 is never one."""
    return fixed(EVENT["flow_ids"], flow.astype(np.int64) + base)


class Meetings:
    """What is known of a rank's collectives: arguments where they begin, and arrows to those who
    waited for it. An arrow leaves where the slice begins and ends where the slice of who waited
    does: Perfetto takes an arrow in order of time, and who waited had begun before.
    """

    def __init__(self, own: RankCollectives, events: int, *, args: bool) -> None:
        self._own = own
        self._begins, self._ends = (np.full(events, -1, np.int64) for _ in range(2))
        self._begins[own.event] = np.arange(own.event.size)
        has_end = np.flatnonzero((own.ends >= 0) & (own.into >= 0))
        self._ends[own.ends[has_end]] = has_end
        self._out = fixed(EVENT["flow_ids"], _BETWEEN_RANKS + own.out)
        self._into = fixed(EVENT["terminating_flow_ids"], _BETWEEN_RANKS + own.into)
        self._args: list[tuple[BoolArray, Messages]] = []
        if args:
            texts = Pool(_ANNOTATION["string_value"], own.group.values).of(own.group.codes)
            self._add("group", texts, own.group.codes >= 0)
            for name, value, is_known in (
                ("sequence", own.sequence, own.sequence >= 0),
                ("bytes", own.size_bytes, own.size_bytes >= 0),
                ("late_ns", own.late_ps // 1000, np.ones(own.event.size, np.bool_)),
                ("wait_ns", own.wait_ps // 1000, own.wait_ps >= 0),
            ):
                self._add(name, Number(_ANNOTATION["int_value"], value, is_known), is_known)

    def _add(self, name: str, value: Field, is_known: BoolArray) -> None:
        rows = is_known.size
        title = Spans.same(message(_ANNOTATION["name"], name.encode()), rows)
        each = encode(rows, [title, value], frame=EVENT["debug_annotations"])
        self._args.append((is_known, each))

    def of(self, row: AnyArray, begins: AnyArray, ends: AnyArray) -> list[Field]:
        """The fields of the events ``row``, of which ``begins`` begin and ``ends`` end."""
        place = np.full(row.size, -1, np.int64)
        place[begins] = self._begins[row[begins]]
        here = np.flatnonzero(place >= 0)
        first, last = (self._own.first[place[here] + k] for k in (0, 1))
        many = ranges(first, last)
        result: list[Field] = []
        for is_known, each in self._args:
            has_it = place >= 0
            has_it[here] = is_known[place[here]]
            result.append(each.at(np.where(has_it, place, -1)))
        ids = encode(many.size, [self._out.at(many)])
        result.append(_at(row.size, here, last - first, ids))
        place = np.full(row.size, -1, np.int64)
        place[ends] = self._ends[row[ends]]
        result.append(self._into.at(place))
        return result


_BETWEEN_RANKS = 1 << 62
"""The first number of an arrow from rank to rank: no profile has so many."""


_ROWS = 1 << 16
"""Packets made at a time."""
_SEQUENCE = 1
_BYTES_UNIT = 3

_INTERNED = field_numbers("InternedData")
_IN_TRACE = field_numbers("Trace")["packet"]


def _export(profile: Profile, sink: Sink, options: Options) -> None:
    """For Perfetto's page and trace processor, in the encoding it reads fastest."""
    timeline = read_timeline(profile, args=options.args, allocator=options.allocator)
    sink(lambda stream: stream.writelines(_Writer(timeline, timeline.first_ps, _Numbers()).parts()))


def _export_ranks(ranks: JobTimelines, sink: Sink, options: Options) -> None:
    """Each rank is a process, with its planes within it; read and written one after the other."""
    sink(lambda stream: stream.writelines(_parts_of_ranks(ranks, options)))


def _parts_of_ranks(ranks: JobTimelines, options: Options) -> Iterator[bytes | memoryview]:
    order = TracePacket(trusted_packet_sequence_id=_SEQUENCE)
    order.track_descriptor.uuid = 0
    order.track_descriptor.process_ordering = order.track_descriptor.PROCESS_ORDERING_EXPLICIT
    yield _framed(order)
    zero, numbers = ranks.zero_ps, _Numbers()
    for place, reading in enumerate(ranks.each(args=options.args, allocator=options.allocator)):
        with reading as rank:
            yield from _Writer(rank.timeline, zero, numbers, place, rank, args=options.args).parts()
        # Released before the next is read.
        del rank


@dataclass
class _Numbers:
    """What no other rank of the trace may have: the last track's, and the next arrow's."""

    track: int = 0
    flow: int = 1


class _Writer:
    """Writes one timeline; that of a ``rank`` as the process of number ``place``."""

    def __init__(
        self, timeline: Timeline, zero_ps: int, numbers: _Numbers, place: int = 0,
        rank: RankTimeline | None = None, *, args: bool = True,
    ) -> None:  # fmt: skip
        self._timeline, self._zero, self._numbers = timeline, zero_ps, numbers
        self._place, self._rank, self._args = place, rank, args
        self._sequence = _SEQUENCE + place
        self._rows = TraceRows(timeline.planes, timeline.lines)
        self._process = 0
        self._names = 0
        flags = PACKET["sequence_flags"] << 3, PACKET["trusted_packet_sequence_id"] << 3
        self._same = b"".join(
            varint(tag) + varint(value)
            for tag, value in zip(flags, (2, self._sequence), strict=True)
        )

    def parts(self) -> Iterator[bytes | memoryview]:
        """The trace in pieces."""
        yield self._begin()
        of_plane, content = self._processes()
        yield content
        process = [of_plane[plane] for plane in self._timeline.lines.array("plane_id").tolist()]
        for events, stats in self._timeline.event_sets():
            yield from self._events(events, stats, process)
        yield from self._counters(of_plane)
        for counter in self._timeline.memory:
            name = f"Memory {counter.allocator}".rstrip()
            track, content = self._counter_track(name, self._process, unit=_BYTES_UNIT)
            yield content
            value = Number(
                EVENT["counter_value"], counter.bytes, np.ones(counter.bytes.size, np.bool_)
            )
            yield from self._values(track, counter.time_ps, value)

    def _time(self, time_ps: AnyArray) -> Int64Array:
        return (time_ps - self._zero) // 1000

    # Tracks.

    def _begin(self) -> bytes:
        """Interned texts begin with this packet."""
        packet = TracePacket()
        packet.sequence_flags = 1
        packet.trusted_packet_sequence_id = self._sequence
        return _framed(packet)

    def _track(self, name: str, parent: int = 0) -> tuple[int, Any]:
        packet = TracePacket(trusted_packet_sequence_id=self._sequence)
        track = packet.track_descriptor
        self._numbers.track += 1
        track.uuid = self._numbers.track
        if parent:
            track.parent_uuid = parent
        if name:
            track.name = name
        return track.uuid, packet

    def _processes(self) -> tuple[dict[int, int], bytes]:
        """The track of every plane, and the packets that describe them."""
        planes, result, content = self._timeline.planes, {}, []
        if self._rank is not None:
            self._process, packet = self._track("")
            track = packet.track_descriptor
            track.process.pid, track.process.process_name = self._place + 1, self._rank.title
            track.sibling_order_rank = self._place
            content.append(_framed(packet))
        described = planes.each("plane_id", "name")
        for (plane, name), pid in zip(described, self._rows.pids, strict=True):
            uuid, packet = self._track(name or "" if self._process else "", self._process)
            if not self._process:
                packet.track_descriptor.process.pid = pid & 0x7FFFFFFF
                packet.track_descriptor.process.process_name = name or ""
            result[plane] = uuid
            content.append(_framed(packet))
        return result, b"".join(content)

    def _line_tracks(
        self, slices: Lanes, process: list[int], also: AnyArray
    ) -> tuple[dict[tuple[int, int], int], bytes]:
        """A track per line and lane; lines of ``also`` have one in any case."""
        keys = slices.line.astype(np.int64) << 32 | slices.lane
        distinct = np.union1d(np.unique(keys), also.astype(np.int64) << 32)
        names = self._timeline.lines.names("name")
        result, content = {}, []
        for key in distinct.tolist():
            line, lane = key >> 32, key & 0xFFFFFFFF
            uuid, packet = self._track(names[line] or f"line {line}", process[line])
            result[line, lane] = uuid
            content.append(_framed(packet))
        return result, b"".join(content)

    def _counter_track(self, name: str, parent: int = 0, unit: int = 0) -> tuple[int, bytes]:
        uuid, packet = self._track(name, parent)
        packet.track_descriptor.counter.unit = unit
        return uuid, _framed(packet)

    # Events.

    def _events(
        self, events: Columns, stats: Columns | None, process: list[int]
    ) -> Iterator[bytes | memoryview]:
        slices = lanes_of(events)
        flows = self._timeline.flows if events is self._timeline.events else None
        lines = np.zeros(0, np.int64) if flows is None else np.unique(flows.array("line_id"))
        tracks, content = self._line_tracks(slices, process, lines)
        yield content
        names = yield from self._interned("event_names", events.names("name"))
        categories = None
        if "category" in events and events.is_valid("category").any():
            categories = yield from self._interned("event_categories", events.names("category"))
        arguments = None
        if stats is not None:
            keys = yield from self._interned("debug_annotation_names", stats.names("name"))
            values = yield from self._interned(
                "debug_annotation_string_values", stats.names("value")
            )
            arguments = Arguments(stats, events.rows, keys, values)
        arrows = None
        if flows is not None and flows.rows:
            owner = bind_flows(flows, slices)
            arrows = Arrows(flows, owner, slices.rows.size, self._numbers.flow)
            yield from self._loose_ends(flows.take(owner < 0), tracks)
            self._numbers.flow += int(flows.array("flow_id").max()) + 1
        meetings = None
        if self._rank is not None and events is self._timeline.events:
            meetings = Meetings(self._rank.collectives, events.rows, args=self._args)
        packets = EventPackets(
            events, slices, Tracks(tracks), names, categories, arguments, arrows, meetings
        )
        size = slices.moments.size
        parts = (slice(first, min(first + _ROWS, size)) for first in range(0, size, _ROWS))
        yield from _ahead(lambda part: self._packets(*packets.of(part)), parts)

    def _packets(self, time_ps: AnyArray, inside: Messages) -> memoryview:
        """Packets of track events at some times."""
        rows = time_ps.size
        fields: list[Field] = [
            Number(PACKET["timestamp"], self._time(time_ps), np.ones(rows, np.bool_)),
            Spans(inside.data, inside.bounds[:-1], inside.bounds[1:]),
            Spans.same(self._same, rows),
        ]
        return encode(rows, fields, frame=_IN_TRACE).view

    def _interned(self, kind: str, names: Names) -> Generator[memoryview, None, int]:
        """Intern the texts of a column; returns the number of the first, nulls are the last."""
        texts = [*names.values, ""]
        first, self._names = self._names + 1, self._names + len(texts)
        numbers = np.arange(first, first + len(texts))
        entry = encode(
            len(texts), [Number(1, numbers), Pool(2, texts).of(numbers - first)],
            frame=_INTERNED[kind],
        )  # fmt: skip
        # So many to a packet.
        bounds = np.append(np.arange(0, len(texts), 4096), len(texts))
        inside = encode(bounds.size - 1, [entry.of(bounds)], frame=PACKET["interned_data"])
        every = np.arange(bounds.size)
        fields: list[Field] = [inside.of(every), Spans.same(self._same, bounds.size - 1)]
        yield encode(bounds.size - 1, fields, frame=_IN_TRACE).view
        return first

    def _loose_ends(
        self, flows: Columns, tracks: dict[tuple[int, int], int]
    ) -> Iterator[memoryview]:
        """Ends of arrows where no slice is, as marks of their own."""
        if not flows.rows:
            return
        names = yield from self._interned("event_names", flows.names("name"))
        table = Tracks(tracks)
        every = np.ones(flows.rows, np.bool_)
        inside = encode(
            flows.rows,
            [
                Number(EVENT["type"], np.full(flows.rows, INSTANT)),
                Number(EVENT["name_iid"], names + flows.names("name").codes.astype(np.int64)),
                Number(EVENT["track_uuid"], table.of(flows.array("line_id"), every * 0)),
                flow_ids(flows.array("flow_id"), self._numbers.flow).of(np.arange(flows.rows + 1)),
            ],
            frame=PACKET["track_event"],
        )
        yield self._packets(flows.array("time_ps"), inside)

    # Counters.

    def _counters(self, process: dict[int, int]) -> Iterator[bytes | memoryview]:
        """The profile's own counters: a track for each of their series."""
        table = self._timeline.counters
        if not table.rows:
            return
        names, series = table.names("name"), table.names("series")
        keys = np.stack([table.array("plane_id"), names.codes, series.codes])
        distinct, place = np.unique(keys, axis=1, return_inverse=True)
        tracks = []
        for plane, name, which in distinct.T.tolist():
            title = " ".join(filter(None, (names.values[name], series.values[which])))
            track, content = self._counter_track(title, process.get(plane, 0))
            tracks.append(track)
            yield content
        track_of = np.array(tracks, np.int64)[place.reshape(-1)]
        order = np.argsort(track_of, kind="stable")
        for first in range(0, order.size, _ROWS):
            rows = order[first : first + _ROWS]
            values = fixed(EVENT["double_counter_value"], table.array("value")[rows])
            yield from self._values(
                track_of[rows], table.array("time_ps")[rows], values.at(np.arange(rows.size))
            )

    def _values(
        self, track: int | Int64Array, time_ps: AnyArray, value: Field
    ) -> Iterator[memoryview]:
        rows = time_ps.size
        inside = encode(
            rows,
            [
                Number(EVENT["type"], np.full(rows, COUNTER)),
                Number(EVENT["track_uuid"], np.full(rows, track)),
                value,
            ],
            frame=PACKET["track_event"],
        )
        yield self._packets(time_ps, inside)


def _framed(packet: Any) -> bytes:
    """A packet as a field of the trace."""
    return message(_IN_TRACE, packet.SerializeToString())


def _ahead(make: Callable[[slice], memoryview], parts: Iterable[slice]) -> Iterator[memoryview]:
    """``make`` of every part, in order, on the cores there are, a few ahead of what is taken."""
    with ThreadPoolExecutor(threads()) as pool:
        coming: deque[Future[memoryview]] = deque()
        for part in parts:
            check_deadline()
            coming.append(pool.submit(make, part))
            if len(coming) > threads():
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()


EXPORTER = Exporter(
    name="perfetto",
    doc="Perfetto trace (protobuf): events, steps, arrows, memory in use over time",
    suffix=".perfetto-trace",
    is_text=False,
    needs=TIMELINE_TABLES,
    over_time=True,
    write=_export,
    write_ranks=_export_ranks,
)
