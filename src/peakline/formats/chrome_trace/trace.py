"""A whole trace: begins and ends joined to events, times from the earliest one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array, UInt64Array
from peakline.formats.chrome_trace.collect import MEMORY_NUMBERS, NO_TIME, Collected
from peakline.formats.chrome_trace.phases import IS_END
from peakline.formats.chrome_trace.planes import Planes
from peakline.kernels.trace_events import number_arrows, pair
from peakline.tables.joins import by_process

_BEGIN, _END = ord("B"), ord("E")
_OPERATION_BEGINS = (ord("b"), ord("S"))


@dataclass(frozen=True, eq=False)
class Events:
    """The events, in file order (an event stands where it begins); times in ps after zero.

    ``name`` and ``category`` are codes, -1 where there is none; ``start`` is NO_TIME where it is
    not known. ``event_of_end`` is, for every record of an end in file order, the event it ends,
    or -1.
    """

    line: Int32Array
    name: Int32Array
    category: Int32Array
    start: Int64Array
    duration: Int64Array
    event_of_end: Int64Array

    @property
    def rows(self) -> int:
        """How many events."""
        return int(self.line.size)

    @property
    def timed(self) -> BoolArray:
        """Which events have a start."""
        return np.asarray(self.start != NO_TIME)


@dataclass(frozen=True, eq=False)
class Trace:
    """A trace's content; ``zero_ps`` is the time of the file at which the clock is 0.

    ``numbered_steps`` are the events with a step number: their rows, and the code of the number
    in ``collected.series``; ``groups`` is the same for the step of events that name it.
    """

    collected: Collected
    planes: Planes
    events: Events
    flows: dict[str, AnyArray]
    counters: dict[str, AnyArray]
    memory: dict[str, AnyArray]
    numbered_steps: tuple[Int64Array, Int32Array]
    groups: tuple[Int64Array, Int32Array]
    zero_ps: int
    is_open: BoolArray
    """Which events begin and never end."""
    unmatched_begins: int
    unmatched_ends: int
    repeated_flows: int
    """How many ids of arrows several processes use."""

    def end_ps(self) -> int:
        """End of the last event, instant, arrow or counter value."""
        last = 0
        timed = self.events.timed
        if timed.any():
            last = int((self.events.start + self.events.duration)[timed].max())
        for times in (self.flows["time"], self.counters["time"]):
            last = max(last, int(times.max(initial=0)))
        return last


def finish(result: Collected) -> Trace:
    """Pair begins with ends, and count time from the earliest event on."""
    zero = result.first_ps or 0
    columns = {
        name: result.events.take(name)
        for name in ("phase", "line", "name", "category", "start", "duration")
    }
    columns["start"][columns["start"] != NO_TIME] -= zero
    planes = Planes(result.lines)
    columns["line"] = planes.of_met[columns["line"]]
    operations = result.operations.take("row"), result.operations.take("key")
    partner, open_begins, lost_ends = _pair(columns, *operations)
    if open_begins.size:
        _close(columns, open_begins, planes.line_count)
    is_open = np.zeros(columns["phase"].size, np.bool_)
    is_open[open_begins] = True
    ends = IS_END[columns.pop("phase")]
    row_of = None
    event_of_end = np.zeros(0, np.int64)
    if ends.any():
        keep = ~ends
        row_of = np.cumsum(keep) - 1
        of_end = partner[ends]
        event_of_end = np.where(of_end >= 0, row_of[of_end], -1)
        for name in columns:
            columns[name] = columns[name][keep]
        is_open = is_open[keep]
    numbered = []
    for parts in (result.numbered_steps, result.groups):
        rows, numbers = parts.take("row"), parts.take("number")
        if row_of is not None and rows.size:
            begins = ~ends[rows]
            rows, numbers = row_of[rows[begins]], numbers[begins]
        numbered.append((rows, numbers))
    planes.note_repeats(*(columns[name] for name in ("line", "name", "start", "duration")))
    flows = _timed(result.flows, ("key", "name", "phase", "line", "time", "binds"), zero)
    flows["line"] = _lines_of_arrows(planes, flows, columns)
    repeated = _number_flows(flows, planes.plane_of_line)
    counters = _timed(result.counters, ("pid", "name", "series", "time", "value"), zero)
    counters["plane"] = planes.planes_of(counters.pop("pid"))
    memory = _timed(
        result.memory,
        ("line", "time", *MEMORY_NUMBERS, *(f"has {key}" for key in MEMORY_NUMBERS)),
        zero,
    )
    memory["line"] = planes.of_met[memory["line"]]
    return Trace(
        result,
        planes,
        Events(**columns, event_of_end=event_of_end),
        flows,
        counters,
        memory,
        numbered[0],
        numbered[1],
        (result.base_us or 0) * 10**6 + zero,
        is_open,
        int(open_begins.size),
        lost_ends,
        repeated,
    )


def _timed(parts: Any, names: tuple[str, ...], zero: int) -> dict[str, AnyArray]:
    columns = {name: parts.take(name) for name in names}
    columns["time"] -= zero
    return columns


def _pair(
    columns: dict[str, AnyArray], operation_row: Int64Array, operation_key: UInt64Array
) -> tuple[Int64Array, Int64Array, int]:
    """Set durations of what was begun and ended.

    Returns the partner of every row (-1: none; empty when nothing was paired), the begins without
    an end, and how many ends have no begin.
    """
    phase, start = columns["phase"], columns["start"]
    is_pair = (phase == _BEGIN) | (phase == _END)
    of_threads = np.flatnonzero(is_pair)
    opens = np.isin(phase[operation_row], _OPERATION_BEGINS) | IS_END[phase[operation_row]]
    of_operations = operation_row[opens]
    if not (of_threads.size or of_operations.size):
        return np.zeros(0, np.int64), np.zeros(0, np.int64), 0
    partner = np.full(phase.size, -1, np.int64)
    for rows, group in (
        (of_threads, columns["line"][of_threads]),
        (of_operations, operation_key[opens]),
    ):
        timed = start[rows] != NO_TIME
        some, group_of = rows[timed], group[timed]
        order = np.lexsort((some, start[some], group_of))
        result = np.full(some.size, -1, np.int64)
        pair(
            order, group_of.astype(np.uint64), IS_END[phase[some]], columns["name"][some], result,
            np.empty(some.size, np.int64),
        )  # fmt: skip
        matched = result >= 0
        partner[some[matched]] = some[result[matched]]
    both = np.concatenate([of_threads, of_operations])
    is_end = IS_END[phase[both]]
    begins, ends = both[~is_end], both[is_end]
    matched = begins[partner[begins] >= 0]
    columns["duration"][matched] = start[partner[matched]] - start[matched]
    return (
        partner,
        begins[(partner[begins] < 0) & (start[begins] != NO_TIME)],
        int(np.count_nonzero(partner[ends] < 0)),
    )


def _close(columns: dict[str, AnyArray], begins: Int64Array, lines: int) -> None:
    """What was begun and never ended lasts until the last time of its line."""
    last = np.full(lines, NO_TIME, np.int64)
    timed = columns["start"] != NO_TIME
    ends = columns["start"][timed] + columns["duration"][timed]
    np.maximum.at(last, columns["line"][timed], ends)
    columns["duration"][begins] = last[columns["line"][begins]] - columns["start"][begins]


def _number_flows(columns: dict[str, AnyArray], plane_of_line: Int32Array) -> int:
    """Number the arrows, ``flow`` for ``key``; returns how many ids several processes use."""
    key, phase = columns.pop("key"), columns["phase"]
    key, repeated = _by_process(key, columns, plane_of_line)
    # At equal times the arrow begins, then passes on, then ends.
    rank = np.searchsorted(np.array([ord("f"), ord("s"), ord("t")]), phase)
    rank = np.array([2, 0, 1])[rank]
    order = np.lexsort((np.arange(key.size), rank, columns["time"], key))
    flow = np.zeros(key.size, np.int64)
    number_arrows(order, key, phase, flow)
    # Number them as they appear in the file.
    _, first, place = np.unique(flow, return_index=True, return_inverse=True)
    number = np.empty(first.size, np.int64)
    number[np.argsort(first)] = np.arange(first.size)
    columns["flow"] = number[place]
    return repeated


def _by_process(
    key: UInt64Array, columns: dict[str, AnyArray], plane_of_line: Int32Array
) -> tuple[UInt64Array, int]:
    """Keys that differ between processes which use the same ids, and how many ids those are."""
    begins = columns["phase"] == ord("s")
    plane, time = plane_of_line[columns["line"]], columns["time"]
    of_begin, of_other, repeated = by_process(
        key[begins].view(np.int64), time[begins], plane[begins],
        key[~begins].view(np.int64), time[~begins], plane[~begins],
    )  # fmt: skip
    if not repeated:
        return key, 0
    apart = np.empty(key.size, np.int64)
    apart[begins], apart[~begins] = of_begin, of_other
    # What belongs to no process is an arrow for itself.
    is_open = apart < 0
    apart[is_open] = apart.max(initial=0) + 1 + np.arange(np.count_nonzero(is_open))
    return apart.view(np.uint64), repeated


def _lines_of_arrows(
    planes: Planes, flows: dict[str, AnyArray], events: dict[str, AnyArray]
) -> Int32Array:
    """The line of every end of an arrow.

    An arrow says only pid and tid. Where those are a thread and a stream, it is the line on which
    an event begins at its time, as Kineto writes both.
    """
    line = planes.of_met[flows["line"]]
    for alike in planes.same_thread():
        rows = np.flatnonzero(np.isin(line, alike))
        for other in alike:
            begins = events["start"][events["line"] == other]
            line[rows[np.isin(flows["time"][rows], begins)]] = other
    return line
