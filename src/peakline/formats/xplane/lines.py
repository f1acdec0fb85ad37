"""One pass over the lines of a plane: nodes for step grouping, and the memory records.

The pass streams: of what it has read it holds only what is found, the stack of open events, and
the events of an unfinished thread-pool region. A line whose events are not in order of time
while it has such regions is sorted first, as upstream does; then lines are taken whole. The events
themselves are stored where they are wanted: the same pass finds and groups them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array, UInt64Array
from peakline.formats.common.files import SourceFile
from peakline.formats.xplane.line_parts import LineFacts, LinePart, Lookup, StatRows, places_of
from peakline.formats.xplane.line_reader import LineReader
from peakline.formats.xplane.names import (
    EVENT_KINDS,
    KEPT_STATS,
    STAT_ROLES,
    has_known_type,
    tensor_core,
)
from peakline.formats.xplane.outline import PlaneOutline, most_id
from peakline.formats.xplane.store import Found, renumber, sort_line, unsort
from peakline.formats.xplane.times import OFFSET
from peakline.kernels.line_events import NO_PROCESS, gather
from peakline.kernels.line_layout import NOT_WANTED, SOME_STATS
from peakline.kernels.nesting import in_order, nest, regions, resolve
from peakline.kernels.xplane_numbers import FIRST_MEMORY_ROLE, KEEP, EventKind, Role
from peakline.tables.event_rules import wrap
from peakline.wire import Interner, Spans, Union

_HELD_PARTS = 4
"""A region open for longer than this many parts makes the pass take its line whole."""
_FILLED = (
    "node_kind", "root_node", "producer_node", "producer_key", "consumer_node", "consumer_key",
    "attr_node", "attr_role", "attr_case", "attr_bits", "mem_node", "mem_kind", "mem_dtype",
    "mem_id", "mem_have", "mem_odd",
)  # fmt: skip
"""What `gather` fills of what a pass finds."""
_FILLED_WHOLE = ("mem_numbers", "mem_codes")
"""The same of two dimensions, where the free rows alone would not lie in one piece."""
_STAT = ("stat_event", "stat_number", "stat_case", "stat_bits", "stat_length")


class OutOfOrder(Exception):
    """The lines of this plane must be taken whole."""


class OpenLine:
    """One line while it is read: part by part, or, if it must be, whole."""

    def __init__(self, owner: PlanePass, number: int, *, whole: bool) -> None:
        self.owner, self.number, self.whole = owner, number, whole
        self.header = owner.headers[number]
        self.base = wrap(self.header.timestamp_ns * 1000)
        core = tensor_core(owner.plane.name)
        self.core = core if core is not None and self.header.name == "XLA Modules" else -1
        self.first_used = dict(owner.found.used)
        self.unresolved = dict(owner.found.used)
        self.has_async = self.has_regions = False
        self.sorted = True
        self.held = self.events = self.nested = 0
        self.start, self.last = np.zeros(2, np.int64), np.zeros(3, np.int64)
        self.stack, self.stack_node = np.empty((2, 256), np.uint64), np.empty(256, np.int64)
        self.height = 0
        self.waiting: list[_Part] = []
        """Parts that wait for the end of a region, or of the line."""

    def add(self, events: LinePart) -> None:
        """Take some events, which follow those that it has."""
        owner, result, size = self.owner, self.owner.found, events.ids.size
        free = result.free
        stat_event, _, stat_role, stat_case, stat_bits, stat_length = events.stats
        memory = events.memory if owner.want_memory else 0
        for group, more in (
            ("node", size), ("root", size), ("producer", size), ("consumer", size),
            ("attr", stat_event.size), ("mem", memory),
        ):  # fmt: skip
            result.reserve(group, more, owner.read)
        scratch = owner.scratch
        if owner.keep:
            result.reserve("event", size, owner.read)
            begin, length = free("event_begin")[:size], free("event_length")[:size]
        else:
            begin, length = scratch.get("begin", size), scratch.get("length", size)
        part = _Part(
            begin, length, scratch.get("node", size, np.int32), scratch.get("marks", 2 * size)
        )
        one_bits = np.zeros(1, np.int64)
        beside = {
            "root_event": scratch.get("root_event", size, np.int32),
            "mem_event": scratch.get("mem_event", memory, np.int32),
            "spans": scratch.get("spans", 8 * memory).reshape(2, -1),
            "chosen": scratch.get("chosen", stat_event.size, np.int32),
            "seen": np.zeros(len(Role), np.int64),
            "as_float": one_bits.view(np.float64),
            "as_bits": one_bits,
        }
        at = np.zeros(11, np.int64)
        process = owner.plane.process_id
        gather(
            events.kinds, events.case, events.bits, events.duration,
            stat_event, stat_role, stat_case, stat_bits, stat_length,
            line_event=self.events, first_node=result.used["node"], first_mem=result.used["mem"],
            ref_ids=owner.ref_ids, ref_table=owner.ref_table,
            process=NO_PROCESS if process is None else process, core=self.core,
            want_memory=owner.want_memory, prune=owner.prune, own_ends=owner.own_ends,
            begin=part.begin, length=part.length, node=part.node, marks=part.marks, at=at,
            **beside,
            **{name: free(name) for name in _FILLED},
            **{name: result.arrays[name] for name in _FILLED_WHOLE},
        )  # fmt: skip
        nodes, roots, producers, consumers, attrs, records, texts, marks, keeps = at[:9].tolist()
        self.has_async |= at[9] > 0
        owner.pruned |= at[10] > 0
        self.events += size
        part.marks = part.marks[:marks]
        if roots:
            events_of = beside["root_event"][:roots]
            with np.errstate(over="ignore"):
                free("root_begin")[:roots] = part.begin[events_of] + self.base
            free("root_length")[:roots] = part.length[events_of]
            free("root_metadata")[:roots] = events.ids[events_of]
            free("root_line")[:roots] = self.number
        if records:
            free("mem_line")[:records] = self.number
            free("mem_offset")[:records] = part.begin[beside["mem_event"][:records]]
            if texts:
                self._intern(events, free("mem_codes")[:, :records], beside["spans"][:, :texts])
        if owner.timed:
            self._keep_times(part)
        for group, more in (
            ("node", nodes), ("root", roots), ("producer", producers), ("consumer", consumers),
            ("attr", attrs), ("mem", records),
        ):  # fmt: skip
            result.used[group] += more
        if owner.keep:
            self._keep_stats(events, beside["chosen"][:keeps])
            free("event_place")[:size] = places_of(events.ids, owner.plane)
            free("event_case")[:size] = events.case
            result.used["event"] += size
        if self.whole:
            self.waiting.append(part.copy())
        else:
            self._nest_part(part)

    def _keep_times(self, part: _Part) -> None:
        """Keep when each node is."""
        result = self.owner.found
        events = np.flatnonzero(part.node >= 0)
        result.reserve("time", events.size, self.owner.read)
        with np.errstate(over="ignore"):
            result.free("time_begin")[: events.size] = part.begin[events] + self.base
        result.free("time_length")[: events.size] = part.length[events]
        result.free("time_line")[: events.size] = self.number
        result.used["time"] += events.size

    def _keep_stats(self, events: LinePart, rows: Int32Array) -> None:
        """Keep those stats of the events that may be read with them."""
        owner, result = self.owner, self.owner.found
        event, number, _, *value = events.stats
        result.reserve("stat", rows.size, owner.read)
        for name, column in zip(_STAT, (event, number, *value), strict=True):
            result.free(name)[: rows.size] = column[rows]
        result.free("stat_event")[: rows.size] += result.used["event"]
        result.used["stat"] += rows.size

    def _intern(self, events: LinePart, codes: Int32Array, spans: Int64Array) -> None:
        """Give strings that stand in the events codes after those of the references."""
        owner = self.owner
        numbers = owner.strings.add(events.buffer, Spans(spans[0] - events.base, spans[1]))
        numbers += owner.ref_ids.size + 1
        rows, columns = np.nonzero(codes <= -2)
        codes[rows, columns] = numbers[-2 - codes[rows, columns]]

    def _nest_part(self, part: _Part) -> None:
        """Nest what is complete; what may lie in a region that is still open waits."""
        before = self.last.copy()
        self.sorted = self.sorted and bool(in_order(part.begin, part.length, self.last))
        if self.waiting:
            part = _Part.join([*self.waiting, part])
        ready = part.begin.size
        marks = part.marks
        if self.owner.rewrite and marks.size:
            is_start = marks & 1 == 0
            if self.start[1] and not is_start[0]:
                raise OutOfOrder
            first = int(part.begin[marks[np.argmax(is_start)] >> 1]) if is_start.any() else 0
            if not self.waiting and before[2] and is_start.any() and first == before[0]:
                raise OutOfOrder
            if is_start[-1]:
                opened = int(marks[-1] >> 1)
                ready = int(np.searchsorted(part.begin[: opened + 1], part.begin[opened]))
                marks = marks[:-1]
        self.waiting = []
        if ready < part.begin.size:
            held = part.rest(ready)
            self.waiting = [held]
            self.held = 0 if ready else self.held + 1
            if self.held > _HELD_PARTS:
                raise OutOfOrder
        self._nest(part, ready, marks)

    def _nest(self, part: _Part, ready: int, marks: Int64Array) -> None:
        result = np.zeros((2, 0), np.int64)
        if self.owner.rewrite and marks.size:
            result = self._regions(part, marks)
        if result.shape[1]:
            self.has_regions = True
            if result.shape[1] > 1 and not in_order(result[0], result[1], np.zeros(3, np.int64)):
                order = np.lexsort((~result[1].view(np.uint64), result[0].view(np.uint64)))
                result = result[:, order]
        if not self.sorted and (self.has_regions or self.owner.pruned):
            raise OutOfOrder
        owner = self.owner.scratch.get("owner", ready, np.int32)
        self._run_nest(part.begin[:ready], part.length[:ready], part.node[:ready], result, owner)
        self._resolve(part.node[:ready], owner)
        self._keep(part.node[:ready], owner)

    def _regions(self, part: _Part, marks: Int64Array) -> Int64Array:
        result: Int64Array = np.empty((2, marks.size), np.int64)
        return result[:, : regions(part.begin, self.base, marks, self.start, result)]

    def _run_nest(
        self,
        begin: Int64Array,
        length: Int64Array,
        node: Int32Array,
        extra: Int64Array,
        owner: Int32Array,
    ) -> None:
        first, is_async = self._async()
        at = np.array([self.height, 0, 0], np.int64)
        while not nest(
            begin, length, node, self.base, extra[0], extra[1], is_async, first,
            self.owner.found.arrays["node_parent"], owner, self.stack, self.stack_node, at,
        ):  # fmt: skip
            self.stack = np.concatenate([self.stack, np.empty_like(self.stack)], axis=1)
            self.stack_node = np.concatenate([self.stack_node, np.empty_like(self.stack_node)])
        self.height = int(at[0])

    def _resolve(self, node: Int32Array, owner: Int32Array) -> None:
        """Replace events that were noted by number: n for the node n itself, -2 - n for an event
        inside of it, -1 for one inside of none.
        """
        last = self.nested + node.size
        for group, name in (("producer", "producer_node"), ("mem", "mem_node")):
            first, end = self.unresolved[group], self.owner.found.used[group]
            noted = self.owner.found.arrays[name][first:end]
            self.unresolved[group] = first + resolve(noted, self.nested, last, node, owner)
        self.nested = last

    def _async(self) -> tuple[int, BoolArray]:
        """Which nodes of this line are asynchronous; empty when none can be."""
        result, first = self.owner.found, self.first_used["node"]
        if not self.has_async:
            return first, np.zeros(0, np.bool_)
        rows = slice(self.first_used["attr"], result.used["attr"])
        flags = np.flatnonzero(result.arrays["attr_role"][rows] == Role.IS_ASYNC) + rows.start
        is_async = np.zeros(result.used["node"] - first, np.bool_)
        value = (result.arrays["attr_bits"][flags] != 0) & (result.arrays["attr_case"][flags] == 4)
        is_async[result.arrays["attr_node"][flags] - first] = value
        return first, is_async

    def finish(self) -> None:
        """Nest what waits, and hand the line's events on."""
        if not self.waiting:
            return
        part = _Part.join(self.waiting)
        self.waiting = []
        if not self.whole:
            self._nest(part, part.begin.size, part.marks)
            return
        extra = np.zeros((2, 0), np.int64)
        if self.owner.rewrite and part.marks.size:
            extra = self._regions(part, part.marks)
        begin, length, node, order = part.begin, part.length, part.node, None
        if extra.shape[1]:
            begin, length, node, order = sort_line(begin, length, node, extra)
            if not (np.diff(order[order < part.begin.size]) >= 0).all():
                renumber(self.owner.found, self.first_used, node, order)
                part.node = unsort(node, order, part.begin.size)
        owner = np.empty(begin.size, np.int32)
        self._run_nest(begin, length, node, np.zeros((2, 0), np.int64), owner)
        if order is not None:
            owner = unsort(owner, order, part.begin.size)
        self._resolve(part.node, owner)
        self._keep(part.node, owner)

    def _keep(self, node: Int32Array, owner: Int32Array) -> None:
        """Keep which node each event is, or lies in."""
        result = self.owner.found
        if not self.owner.keep:
            return
        result.reserve("owner", node.size, self.owner.read)
        chosen = result.free("owner_node")[: node.size]
        chosen[:] = np.arange(node.size, dtype=np.int32)
        resolve(chosen, 0, node.size, node, owner)
        result.used["owner"] += node.size


