"""The events of a plane's lines, part by part: bytes of the file become columns here.

Windows of the file are read into memory of this module's own and decoded by one kernel
(`line_decode`), ahead of who takes them where there is a second core. What that kernel does not
expect is left to the general walk, from the event on that has it to the end of its line, so that
damage is contained as everywhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from peakline import schema
from peakline.arrays import AnyArray, Int64Array
from peakline.deadline import check_deadline
from peakline.formats.common.files import SourceFile
from peakline.formats.xplane.line_parts import NO_END, LineFacts, LinePart, Lookup, Stats
from peakline.formats.xplane.times import FARTHEST_PS, LONGEST_PS, OFFSET
from peakline.kernels import line_layout as layout
from peakline.kernels.line_decode import decode
from peakline.kernels.xplane_numbers import EventKind
from peakline.wire import Buffer, Damage, Plan, Spans, WireTable, ahead, stream, threads

_WINDOW_BYTES = 1 << 20
"""How much of a file is read at once: small enough to stay in a core's cache."""
_PART_EVENTS = 1 << 15
_PART_STATS = 1 << 16
_AHEAD = 2
"""How many parts may be ready before they are taken."""
_LEAST_AHEAD = 4 * _WINDOW_BYTES
"""Fewer bytes are not worth a thread."""
_HEADER_BYTES = 512
_GAP_BYTES = 16
"""Lines that follow each other are this close: a tag and a length stand between them."""
_NOTHING = np.zeros(0, np.uint8)


_FACTS = ("id", "name", "display_name", "timestamp_ns")
_EVENT_PATHS = ("events.metadata_id", "events.data", "events.duration_ps", "events.@span")
_STAT_PATHS = ("events.stats.metadata_id", "events.stats.value")


class _Room:
    """Columns for one part: of its events, and of their stats."""

    def __init__(self, events: int, stats: int, *, begins: bool) -> None:
        self.events: Stats = (
            np.empty(events if begins else 0, np.int64),
            *(np.empty(events, dtype) for dtype in ("i8", "u1", "u1", "i8", "i8")),
        )
        self.stats: Stats = tuple(
            np.empty(stats, dtype) for dtype in ("i4", "i8", "u1", "u1", "i8", "i4")
        )
        self.window: Buffer | None = None
        """The bytes of the part that is in this room."""


_NO_ROOM = _Room(0, 0, begins=False)


