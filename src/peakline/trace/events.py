"""The events of a profile as one trace: what every analysis of time reads.

Times are int64 picoseconds on the profile's clock. An event is known by its place in the arrays
of a `Trace`; `Trace.rows` gives its row in the profile's own table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from peakline.kernels.trace_nesting import ends, nearest
from peakline.shown import Brief
from peakline.tables import Profile
from peakline.tables.columns import Columns, Names
from peakline.tables.once import once
from peakline.trace.nesting import nest_lines

FARTHEST = 2**62 - 1
"""No time of a trace is farther from the profile's start, in ps (53 days): so every span, and the
moment after the last, is a whole number of 64 bits.
"""
_EVENTS = frozenset(("line_id", "name", "start_ps", "duration_ps"))
_RUNS = frozenset(
    ("op_run_id", "device", "name", "op_type", "start_ps", "duration_ps", "thread", "is_duplicate")
)
HOST, DEVICE, OTHER = "host", "device", "other"
PART = re.compile(r"(?i)/(stream:[^/]*|memcpy|sync)$")
"""What StepStats append to a device's name for its streams, copies and synchronisations."""
_DEVICE = re.compile(r"(?is)(.*?)/?(?:device:)?(?<![a-z])([a-z]+:\d+)")
_FIRST_DERIVED, _DERIVED_LINES = 0xDEADBEEF, 406
"""Ids of the lines that the profiler makes of others (``trace_utils.h`` of XProf)."""


@dataclass(frozen=True)
class TracePlane:
    """A device, the threads of a host, or something else; ``kind`` is host, device or other."""

    plane_id: int
    name: str
    kind: str
    native_id: int | None


@dataclass(frozen=True)
class TraceLine:
    """A thread, a stream or a derived line; ``plane`` is its place in `Trace.planes`.

    ``first`` to ``last`` (exclusive) are its events. Without ``nests`` nobody knows which threads
    they ran on: that one lies in the time of another then says nothing.
    """

    line_id: int
    plane: int
    name: str
    native_id: int | None
    first: int
    last: int
    nests: bool = True

    @property
    def events(self) -> slice:
        """Where its events stand."""
        return slice(self.first, self.last)

    @property
    def derived(self) -> int | None:
        """Which of the lines that the profiler makes of others it is: 0 for that of the steps.

        Known by its id, of which 32 bits count: as a number with a sign some versions write it
        negative.
        """
        if self.native_id is None:
            return None
        number = (self.native_id - _FIRST_DERIVED) % 2**32
        return number if number < _DERIVED_LINES else None


@dataclass(frozen=True, eq=False, repr=False)
class Trace(Brief):
    """All events that have a time, line after line, each line by start, the longest first.

    ``source`` is the table they come from, ``events`` or ``op_runs`` (executions of StepStats; a
    line per device and thread, repeated work left out). ``end`` is never before ``start``, and
    both lie within 2**62 - 1 ps (53 days) of the profile's start: what is farther stands there.
    ``row`` is None where event n is row n of the table.
    """

    source: str
    planes: tuple[TracePlane, ...]
    lines: tuple[TraceLine, ...]
    start: Int64Array
    end: Int64Array
    name: Names
    row: Int64Array | None
    untimed: int
    """Events of the table that have no time, and so are not here."""

    @property
    def size(self) -> int:
        """The number of events."""
        return self.start.size

    @cached_property
    def first(self) -> Int64Array:
        """Where the events of each line begin, and the end of the last."""
        bounds = np.array([*(line.first for line in self.lines), self.size], np.int64)
        bounds.flags.writeable = False
        return bounds

    def rows(self, events: AnyArray | slice) -> Int64Array:
        """The rows of the source table that ``events`` (indices, mask or slice) stand for."""
        if self.row is not None:
            return self.row[events]
        # All numbers of ten million events are not made to pick a few.
        if isinstance(events, slice):
            return np.arange(*events.indices(self.size), dtype=np.int64)
        if events.dtype == np.bool_:
            return np.flatnonzero(events)
        return events.astype(np.int64, copy=False)

    def places(self, rows: AnyArray) -> Int64Array:
        """Where the events stand that are ``rows`` of the source table; -1 for one without a
        time.
        """
        if self.row is None:
            return rows
        most = max(int(self.row.max(initial=-1)), int(rows.max(initial=-1)))
        place = np.full(most + 1, -1, np.int64)
        place[self.row] = np.arange(self.size)
        return place[rows]

    def lines_of(self, events: Int64Array) -> Int64Array:
        """The place in ``lines`` of each of ``events`` (indices)."""
        return np.searchsorted(self.first[1:], events, side="right")

    @cached_property
    def places_of_lines(self) -> tuple[list[int], ...]:
        """The places in ``lines`` of the lines of each plane."""
        result: tuple[list[int], ...] = tuple([] for _ in self.planes)
        for place, line in enumerate(self.lines):
            result[line.plane].append(place)
        return result

    def lines_in(self, plane: int) -> list[TraceLine]:
        """The lines of the plane at that place in ``planes``."""
        return [self.lines[place] for place in self.places_of_lines[plane]]

    def lines_on(self, *kinds: str) -> Iterator[TraceLine]:
        """The lines with events on planes of one of ``kinds`` (host, device, other)."""
        for line in self.lines:
            if line.last > line.first and self.planes[line.plane].kind in kinds:
                yield line

    def within(self, lines: Iterable[TraceLine]) -> BoolArray:
        """Which events lie on one of ``lines``."""
        result = np.zeros(self.size, np.bool_)
        for line in lines:
            result[line.events] = True
        return result

    def span(self) -> tuple[int, int]:
        """From the first start to the last end; (0, 0) without events."""
        if not self.size:
            return 0, 0
        return int(self.start.min()), int(self.end.max())


