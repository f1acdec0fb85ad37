"""One pass over the lines of a plane: nodes for step grouping, and the memory records.

The pass streams: of what it has read it holds only what is found, the stack of open events, and
the events of an unfinished thread-pool region. A line whose events are not in order of time
while it has such regions is sorted first, as upstream does; then lines are taken whole. The events
themselves are kept where somebody asks for them: the same pass finds and groups them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from peakline import schema
from peakline.kernels.xplane_numbers import FIRST_MEMORY_ROLE
from peakline.sources.xplane.line import OpenLine, OutOfOrder, Scratch
from peakline.sources.xplane.names import (
    EVENT_KINDS,
    KEPT_STATS,
    STAT_ROLES,
    EventKind,
    Role,
    has_known_type,
)
from peakline.sources.xplane.outline import PlaneOutline
from peakline.sources.xplane.stat_rows import StatRows
from peakline.sources.xplane.store import Found
from peakline.wire import Buffer, Damage, Interner, Plan, Spans, Union, WireTable, decode, stream

__all__ = [
    "LINE_FACTS",
    "KeptLine",
    "LineFacts",
    "LineHeader",
    "PlanePass",
    "line_facts",
    "read_headers",
    "read_line_facts",
]

_Array = npt.NDArray[Any]
_HEADER_BYTES = 512


@dataclass(frozen=True)
class LineHeader:
    """Name and timestamp of a line, which stand before its events."""

    name: str
    timestamp_ns: int


@dataclass(frozen=True)
class LineFacts:
    """What a line says about itself; ``name`` is the one to display where it has such."""

    native_id: int
    name: str
    timestamp_ns: int


LINE_FACTS = ("id", "name", "display_name", "timestamp_ns")
"""The fields that `LineFacts` are made of; some stand behind the events."""


def line_facts(buffer: Buffer, table: WireTable) -> list[LineFacts]:
    """Of the lines in ``table``, which has the fields `LINE_FACTS`."""
    names = table.spans("name").texts(buffer)
    shown = table.spans("display_name").texts(buffer)
    rows = zip(
        table.array("id").tolist(), shown, names, table.array("timestamp_ns").tolist(), strict=True
    )
    return [LineFacts(number, d or n, time) for number, d, n, time in rows]


def read_line_facts(buffer: Buffer, plane: PlaneOutline) -> list[LineFacts]:
    """What all lines of ``plane`` say about themselves; passes over their events."""
    plan = Plan(schema.descriptor("tensorflow.profiler.XLine"), LINE_FACTS)
    return line_facts(buffer, decode(buffer, plan, plane.lines)[""])


def read_headers(buffer: Buffer, plane: PlaneOutline) -> list[LineHeader]:
    """Headers of all lines, from the first bytes of each.

    A line whose first bytes do not hold both is looked through to its end.
    """
    plan = Plan(schema.descriptor("tensorflow.profiler.XLine"), ("name", "timestamp_ns"))

    def headers(spans: Spans) -> list[LineHeader]:
        table = decode(buffer, plan, spans)[""]
        names = table.spans("name").texts(buffer)
        times = table.array("timestamp_ns").tolist()
        return [LineHeader(n, t) for n, t in zip(names, times, strict=True)]

    lines = plane.lines
    found = headers(Spans(lines.start, np.minimum(lines.length, _HEADER_BYTES)))
    unsure = [
        number
        for number, header in enumerate(found)
        if lines.length[number] > _HEADER_BYTES and not (header.name and header.timestamp_ns)
    ]
    if unsure:
        for number, header in zip(unsure, headers(lines.take(np.array(unsure))), strict=True):
            found[number] = header
    return found


_KEPT = ("event_begin", "event_length", "event_place", "event_case", "owner_node")


@dataclass(frozen=True, eq=False)
class KeptLine:
    """The events of one line, in file order; ``number`` counts the lines of the plane.

    ``begin`` is relative to the line's own time; ``place``, ``case`` and ``owner`` are as in
    `Found`.
    """

    number: int
    header: LineHeader
    begin: _Array
    length: _Array
    place: _Array
    case: _Array
    owner: _Array

    def span(self) -> tuple[_Array, _Array]:
        """Begin and end of every event, absolute in ps, unsigned: as upstream groups them, whose
        sums are those of 64 bits.
        """
        begin = self.begin.view(np.uint64) + np.uint64(self.header.timestamp_ns * 1000 % 2**64)
        return begin, begin + self.length.view(np.uint64)


class PlanePass:
    """Read every line of one plane once; `found` and `strings` hold what there was.

    ``prune`` leaves out what cannot pass a group on (`pruned` tells whether there was any);
    ``own_ends`` keeps every producer of a context as a node. ``keep`` keeps the events themselves,
    and those of their stats that are among `KEPT_STATS`; memory is then not wanted.
    ``release`` is told how far the buffer has been read.
    """

    def __init__(
        self,
        buffer: Buffer,
        plane: PlaneOutline,
        *,
        want_memory: bool,
        rewrite: bool,
        prune: bool = False,
        own_ends: bool = False,
        keep: bool = False,
        release: Callable[[int], None] | None = None,
    ) -> None:
        self.buffer, self.plane = buffer, plane
        self.want_memory, self.rewrite = want_memory, rewrite
        self.prune, self.own_ends, self.pruned = prune, own_ends, False
        self.keep, self.release = keep, release
        self.headers = read_headers(buffer, plane)
        self.ref_ids = np.array(sorted(plane.stat_names), np.int64)
        self.ref_table = _table_of(self.ref_ids)
        self.scratch = Scratch()
        self.kinds = _Lookup({n: _kind(name) for n, name in plane.event_names.items()})
        try:
            self._run(whole=False)
        except OutOfOrder:
            self.prune = self.pruned = False
            self._run(whole=True)

    @property
    def nodes(self) -> int:
        """How many nodes were found."""
        return self.found.used["node"]

    def kept_lines(self) -> list[KeptLine]:
        """The events of every line that has any, in the order of the file."""
        bounds = [*(first for _, first in self._first_events), self.found.used["event"]]
        return [
            KeptLine(
                number,
                self.headers[number],
                *(self.found.get(name)[first:last] for name in _KEPT),
            )
            for (number, first), last in zip(self._first_events, bounds[1:], strict=True)
        ]

    def kept_stats(self) -> StatRows:
        """The stats that were kept, in the order of the file."""
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

    def _plan(self) -> tuple[Plan, _Array]:
        """The plan for the plane's lines, and the role of each stat it keeps."""
        wanted = {
            number: STAT_ROLES[name]
            for number, name in self.plane.stat_names.items()
            if name in STAT_ROLES and (self.want_memory or STAT_ROLES[name] <= FIRST_MEMORY_ROLE)
        }
        kept = {
            number
            for number, name in self.plane.stat_names.items()
            if self.keep and name in KEPT_STATS
        }
        paths, keep = ["events.metadata_id", "events.data", "events.duration_ps"], {}
        paths += LINE_FACTS
        numbers = sorted(wanted.keys() | kept)
        self.stat_numbers = np.array(numbers, np.int64)
        """The ids of the stats that are read, and which of them are kept as they are."""
        self.is_kept = np.array([number in kept for number in numbers], np.bool_)
        if numbers:
            paths += ["events.stats.metadata_id", "events.stats.value"]
            keep["events.stats.metadata_id"] = numbers
        plan = Plan(schema.descriptor("tensorflow.profiler.XLine"), paths, keep=keep)
        # Nobody looks for a memory stat where no memory is wanted.
        roles = [wanted.get(number, Role.SHAPE) for number in numbers]
        return plan, np.array(roles, np.uint8)

    def _run(self, *, whole: bool) -> None:
        self.found, self.damage = Found(), Damage()
        self.read = 0.0
        """The share of the plane's lines that has been read."""
        self._first_events: list[tuple[int, int]] = []
        """The lines that have events, and how many events stand before each."""
        self.strings = Interner()
        """Strings that stand in the events themselves; code = references + 1 + number."""
        plan, roles = self._plan()
        total = float(self.plane.lines.length.sum()) or 1.0
        line: OpenLine | None = None
        first = int(self.plane.lines.start[0]) if len(self.plane.lines) else 0
        for part in stream(self.buffer, plan, self.plane.lines):
            self.damage = self.damage + part.damage
            self.read = min(1.0, max(part.position - first, 1) / total)
            events, stats = part.tables["events"], part.tables.get("events.stats")
            if events.rows:
                bounds = [0, events.rows]
                if events.parent[0] != events.parent[-1]:
                    bounds[1:1] = (np.flatnonzero(np.diff(events.parent)) + 1).tolist()
                for lo, hi in pairwise(bounds):
                    number = int(events.parent[lo])
                    if line is None or line.number != number:
                        if line is not None:
                            line.finish()
                        line = OpenLine(self, number, whole=whole)
                        self._first_events.append((number, self.found.used["event"]))
                    line.add(events, stats, roles, lo, hi)
            if self.release is not None:
                self.release(part.position)
        if line is not None:
            line.finish()
        self.line_facts = line_facts(self.buffer, part.tables[""])
        """What the lines say about themselves."""


