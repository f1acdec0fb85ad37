"""The events of a profile as a trace viewer shows them: processes, tracks, names, flows, groups.

`whole_view` shows every plane, and what the file itself holds. Sources:
``xplane_to_trace_container.cc`` in openxla/xprof (``xprof/convert``), ``preprocess_xplane.h`` and
``xplane_schema.cc`` in openxla/xla (``xla/tsl/profiler/utils``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.tables import Names, Profile
from peakline.tables.once import once
from peakline.trace.events import DEVICE, HOST, TracePlane, trace_of
from peakline.viewer.derived import DerivedEvents, derived_lines
from peakline.viewer.flows import Flows, flows_of
from peakline.viewer.names import HIDDEN_EVENTS, step_names

COMPLETE, COUNTER, ASYNC = 0, 1, 2
"""What the events of a track are."""

HOST_PID, OTHER_PID, MOST_DEVICE_PID = 701, 501, 500
HOST_PLANE, COUNTER_LINE = "/host:CPU", "_counters_"


@dataclass(frozen=True)
class Process:
    """A process of the viewer: a plane. ``threads`` are the names by number."""

    pid: int
    name: str
    threads: dict[int, str]


@dataclass(frozen=True)
class Track:
    """Events drawn together: a thread (``tid``), or the counters or asynchronous events that
    share a name on a process; ``first`` to ``last`` (exclusive) are its events.
    """

    pid: int
    tid: int
    kind: int
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class View:
    """What a viewer shows of one host.

    The events of a track stand together, by start, the longest first. Times are on the profile's
    clock (``zero_ps`` is its zero on the file's, see `zero_of`); ``row`` is the event's in
    ``events``, -1 for one that is not there, None where event n is row n. Events whose name is
    ``hidden`` are not shown.
    """

    profile: Profile
    processes: tuple[Process, ...]
    tracks: tuple[Track, ...]
    start: Int64Array
    end: Int64Array
    name: Names
    hidden: BoolArray
    row: Int64Array | None
    zero_ps: int
    group: tuple[Int64Array, BoolArray] | None = None
    """The group of every event and whether it has one, where that is not the row's."""
    flow: Flows | None = None
    """The flow of every event, where that is not the row's."""
    made: DerivedEvents | None = None
    """What is known of events that are not in ``events``."""
    steps: dict[int, list[tuple[str, str | int | float]]] = field(default_factory=dict)
    """What upstream adds to the arguments of events that stand for steps, by row."""
    has_stats: bool = True
    """Whether rows are those of the ``events`` table, whose events have stats."""
    names_steps: bool = False
    """Whether events that open a step can be shown by its name instead of their own."""

    @cached_property
    def first(self) -> Int64Array:
        """Where the events of each track begin, and the end of the last."""
        bounds = [track.first for track in self.tracks]
        return np.array([*bounds, self.start.size], np.int64)

    def rows(self, events: Int64Array) -> Int64Array:
        """The rows in ``events`` of events of the view; -1 for one that is not there."""
        return events if self.row is None else self.row[events]

    def tracks_of(self, events: Int64Array) -> Int64Array:
        """The place in ``tracks`` of each of ``events``."""
        result: Int64Array = np.searchsorted(self.first[1:], events, side="right")
        return result

    def groups(self, events: Int64Array) -> tuple[Int64Array, BoolArray]:
        """The step of each of ``events``, and whether it has one."""
        if self.group is not None:
            return self.group[0][events], self.group[1][events]
        rows = self.rows(events)
        group, has_group = np.zeros(events.size, np.int64), np.zeros(events.size, np.bool_)
        there = rows >= 0
        if there.any() and self.has_stats:
            table = self.profile.columns("events", frozenset(("step_id",)))
            group[there] = table.array("step_id")[rows[there]]
            has_group[there] = table.is_valid("step_id")[rows[there]]
        if self.made is not None:
            group[~there] = self.made.group[events[~there] - self.made.first]
            has_group[~there] = group[~there] >= 0
        return group, has_group

    def names_of(self, events: Int64Array, *, with_steps: bool) -> Names:
        """What is shown for ``events``; ``with_steps`` those that open a step have its name."""
        names = self.name.take(events)
        if not (with_steps and self.names_steps):
            return names
        opened, texts = step_names(self.profile)
        place = np.full(int(opened.max(initial=-1)) + 2, -1, np.int64)
        place[opened] = np.arange(opened.size)
        rows = self.rows(events)
        at = place[np.minimum(np.where(rows >= 0, rows, place.size), place.size - 1)]
        codes = np.where(at >= 0, at + len(names.values), names.codes).astype(np.int32)
        return Names(codes, [*names.values, *texts])

    def flows(self, events: Int64Array) -> Flows:
        """The flow of each of ``events``."""
        if self.flow is not None:
            return self.flow.take(events)
        return flows_of(self.profile).take(self.rows(events))


@once
def whole_view(profile: Profile) -> View:
    """All events that have a time, with the lines that XProf derives for devices; made once.

    Raises InputError when the profile cannot be read.
    """
    trace = trace_of(profile)
    derived = derived_lines(profile)
    pids = process_numbers(trace.planes)
    tids = _thread_numbers(
        [(line.plane, derived.tids.get(line.line_id, line.native_id)) for line in trace.lines]
    )
    tracks: list[Track] = []
    threads: list[dict[int, str]] = [{} for _ in trace.planes]
    order: Int64Array | None = None
    for line, tid in zip(trace.lines, tids, strict=True):
        if line.name != COUNTER_LINE:
            tracks.append(Track(pids[line.plane], tid, COMPLETE, line.first, line.last))
            if line.last > line.first:
                threads[line.plane][tid] = line.name
            continue
        # Counters of one name belong together.
        codes = trace.name.codes[line.events]
        order = np.arange(trace.size) if order is None else order
        by_name = np.argsort(codes, kind="stable")
        order[line.events] = line.first + by_name
        first = line.first + np.flatnonzero(np.diff(codes[by_name], prepend=-1))
        for lo, hi in zip(first.tolist(), [*first[1:].tolist(), line.last], strict=True):
            tracks.append(
                Track(pids[line.plane], int(trace.name.codes[order[lo]]), COUNTER, lo, hi)
            )
    texts = _shown_names(profile, trace.name.values)
    hidden = [text in HIDDEN_EVENTS for text in trace.name.values]
    parts: list[_Part] = [(trace.start, trace.end, trace.name.codes, trace.row)]
    if order is not None:
        own = order if trace.row is None else trace.row[order]
        parts = [(trace.start[order], trace.end[order], trace.name.codes[order], own)]
    size = trace.size
    for made in derived.lines:
        threads[made.plane][made.tid] = made.name
        last = size + made.start.size
        tracks.append(Track(pids[made.plane], made.tid, COMPLETE, size, last))
        size = last
        codes = (made.code + len(texts)).astype(np.int32)
        texts += [shown for shown, _ in made.texts]
        hidden += [False] * len(made.texts)
        parts.append((made.start, made.end, codes, np.full(made.start.size, -1, np.int64)))
    start, end, code, row = _joined(parts)
    drawn = {track.pid for track in tracks}
    return View(
        profile,
        tuple(
            Process(pid, plane.name, own)
            for pid, plane, own in zip(pids, trace.planes, threads, strict=True)
            if own or pid in drawn
        ),
        tuple(tracks),
        start,
        end,
        Names(code, texts),
        np.array(hidden or [False], np.bool_),
        row,
        zero_of(profile, start, end),
        made=DerivedEvents(derived.lines, trace.size) if derived.lines else None,
        has_stats=trace.source == "events" and "events" in profile.tables,
        names_steps=True,
    )


def zero_of(profile: Profile, start: Int64Array, end: Int64Array) -> int:
    """Where the profile's clock is zero on the file's, in ps; 0 where the events' times on that
    one are no int64: those of 1970, whose picoseconds nobody knows, are given on the profile's.
    """
    zero, limits = profile.zero_ps, np.iinfo(np.int64)
    # An event before the first and one after the last, and their times, still have to fit.
    least, most = int(start.min(initial=0)) - 1, int(end.max(initial=0)) + 1
    return zero if limits.min <= zero + least and zero + most <= limits.max else 0


_Part = tuple[AnyArray, AnyArray, AnyArray, AnyArray | None]


def _joined(parts: list[_Part]) -> _Part:
    """Start, end, name and row of the trace's events and of those that were added."""
    if len(parts) == 1:
        return parts[0]
    own = parts[0][3]
    rows = np.arange(parts[0][0].size) if own is None else own
    start, end, code = (np.concatenate([part[k] for part in parts]) for k in range(3))
    added = [part[3] for part in parts[1:] if part[3] is not None]
    return start, end, code, np.concatenate([rows, *added])


def _shown_names(profile: Profile, names: Sequence[str]) -> list[str]:
    """What is shown for events of these names: the display name of their kind where it has one."""
    texts = list(names)
    if "event_types" not in profile.tables:
        return texts
    types = profile.columns("event_types")
    shown: dict[str, str] = {}
    for name, display in zip(
        types.names("name").to_list(), types.names("display_name").to_list(), strict=True
    ):
        if display:
            shown.setdefault(name or "", display)
    return [shown.get(text, text) for text in texts]


def process_numbers(planes: tuple[TracePlane, ...]) -> list[int]:
    """XProf's number for every plane: 701 and up for planes of host threads, 1 and the device's id
    for devices, and 501 and up for all others.
    """
    hosts = sorted(
        (plane.name, number)
        for number, plane in enumerate(planes)
        if plane.name.startswith(HOST_PLANE)
    )
    if not hosts:
        hosts = [(p.name, number) for number, p in enumerate(planes) if p.kind == HOST][:1]
    pids = {number: HOST_PID + place for place, (_, number) in enumerate(hosts)}
    devices = [
        (number, plane.native_id)
        for number, plane in enumerate(planes)
        if plane.kind == DEVICE and number not in pids
    ]
    own = [native for _, native in devices]
    is_own = len(set(own)) == len(own) and all(
        native is not None and 0 <= native < MOST_DEVICE_PID for native in own
    )
    for place, (number, native) in enumerate(devices):
        pids[number] = 1 + (native if is_own and native is not None else place)
    others = [number for number in range(len(planes)) if number not in pids]
    pids |= {number: OTHER_PID + place for place, number in enumerate(others)}
    taken: set[int] = set()
    for number in range(len(planes)):
        while pids[number] in taken:
            pids[number] += 1
        taken.add(pids[number])
    return [pids[number] for number in range(len(planes))]


def _thread_numbers(lines: list[tuple[int, int | None]]) -> list[int]:
    """A number for every line: its own in 32 bits, as in XProf, if no two of a plane share it."""
    own = [(plane, None if native is None else native & 0xFFFFFFFF) for plane, native in lines]
    if len(set(own)) < len(own) or any(native is None for _, native in own):
        return list(range(len(lines)))
    return [native for _, native in own if native is not None]
