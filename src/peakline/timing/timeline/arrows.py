"""Arrows between events of a timeline: what one event hands to another, by the profile's own links.

- ``launch``: from a launch on the host to the work on the device (`links_of`);
- ``handed on``: from a host event to the one that takes up its work (`contexts_of`);
- ``message``: from the op that made a tensor to its receipt by another task (StepStats);
- ``allocation``: from a record of an allocation to that of its deallocation, where both are events;
- ``send``: from the send of a device to its receipt by another, by their channel (`sends_of`);
- ``asynchronous``: from an instruction ``x-start`` to the ``x-done`` that names it as its operand;
- any other name: an arrow of the file (the table ``flows``), from each of its ends to the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int32Array, Int64Array
from peakline.deadline import check_deadline
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.timing.timeline.sends import sends_of
from peakline.trace.events import Trace, trace_of
from peakline.trace.links import Links, bound_flows, contexts_of, links_of, links_within

LAUNCH = "launch"
MOST_EVENTS = 200_000
"""So many events of a stretch are looked at for its arrows alone."""
_TORCH = "ac2g"
_START = re.compile(r"%?([\w.-]+-start(?:\.\d+)*)")
_DONE = re.compile(r"%?[\w.-]+-done(?:\.\d+)* = .{0,400}?-done\([^%]{0,400}%([\w.-]+)", re.DOTALL)
_EDGE = re.compile(r"edge_\d+_(\S+)")
_Pairs = tuple[str, Int64Array, Int64Array]


@dataclass(frozen=True, eq=False)
class Arrows:
    """Arrow n is of ``kinds[kind[n]]``, from event ``cause[n]`` to ``target[n]`` (places in the
    trace), in order of target. ``by_cause`` puts them in order of cause.
    """

    kinds: tuple[str, ...]
    kind: Int32Array
    cause: Int64Array
    target: Int64Array
    by_cause: Int64Array

    @property
    def size(self) -> int:
        """The number of arrows."""
        return int(self.target.size)

    def of(self, event: int) -> tuple[Int64Array, Int64Array]:
        """The arrows that end at an event, and those that begin at it."""
        into = np.arange(*np.searchsorted(self.target, [event, event + 1]).tolist())
        cause = self.cause[self.by_cause]
        out = self.by_cause[slice(*np.searchsorted(cause, [event, event + 1]).tolist())]
        return into, np.sort(out)

    def within(self, trace: Trace, start_ps: int, end_ps: int) -> Int64Array:
        """The arrows of which one event or both lie in the stretch, in whole or in part."""
        result = np.zeros(self.size, np.bool_)
        for end in (self.cause, self.target):
            result |= (trace.start[end] < end_ps) & (trace.end[end] >= start_ps)
        return np.flatnonzero(result)


@once
def arrows_of(profile: Profile) -> Arrows:
    """All arrows of a profile, found once. Of two between the same events the first kind counts.

    Takes seconds per million events that hand on work: see `arrows_between`. Raises InputError when
    the profile cannot be read.
    """
    trace = trace_of(profile)
    parts = [_linked(profile, links_of(profile), contexts_of(profile))]
    if trace.source == "op_runs":
        parts.append([("message", *_messages(profile, trace))])
    else:
        parts.append([("send", *sends_of(profile))])
        parts.append([("asynchronous", *_asynchronous(trace, slice(None)))])
        parts.append([("allocation", *_allocations(profile))])
    return _joined(pair for part in parts for pair in part)


def arrows_between(profile: Profile, begin_ps: int, end_ps: int, *, memory: bool) -> Arrows | None:
    """The arrows between events that begin within a time, read for it alone.

    None where more than 200,000 events do; lifetimes of buffers only with ``memory``, since these
    take all records.
    """
    trace = trace_of(profile)
    inside = [np.zeros(0, np.int64)]
    for line in trace.lines:
        first, last = np.searchsorted(trace.start[line.events], (begin_ps, end_ps)) + line.first
        inside.append(np.arange(first, last))
    events = np.concatenate(inside)
    if events.size > MOST_EVENTS:
        return None
    sends = sends_of(profile)
    is_near = np.isin(sends[0], events) | np.isin(sends[1], events)
    parts = [
        _linked(profile, *links_within(profile, begin_ps, end_ps)),
        [("send", sends[0][is_near], sends[1][is_near])],
        [("asynchronous", *_asynchronous(trace, events))],
    ]
    if memory:
        parts.append([("allocation", *_allocations(profile))])
    return _joined(pair for part in parts for pair in part)


def _joined(pairs: Iterable[_Pairs]) -> Arrows:
    kinds: list[str] = []
    parts: list[tuple[Int32Array, Int64Array, Int64Array]] = []
    for name, cause, target in pairs:
        check_deadline()
        if cause.size:
            if name not in kinds:
                kinds.append(name)
            kind = np.full(cause.size, kinds.index(name), np.int32)
            parts.append((kind, cause.astype(np.int64), target.astype(np.int64)))
    none = np.zeros(0, np.int64)
    kind, cause, target = (
        np.concatenate(column)
        for column in zip((np.zeros(0, np.int32), none, none), *parts, strict=True)
    )
    order = np.lexsort((kind, cause, target))
    kind, cause, target = kind[order], cause[order], target[order]
    is_new = np.append(True, (cause[1:] != cause[:-1]) | (target[1:] != target[:-1]))[: order.size]
    is_new &= cause != target
    kind, cause, target = kind[is_new], cause[is_new], target[is_new]
    return Arrows(tuple(kinds), kind, cause, target, np.argsort(cause, kind="stable"))


def _linked(profile: Profile, launches: Links, handed: Links) -> list[_Pairs]:
    """Launches, what is handed on, and the arrows of the file."""
    trace = trace_of(profile)
    result: list[_Pairs] = [
        (LAUNCH, launches.cause, launches.target),
        ("handed on", handed.cause, handed.target),
    ]
    if trace.source == "op_runs":
        return result
    for name, cause, target in _flows(profile, trace):
        # PyTorch's arrows repeat the launches, some from what encloses them.
        is_new = np.isin(target, launches.target, invert=True)
        result.append(
            (LAUNCH, cause[is_new], target[is_new]) if name == _TORCH else (name, cause, target)
        )
    return result


def _flows(profile: Profile, trace: Trace) -> Iterator[_Pairs]:
    """From each end of an arrow of the file to the next, by time."""
    if "flows" not in profile.tables or not profile.has_rows("flows"):
        return
    flows = profile.columns("flows")
    place, number = bound_flows(profile, trace, flows), flows.array("flow_id")
    names = flows.names("name")
    rows = np.flatnonzero(place >= 0)
    phase = flows.names("phase").per_row("stf".find, np.int8)
    rows = rows[np.lexsort((phase[rows], flows.array("time_ps")[rows], number[rows]))]
    before, after = rows[:-1], rows[1:]
    is_pair = number[before] == number[after]
    is_pair &= phase[after] != 0
    before, after = before[is_pair], after[is_pair]
    for code in np.unique(names.codes[before]).tolist():
        own = names.codes[before] == code
        name = names.values[code] if code >= 0 else ""
        yield name or "arrow", place[before[own]], place[after[own]]


def _asynchronous(trace: Trace, events: Int64Array | slice) -> tuple[Int64Array, Int64Array]:
    """From the last run of a start before it, on the same line, to each run of its done; of
    ``events`` (ascending).
    """
    starts: dict[str, int] = {}
    done_of: dict[int, str] = {}
    for code, name in enumerate(trace.name.values):
        if "-start" in name and (match := _START.match(name)):
            starts[match[1]] = code
        if "-done" in name and (match := _DONE.match(name)):
            done_of[code] = match[1]
    causes, targets = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for code, operand in done_of.items():
        check_deadline()
        started = starts.get(operand)
        if started is None:
            continue
        begins, ends = _called(trace, events, started), _called(trace, events, code)
        line = trace.lines_of(ends)
        at = np.searchsorted(begins, ends) - 1
        is_there = at >= 0
        is_there &= trace.lines_of(begins[np.maximum(at, 0)]) == line if begins.size else is_there
        causes.append(begins[at[is_there]])
        targets.append(ends[is_there])
    return np.concatenate(causes), np.concatenate(targets)


def _called(trace: Trace, events: Int64Array | slice, code: int) -> Int64Array:
    result = np.flatnonzero(trace.name.codes[events] == code)
    return result if isinstance(events, slice) else events[result]


@once
def _allocations(profile: Profile) -> tuple[Int64Array, Int64Array]:
    """Records of allocators that are events of the trace: at their moment, on their thread."""
    from peakline.memory.lifetimes import match_lifetimes

    none, trace = np.zeros(0, np.int64), trace_of(profile)
    if "allocator_events" not in profile.tables or not profile.has_rows("allocator_events"):
        return none, none
    records = profile.columns("allocator_events")
    if "line_id" not in records:
        return none, none
    ends = match_lifetimes(records).end
    begins = np.flatnonzero(ends >= 0)
    ends = ends[begins]
    used = np.zeros(records.rows, np.bool_)
    used[begins] = used[ends] = True
    place = _places_of_records(
        trace,
        records.array("line_id"),
        records.array("time_ps"),
        used & records.is_valid("line_id"),
    )
    known = (place[begins] >= 0) & (place[ends] >= 0)
    return place[begins[known]], place[ends[known]]


def _places_of_records(
    trace: Trace, line_id: Int64Array, time: Int64Array, used: BoolArray
) -> Int64Array:
    """The event that begins at each record's moment on its line: the innermost; -1 for none."""
    place = np.full(time.size, -1, np.int64)
    for line in trace.lines:
        own = np.flatnonzero(used & (line_id == line.line_id))
        if not own.size or line.first == line.last:
            continue
        start = trace.start[line.events]
        at = np.searchsorted(start, time[own], "right") - 1
        is_there = (at >= 0) & (start[np.maximum(at, 0)] == time[own])
        place[own[is_there]] = line.first + at[is_there]
    return place