class LineReader:
    """Reads the lines of an XSpace, or pieces of them that begin and end with a field.

    ``kinds`` gives the `EventKind` by the id of an event's metadata, ``roles`` the role of a stat
    by its id; stats whose role is NOT_WANTED are passed over. ``stats`` is one of the numbers in
    `line_layout`; with ``begins`` it is said where each event's field begins, at the latest.

    ``damage`` and ``facts`` (of every line) are whole after the last part.
    """

    def __init__(
        self,
        file: SourceFile,
        lines: Spans,
        *,
        stats: int = layout.NO_STATS,
        kinds: Lookup | None = None,
        roles: Lookup | None = None,
        begins: bool = False,
    ) -> None:
        self._file, self._which, self._begins = file, stats, begins
        self._kinds, self._roles = kinds or Lookup({}), roles or Lookup({}, layout.NOT_WANTED)
        self.damage = Damage()
        self.facts: list[LineFacts] = []
        self._found = np.zeros(layout.F_WIDTH, np.int64)
        self._end = NO_END
        """When the last event of the line ends, as far as it has been read."""
        begin = lines.start.astype(np.int64)
        self._spans = list(zip(begin.tolist(), (begin + lines.length).tolist(), strict=True))
        self._reach = _reach(self._spans)
        self._window = file.buffer if file.in_memory else _NOTHING
        self._base = 0
        self._windows: list[Buffer] = []
        size = int(lines.length.sum())
        self._runs_ahead = size >= _LEAST_AHEAD and threads() > 1
        # No event and no stat takes less than two bytes.
        events, stat_rows = (min(most, size // 2 + 1) for most in (_PART_EVENTS, _PART_STATS))
        self._rooms = deque(
            _Room(events, stat_rows if stats > layout.NO_STATS else 0, begins=begins)
            for _ in range(_AHEAD + 1 if self._runs_ahead else 1)
        )

    def parts(self) -> Iterator[LinePart]:
        """All events, in the order of the file. Ends at the deadline, as `check_deadline`."""
        made = self._parts()
        for part in ahead(made, _AHEAD) if self._runs_ahead else made:
            check_deadline()
            yield part

    def read_facts(self, *, whole: bool = False) -> list[LineFacts]:
        """What the lines say about themselves, from all fields but the events; unless ``whole``,
        from those in front of the events where they say name and time, as all writers have it.
        """
        for line, (begin, _) in enumerate(self._spans):
            check_deadline()
            self._found[:] = 0
            at, position = np.zeros(layout.A_WIDTH, np.int64), begin
            code, says = layout.OPEN, False
            if not whole:
                position, code = self._run(
                    line, position, at, _NO_ROOM, layout.NO_STATS, _HEADER_BYTES
                )
                says = bool(self._found[layout.F_TIME] and self._found[layout.F_NAME_LENGTH])
            if not says:
                position, code = self._run(line, position, at, _NO_ROOM, layout.NO_EVENTS)
            if code == layout.ODD and not says:
                deque(self._walk(line, position, with_events=False), maxlen=0)
            else:
                self.facts.append(self._line_facts())
        return self.facts

    def _parts(self) -> Iterator[LinePart]:
        for line, (begin, _) in enumerate(self._spans):
            self._found[:] = 0
            self._end = NO_END
            position, code = begin, layout.OPEN
            while code not in {layout.DONE, layout.ODD}:
                room = self._rooms[0]
                room.window = None
                at = np.zeros(layout.A_WIDTH, np.int64)
                position, code = self._run(line, position, at, room, self._which)
                if at[layout.A_EVENTS]:
                    self._rooms.rotate(-1)
                    room.window = self._window
                    yield self._part(line, room, at, position)
            if code == layout.ODD:
                yield from self._walk(line, position)
            else:
                self.facts.append(self._line_facts())

    def _run(
        self, line: int, position: int, at: Int64Array, room: _Room, which: int,
        most: int = 0,
    ) -> tuple[int, int]:  # fmt: skip
        """Decode from ``position`` on, until the room is full or the window at its end; where that
        is, and why. A window (of ``most`` bytes) without an event is followed by the next.
        """
        most = most or _WINDOW_BYTES
        end = self._spans[line][1]
        kinds, roles = self._kinds.table, self._roles.table
        if roles is None:
            return position, layout.ODD
        code = layout.OPEN
        while position < end:
            inside = self._base <= position < self._base + self._window.size
            if code == layout.SHORT and position == self._base:
                # One field is larger than the window.
                most *= 4
            if code == layout.SHORT or not inside:
                self._move(position, min(most, self._reach[line] - position))
            at[layout.A_POSITION] = position - self._base
            code = decode(
                self._window, self._base, self._window.size, end - self._base,
                _NOTHING if kinds is None else kinds, roles, which, at, self._found,
                *room.events, *room.stats,
            )  # fmt: skip
            position = self._base + int(at[layout.A_POSITION])
            if code != layout.SHORT or at[layout.A_EVENTS]:
                return position, code
        return position, layout.DONE

    def _move(self, position: int, size: int) -> None:
        """Read a window of ``size`` bytes from ``position`` on."""
        in_use = [room.window for room in self._rooms]
        free = (
            w
            for w in self._windows
            if not any(used is not None and used.base is w for used in in_use)
        )
        window = next((w for w in free if w.size >= size), None)
        if window is None:
            window = np.empty(size, np.uint8)
            self._windows.append(window)
        self._window, self._base = window[:size], position
        self._file.read_into(self._window, position)

    def _part(self, line: int, room: _Room, at: Int64Array, position: int) -> LinePart:
        rows, stats = int(at[layout.A_EVENTS]), int(at[layout.A_STATS])
        begins, ids, kinds, case, bits, duration = (column[:rows] for column in room.events)
        memory = int(at[layout.A_MEMORY])
        if self._kinds.table is None:
            kinds = self._kinds.of(ids)
            memory = _memory_in(kinds)
        self._end = max(self._end, _last_end(case, bits, duration))
        return LinePart(
            line, begins, ids, kinds, case, bits, duration,
            tuple(column[:stats] for column in room.stats),
            memory, self._window, self._base, position,
        )  # fmt: skip

    def _line_facts(self) -> LineFacts:
        """What the line has said about itself so far."""
        native_id, time, *texts = self._found.tolist()
        return LineFacts(native_id, self._text(*texts[:2]), self._text(*texts[2:]), time, self._end)

    def _text(self, start: int, length: int) -> str:
        if not length:
            return ""
        at = start - self._base
        if at >= 0 and at + length <= self._window.size:
            content = self._window[at : at + length]
        else:
            content = self._file.read(start, length)
        return content.tobytes().decode("utf-8", "replace")

    # The general walk.

    def _walk(self, line: int, position: int, *, with_events: bool = True) -> Iterator[LinePart]:
        """The rest of a line, from ``position`` on."""
        plan = _plan(self._which if with_events else layout.NO_EVENTS, self._roles.keys)
        before, end, last = self._line_facts(), self._spans[line][1], position
        rest = Spans(np.array([position]), np.array([end - position]))
        buffer = self._file.buffer
        for part in stream(buffer, plan, rest):
            self.damage += part.damage
            events = part.tables.get("events")
            if events is not None and events.rows:
                stats = part.tables.get("events.stats")
                yield self._walked_part(line, events, stats, buffer, last, part.position)
                span = events.spans("@span")
                last = int(span.start[-1]) + int(span.length[-1])
            self._file.release(part.position)
        self.facts.append(replace(_facts_of(part.tables[""], buffer, before), end_ps=self._end))

    def _walked_part(
        self, line: int, events: WireTable, stats: WireTable | None, buffer: Buffer,
        last: int, position: int,
    ) -> LinePart:  # fmt: skip
        """The same columns, in memory of their own: the walk uses its columns again at once.

        ``last`` is where the event before them ends.
        """
        ids, data = events.array("metadata_id"), events.union("data")
        begins: AnyArray = _NOTHING
        if self._begins:
            span = events.spans("@span")
            begins = np.append(last, span.start[:-1].astype(np.int64) + span.length[:-1])
        kinds = self._kinds.of(ids)
        columns = begins, ids, data.bits, events.array("duration_ps")
        begins, ids, bits, duration = (column.astype(np.int64) for column in columns)
        case = data.case.astype(np.uint8)
        self._end = max(self._end, _last_end(case, bits, duration))
        return LinePart(
            line, begins, ids, kinds, case, bits, duration,
            self._walked_stats(stats), _memory_in(kinds), buffer, 0, position,
        )  # fmt: skip

    def _walked_stats(self, stats: WireTable | None) -> Stats:
        if stats is None:
            return _NO_ROOM.stats
        ids, value = stats.array("metadata_id"), stats.union("value")
        if self._which == layout.SOME_STATS:
            ids = self._roles.keys[ids]
        return (
            stats.parent.astype(np.int32), ids.astype(np.int64), self._roles.of(ids),
            value.case.astype(np.uint8), value.bits.astype(np.int64),
            value.length.astype(np.int32),
        )  # fmt: skip


def _plan(which: int, chosen: AnyArray) -> Plan:
    """What the general walk reads of a line."""
    paths, keep = [*_FACTS, *(f"{name}?" for name in _FACTS)], {}
    if which >= layout.NO_STATS:
        paths += _EVENT_PATHS
    if which == layout.ALL_STATS or (which == layout.SOME_STATS and chosen.size):
        paths += _STAT_PATHS
    if which == layout.SOME_STATS and chosen.size:
        keep["events.stats.metadata_id"] = chosen.tolist()
    return Plan(schema.shape("tensorflow.profiler.XLine"), paths, keep=keep)


def _facts_of(table: WireTable, buffer: Buffer, before: LineFacts) -> LineFacts:
    """What the rest of a line says, else what was said ``before``."""
    texts = {name: table.spans(name).texts(buffer)[0] for name in ("name", "display_name")}
    numbers = {name: int(table.array(name)[0]) for name in ("id", "timestamp_ns")}
    says = {name: bool(table.array(f"{name}?")[0]) for name in _FACTS}
    return LineFacts(
        numbers["id"] if says["id"] else before.native_id,
        texts["name"] if says["name"] else before.name,
        texts["display_name"] if says["display_name"] else before.display_name,
        numbers["timestamp_ns"] if says["timestamp_ns"] else before.timestamp_ns,
    )


def _last_end(case: AnyArray, offset: AnyArray, duration: AnyArray) -> int:
    """When the last of some events ends, in ps after their line's time."""
    ends = np.clip(offset, NO_END, FARTHEST_PS) + np.clip(duration, 0, LONGEST_PS)
    return int(ends.max(initial=NO_END, where=case == OFFSET))


def _memory_in(kinds: AnyArray) -> int:
    """How many events allocate or free memory."""
    return int(
        np.count_nonzero((kinds == EventKind.ALLOCATION) | (kinds == EventKind.DEALLOCATION))
    )


def _reach(spans: list[tuple[int, int]]) -> list[int]:
    """Where the lines end that follow each one without a gap."""
    reach, begin = [0] * len(spans), -1
    for line in range(len(spans) - 1, -1, -1):
        start, end = spans[line]
        follows = 0 <= begin - end <= _GAP_BYTES
        reach[line] = reach[line + 1] if follows else end
        begin = start
    return reach