@dataclass
class _Part:
    """Some events of a line, in file order; ``marks`` are their thread-pool marks."""

    begin: Int64Array
    length: Int64Array
    node: Int32Array
    marks: Int64Array

    @classmethod
    def join(cls, parts: list[_Part]) -> _Part:
        if len(parts) == 1:
            return parts[0]
        marks, first = [], 0
        for part in parts:
            marks.append(part.marks + 2 * first)
            first += part.begin.size
        names = ("begin", "length", "node")
        joined = {name: np.concatenate([getattr(p, name) for p in parts]) for name in names}
        return cls(marks=np.concatenate(marks), **joined)

    def copy(self) -> _Part:
        """The same events in arrays of their own."""
        return _Part(self.begin.copy(), self.length.copy(), self.node.copy(), self.marks.copy())

    def rest(self, first: int) -> _Part:
        """The events from ``first`` on."""
        marks = self.marks[self.marks >> 1 >= first] - 2 * first
        return _Part(self.begin[first:], self.length[first:], self.node[first:], marks).copy()


class Scratch:
    """Arrays that every part uses again, so that their memory is touched once."""

    def __init__(self) -> None:
        self._arrays: dict[str, AnyArray] = {}

    def get(self, name: str, size: int, dtype: Any = np.int64) -> AnyArray:
        """An array of ``size`` with unspecified content, valid until the next part."""
        array = self._arrays.get(name)
        if array is None or array.size < size:
            array = self._arrays[name] = np.empty(size + (size >> 2), dtype)
        return array[:size]