_LEVELS = 32
"""So many events around each are looked at one by one; hardly any trace is deeper."""


@dataclass(frozen=True, eq=False)
class Nesting:
    """What lies in what, within each line of ``trace``; each array is made when it is first read.

    Of events that overlap only in part neither is the other's parent, and the later
    one gets a row of its own.
    """

    trace: Trace

    @cached_property
    def parent(self) -> Int32Array:
        """The innermost event of its line that holds an event whole, -1 where none does."""
        return self._nest(np.zeros(0, np.uint16), np.zeros(0, np.int64))

    @cached_property
    def row(self) -> npt.NDArray[np.uint16]:
        """How deep an event is drawn."""
        row = np.empty(self.trace.size, np.uint16)
        self._nest(row, np.zeros(0, np.int64))
        return row

    @cached_property
    def own_ps(self) -> Int64Array:
        """The duration of an event without what its direct children cover, in ps."""
        own = np.empty(self.trace.size, np.int64)
        self._nest(np.zeros(0, np.uint16), own)
        return own

    def around(self, events: AnyArray, wanted: BoolArray) -> Int64Array:
        """The innermost event around each of ``events`` that is ``wanted`` (a mask of all), -1 for
        none.
        """
        parent = self.parent
        above = parent[events].astype(np.int64)
        searching = np.flatnonzero((above >= 0) & ~wanted[above])
        for _ in range(_LEVELS):
            if not searching.size:
                return above
            above[searching] = parent[above[searching]]
            here = above[searching]
            searching = searching[(here >= 0) & ~wanted[here]]
        # Events may be as deep as there are many.
        result = np.empty(parent.size, np.int32)
        nearest(parent, wanted.view(np.uint8), result)
        above[searching] = result[above[searching]]
        return above

    def _nest(self, row: npt.NDArray[np.uint16], own: Int64Array) -> Int32Array:
        trace = self.trace
        parent = vars(self).get("parent")
        if parent is None:
            parent = np.empty(trace.size, np.int32)
        nests = np.array([line.nests for line in trace.lines], np.bool_)
        nest_lines(trace.start, trace.end, trace.first, nests, parent, row, own)
        # Not before: another thread takes it as it is.
        vars(self)["parent"] = parent
        return parent


@once
def trace_of(profile: Profile) -> Trace:
    """The profile's events; executions of ops where the file holds those. Read once.

    Empty where there is nothing that ran at a time. Raises InputError when the profile cannot be
    read.
    """
    if profile.has_rows("op_runs"):
        return _of_runs(profile.columns("op_runs", _RUNS))
    if "events" not in profile.tables:
        return _empty()
    # First: whoever reads the events sees the lines on the way.
    events = profile.columns("events", _EVENTS)
    return _of_events(profile.columns("planes"), profile.columns("lines"), events)


def read_with_steps(profile: Profile) -> None:
    """Read the events and which step each belongs to at once.

    For who needs both: had the trace been read first, the file would be read again for the steps.
    """
    if not profile.has_rows("op_runs") and "events" in profile.tables:
        profile.columns("events", _EVENTS | {"step_id"})


@once
def nesting_of(profile: Profile) -> Nesting:
    """The nesting of `trace_of`, made once."""
    return Nesting(trace_of(profile))


def line_bounds(line_id: AnyArray, lines: Iterable[int]) -> list[int]:
    """Where each of ``lines`` begins, or would, in a column ``line_id`` that ascends."""
    # Of another type, NumPy would copy the whole column for each question.
    bounds: list[int] = np.searchsorted(line_id, np.fromiter(lines, line_id.dtype)).tolist()
    return bounds


def _empty() -> Trace:
    none = np.zeros(0, np.int64)
    return Trace("events", (), (), none, none, Names(np.zeros(0, np.int32), []), None, 0)


