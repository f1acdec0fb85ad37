"""One pass over the lines of a plane: nodes for step grouping, and the memory records.

The pass streams: of what it has read it holds only what is found, the stack of open events, and
the events of an unfinished thread-pool region. A line whose events are not in order of time
while it has such regions is sorted first, as upstream does; then lines are taken whole. The events
themselves are stored where they are wanted: the same pass finds and groups them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, Int32Array, Int64Array, UInt64Array
from peakline.formats.common.files import SourceFile
from peakline.formats.xplane.line import OpenLine, OutOfOrder, Scratch
from peakline.formats.xplane.line_parts import LineFacts, Lookup, StatRows
from peakline.formats.xplane.line_reader import LineReader
from peakline.formats.xplane.names import EVENT_KINDS, KEPT_STATS, STAT_ROLES, has_known_type
from peakline.formats.xplane.outline import PlaneOutline, most_id
from peakline.formats.xplane.store import Found
from peakline.formats.xplane.times import OFFSET
from peakline.kernels.line_layout import NOT_WANTED, SOME_STATS
from peakline.kernels.xplane_numbers import FIRST_MEMORY_ROLE, KEEP, EventKind, Role
from peakline.wire import Interner, Union


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
        kept = {number for number, name in names if self.keep and name in KEPT_STATS}
        roles = {
            number: wanted.get(number, Role.KEPT) + KEEP * (number in kept)
            for number in wanted.keys() | kept
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