@dataclass(frozen=True, eq=False)
class SelectedLine:
    """The events of one line, in file order; ``number`` counts the lines of the plane.

    ``begin`` is relative to the time of the line; ``place``, ``case`` and ``owner`` are as in
    `Found`; without ``case`` every event has a start.
    """

    number: int
    header: LineFacts
    begin: Int64Array
    length: Int64Array
    place: AnyArray
    case: AnyArray | None
    owner: Int32Array

    def span(self) -> tuple[UInt64Array, UInt64Array]:
        """Begin and end of every event, absolute in ps, unsigned: as upstream groups them, whose
        sums are those of 64 bits.
        """
        begin = self.begin.view(np.uint64) + np.uint64(self.header.timestamp_ns * 1000 % 2**64)
        return begin, begin + self.length.view(np.uint64)


class PlanePass:
    """Read every line of one plane once; `found` and `strings` hold what there was.

    ``prune`` leaves out what cannot pass a group on (`pruned` says whether there was any);
    ``own_ends`` keeps every producer of a context as a node, and ``timed`` when every node is.
    ``keep`` keeps the events themselves, and those of their stats that are among `KEPT_STATS`.
    """

    def __init__(
        self,
        file: SourceFile,
        plane: PlaneOutline,
        *,
        want_memory: bool,
        rewrite: bool,
        prune: bool = False,
        own_ends: bool = False,
        timed: bool = False,
        keep: bool = False,
    ) -> None:
        self.file, self.plane = file, plane
        self.want_memory, self.rewrite = want_memory, rewrite
        self.prune, self.own_ends, self.pruned = prune, own_ends, False
        self.keep, self.timed = keep, timed
        self.headers = LineReader(file, plane.lines).read_facts()
        self.ref_ids = np.array(sorted(plane.stat_names), np.int64)
        self.ref_table = _table_of(self.ref_ids)
        self.scratch = Scratch()
        try:
            self._run(whole=False)
        except OutOfOrder:
            self.prune = self.pruned = False
            self._run(whole=True)

    @property
    def nodes(self) -> int:
        """How many nodes were found."""
        return self.found.used["node"]

    def selected_lines(self) -> list[SelectedLine]:
        """The events of every line that has any, in the order of the file."""
        bounds = [*(first for _, first in self._first_events), self.found.used["event"]]
        got = self.found.get
        begin, length, place = (got(f"event_{name}") for name in ("begin", "length", "place"))
        case, owner = self._case, got("owner_node")
        return [
            SelectedLine(
                number, self.headers[number], begin[lo:hi], length[lo:hi], place[lo:hi],
                None if case is None else case[lo:hi], owner[lo:hi],
            )
            for (number, lo), hi in zip(self._first_events, bounds[1:], strict=True)
        ]  # fmt: skip

    def selected_stats(self) -> StatRows:
        """The stats that were stored, in the order of the file."""
        case, bits, length = (self.found.get(f"stat_{name}") for name in ("case", "bits", "length"))
        return StatRows(
            self.plane,
            self.found.get("stat_event"),
            self.found.get("stat_number"),
            Union(case, bits, length),
        )

    def texts(self) -> list[str]:
        """Every string a memory record may name, by code."""
        named = [self.plane.stat_names[int(i)] for i in self.ref_ids]
        return [*named, "", *self.strings.values]

    def _lookups(self) -> tuple[Lookup, Lookup]:
        """The kind of an event by the id of its metadata, and the role of a stat by its own."""
        names = self.plane.stat_names.items()
        wanted = {
            number: STAT_ROLES[name]
            for number, name in names
            if name in STAT_ROLES and (self.want_memory or STAT_ROLES[name] <= FIRST_MEMORY_ROLE)
        }
        chosen = {number for number, name in names if self.keep and name in KEPT_STATS}
        roles = {
            number: wanted.get(number, Role.KEPT) + KEEP * (number in chosen)
            for number in wanted.keys() | chosen
        }
        kinds = {number: _kind(name) for number, name in self.plane.event_names.items()}
        return Lookup(kinds), Lookup(roles, NOT_WANTED)

    def _run(self, *, whole: bool) -> None:
        self.found = Found(len(self.plane.event_names))
        self.read = 0.0
        """The share of the plane's lines that has been read."""
        self._first_events: list[tuple[int, int]] = []
        """The lines that have events, and how many events stand before each."""
        self.strings = Interner()
        """Strings that stand in the events themselves; code = references + 1 + number."""
        lines = self.plane.lines
        total = float(lines.length.sum()) or 1.0
        first = int(lines.start[0]) if len(lines) else 0
        kinds, roles = self._lookups()
        reader = LineReader(self.file, lines, stats=SOME_STATS, kinds=kinds, roles=roles)
        line: OpenLine | None = None
        for part in reader.parts():
            self.read = min(1.0, max(part.position - first, 1) / total)
            if line is None or line.number != part.line:
                if line is not None:
                    line.finish()
                line = OpenLine(self, part.line, whole=whole)
                self._first_events.append((part.line, self.found.used["event"]))
            line.add(part)
        if line is not None:
            line.finish()
            # It holds views of what was found.
            del line
        self.found.trim()
        case = self.found.get("event_case")
        self._case = None if (case == OFFSET).all() else case
        if self._case is None:
            del self.found.arrays["event_case"]
        self.damage, self.line_facts = reader.damage, reader.facts
        """What is damaged in the lines, and what they say about themselves."""


def _table_of(ref_ids: Int64Array) -> Int32Array:
    """The position of each small reference id, and of the empty text for ids that are not there."""
    small = ref_ids[(ref_ids >= 0) & (ref_ids < most_id(ref_ids.size))]
    table = np.full(int(small[-1]) + 1 if small.size else 0, ref_ids.size, np.int32)
    table[small] = np.searchsorted(ref_ids, small)
    return table


def _kind(name: str) -> int:
    kind = EVENT_KINDS.get(name)
    if kind is not None:
        return kind
    return EventKind.KNOWN if has_known_type(name) else EventKind.OTHER