def _of_events(planes: Columns, lines: Columns, events: Columns) -> Trace:
    line, name = events.array("line_id"), events.names("name")
    start, length = events.array("start_ps"), events.array("duration_ps")
    row: Int64Array | None = None
    timed = events.is_valid("start_ps")
    if not timed.all():
        row = np.flatnonzero(timed)
        line, start, length, name = line[row], start[row], length[row], name.take(row)
    planes_read = tuple(
        TracePlane(one["plane_id"], one["name"] or "", one["kind"] or OTHER, one["native_id"])
        for one in planes.to_pylist()
    )
    place = {plane.plane_id: number for number, plane in enumerate(planes_read)}
    heads = [
        (one["line_id"], place[one["plane_id"]], one["name"] or "", one["native_id"], True)
        for one in lines.to_pylist()
    ]
    untimed = timed.size - line.size
    return _ordered("events", planes_read, heads, line, start, length, name, row, untimed)


def _of_runs(runs: Columns) -> Trace:
    """One plane per device, one line per thread of it."""
    keep = np.flatnonzero(~runs.array("is_duplicate"))
    runs = runs.take(keep)
    device, thread = runs.names("device"), runs.array("thread")
    threaded = runs.is_valid("thread")
    keys = np.stack([device.codes.astype(np.int64), np.where(threaded, thread, -1)])
    distinct, line = np.unique(keys, axis=1, return_inverse=True)
    used = sorted(set(distinct[0].tolist()))
    names = [device.values[code] if code >= 0 else "" for code in used]
    # What the executor ran for a device whose streams are recorded, it ran on the host.
    recorded = {device_key(PART.sub("", name)) for name in names if PART.search(name)}
    planes = tuple(
        TracePlane(number, name, _device_kind(name, recorded), None)
        for number, name in enumerate(names)
    )
    plane = {code: number for number, code in enumerate(used)}
    heads: list[_Head] = [
        (number, plane[code], f"thread {own}", own, True)
        if own >= 0
        else (number, plane[code], "", None, False)
        for number, (code, own) in enumerate(distinct.T.tolist())
    ]
    return _ordered(
        "op_runs", planes, heads, line.reshape(-1), runs.array("start_ps"),
        runs.array("duration_ps"), runs.names("name"), keep, 0,
    )  # fmt: skip


def _device_kind(name: str, recorded: AbstractSet[tuple[str, str]]) -> str:
    part = PART.search(name)
    if part is not None:
        return HOST if part[1].lower() == "sync" else DEVICE
    task, device = device_key(name)
    is_launched_for = (task, device) in recorded or ("", device) in recorded
    return HOST if "cpu" in name.lower() or is_launched_for else DEVICE


def device_key(name: str) -> tuple[str, str]:
    """Task and device of ``/job:x/replica:0/task:0/device:GPU:0``, or of ``/gpu:0``."""
    result = _DEVICE.fullmatch(name)
    return (result[1], result[2].lower()) if result else ("", name.lower())


_Head = tuple[int, int, str, int | None, bool]
"""Of a line its id, plane, name and native id, and whether its events nest."""


def _ordered(
    source: str,
    planes: tuple[TracePlane, ...],
    heads: list[_Head],
    line: AnyArray,
    start: AnyArray,
    length: AnyArray,
    name: Names,
    row: Int64Array | None,
    untimed: int,
) -> Trace:
    """A trace of events whose ``line`` is a place in ``heads``; what is not in order is sorted."""
    if line.size and (line[1:] < line[:-1]).any():
        order = np.argsort(line, kind="stable")
        row = order if row is None else row[order]
        line, start, length, name = line[order], start[order], length[order], name.take(order)
    bounds = line_bounds(line, range(len(heads) + 1))
    lines = tuple(
        TraceLine(*head[:-1], lo, hi, nests=head[-1])
        for head, lo, hi in zip(heads, bounds[:-1], bounds[1:], strict=True)
    )
    first = np.array(bounds, np.int64)
    end = np.empty(start.size, np.int64)
    unordered = np.empty(len(lines), np.bool_)
    least, most = ends(start, length, first, FARTHEST, end, unordered)
    odd = np.flatnonzero(unordered)
    if odd.size:
        order = np.arange(start.size, dtype=np.int64)
        for number in odd.tolist():
            part = lines[number].events
            order[part] = part.start + np.lexsort((-length[part], start[part]))
        row = order if row is None else row[order]
        start, end, name = start[order], end[order], name.take(order)
    if least < -FARTHEST or most > FARTHEST:
        start, end = (np.clip(times, -FARTHEST, FARTHEST) for times in (start, end))
    return Trace(source, planes, lines, start, end, name, row, untimed)