def _messages(profile: Profile, trace: Trace) -> tuple[Int64Array, Int64Array]:
    """To a ``RecvTensor`` from the last run, begun before its end, of the op that its label names
    on the device that its label names.
    """
    runs = profile.columns("op_runs", frozenset(("label", "kind")))
    rows = trace.rows(slice(None))
    label, kind = runs.names("label").take(rows), runs.names("kind").take(rows)
    receipts = np.flatnonzero(kind.codes == kind.code_of("rpc"))
    edges = {code: _edge_of(text) for code, text in enumerate(label.values)}
    line = trace.lines_of(np.arange(trace.size))
    plane = np.array([own.plane for own in trace.lines], np.int64)[line]
    planes = {one.name: number for number, one in enumerate(trace.planes)}
    causes, targets = [], []
    for event in receipts.tolist():
        check_deadline()
        edge = edges.get(int(label.codes[event]))
        code = trace.name.code_of(edge[0]) if edge else -2
        if edge is None or code < 0:
            continue
        made = np.flatnonzero((trace.name.codes == code) & (plane == planes.get(edge[1], -1)))
        made = made[trace.start[made] <= trace.end[event]]
        if made.size:
            causes.append(int(made[np.argmax(trace.start[made])]))
            targets.append(event)
    return np.array(causes, np.int64), np.array(targets, np.int64)


def _edge_of(label: str) -> tuple[str, str] | None:
    """The op that sends, and its device, of ``[4B] edge_5_w from DEVICE to DEVICE``."""
    sent, result, places = label.partition(" from ")
    device, _, receiver = places.partition(" to ")
    words = sent.split()
    edge = _EDGE.fullmatch(words[-1]) if words else None
    if edge is None or not (result and receiver) or len(device.split()) != 1:
        return None
    return edge[1], device