def _table_of(ref_ids: _Array) -> _Array:
    """The position of each small reference id, and of the empty text for ids that are not there."""
    small = ref_ids[(ref_ids >= 0) & (ref_ids < 1 << 20)]
    table = np.full(int(small[-1]) + 1 if small.size else 0, ref_ids.size, np.int32)
    table[small] = np.searchsorted(ref_ids, small)
    return table


def _kind(name: str) -> int:
    kind = EVENT_KINDS.get(name)
    if kind is not None:
        return kind
    return EventKind.KNOWN if has_known_type(name) else EventKind.OTHER


class _Lookup:
    """Small numbers for integer keys, by table where the keys are small."""

    def __init__(self, values: dict[int, int]) -> None:
        self._keys = np.array(sorted(values), np.int64)
        self._values = np.array([values[int(k)] for k in self._keys], np.uint8)
        self._table: _Array | None = None
        if self._keys.size and self._keys[0] >= 0 and self._keys[-1] < 1 << 20:
            self._table = np.zeros(int(self._keys[-1]) + 2, np.uint8)
            self._table[self._keys] = self._values

    def of(self, keys: _Array) -> _Array:
        """The value per key, 0 where there is none."""
        if self._table is not None:
            last = np.uint64(self._table.size - 1)
            return self._table[np.minimum(keys.view(np.uint64), last).view(np.int64)]
        if not self._keys.size:
            return np.zeros(keys.size, np.uint8)
        at = np.minimum(np.searchsorted(self._keys, keys), self._keys.size - 1)
        return np.where(self._keys[at] == keys, self._values[at], 0).astype(np.uint8)
