"""What happened when, from any profile: what both trace formats are written from.

A profile with events gives them; one with executions of ops (StepStats) gives those, a process
per device and a track per thread. Steps are a process of their own. Memory in use is a counter
per allocator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array
from peakline.errors import NotFoundError
from peakline.formats.chrome_trace.phases import step_category
from peakline.memory.lifetimes import match_lifetimes
from peakline.memory.signatures import read_history
from peakline.suggest import there_is
from peakline.tables import Profile
from peakline.tables.columns import Column, Columns, Names
from peakline.tables.tables import empty_columns
from peakline.trace.steps import Steps, steps_of

_EVENTS = frozenset(("event_id", "line_id", "name", "start_ps", "duration_ps", "category"))
_STEPS = "Steps"
TIMELINE_TABLES = (("events",), ("op_runs",), ("allocator_events",), ("counters",))
"""What a timeline is made from: rows of any of these tables."""
EMPTY = "this profile has no events, executions of ops, or records of an allocator over time"


@dataclass(frozen=True, eq=False)
class MemoryCounter:
    """Bytes in use of one allocator after each of its records that gives or implies them."""

    allocator: str
    time_ps: Int64Array
    bytes: Int64Array


@dataclass(frozen=True, eq=False)
class Timeline:
    """Planes are processes, lines their threads, ``events`` what ran; times are picoseconds.

    ``steps`` are events too, of the last line. ``stats`` (of ``events``), ``flows`` and
    ``counters`` are the tables of these names.
    """

    planes: Columns
    lines: Columns
    events: Columns
    stats: Columns | None
    steps: Columns
    flows: Columns
    counters: Columns
    memory: tuple[MemoryCounter, ...]

    def event_sets(self) -> Iterator[tuple[Columns, Columns | None]]:
        """The events and the steps, each with more about them."""
        if self.events.rows:
            yield self.events, self.stats
        if self.steps.rows:
            yield self.steps, None

    @property
    def first_ps(self) -> int:
        """The earliest time of all, 0 where there is none."""
        times = [
            events.array("start_ps")[events.is_valid("start_ps")]
            for events in (self.events, self.steps)
        ]
        times += [table.array("time_ps") for table in (self.flows, self.counters)]
        times += [counter.time_ps for counter in self.memory]
        return min((int(some.min()) for some in times if some.size), default=0)


def read_timeline(profile: Profile, *, args: bool, allocator: str | None) -> Timeline:
    """The timeline of ``profile``; without ``args`` the arguments of events are not read.

    ``allocator`` keeps the memory of one allocator. Raises NotFoundError where the profile has
    nothing that happened at a time, or no such allocator.
    """
    stats: Columns | None = None
    if profile.has_rows("op_runs"):
        planes, lines, events, stats = _executions(profile)
        stats = stats if args else None
    elif "events" in profile.tables:
        if args and profile.has_rows("event_stats"):
            # First: it takes the most memory while it is read.
            stats = profile.columns("event_stats")
        planes, lines = profile.columns("planes"), profile.columns("lines")
        events = profile.columns("events", _EVENTS | {"step_id"} if args else _EVENTS)
    else:
        planes, lines, events = (empty_columns(name) for name in ("planes", "lines", "events"))
    memory = memory_counters(profile, allocator)
    flows, counters = profile.columns_or_empty("flows"), profile.columns_or_empty("counters")
    if not (events.rows or memory or counters.rows):
        raise NotFoundError(f"{profile.path}: {EMPTY}")
    untimed = events.rows - int(np.count_nonzero(events.is_valid("start_ps")))
    if untimed:
        profile.warn("untimed_events", "events without a time are left out", untimed)
    planes, lines, steps = _with_steps(planes, lines, steps_of(profile))
    if not args:
        events, steps = _without_step(events), _without_step(steps)
    return Timeline(planes, lines, events, stats, steps, flows, counters, memory)


def memory_counters(profile: Profile, allocator: str | None) -> tuple[MemoryCounter, ...]:
    """Memory in use over time; nothing where the profile is one moment, as a heap profile is."""
    if profile.is_derived("allocator_events") or not profile.has_rows("allocator_events"):
        if allocator is not None:
            raise NotFoundError(f"{profile.path}: no allocator {allocator!r} over time")
        return ()
    records = profile.columns("allocator_events")
    lifetimes = match_lifetimes(records)
    history = read_history(records, lifetimes)
    if allocator is not None and allocator not in lifetimes.allocators:
        raise NotFoundError(
            f"no allocator {allocator!r} in the profile{there_is(allocator, lifetimes.allocators)}"
        )
    result = []
    for number, name in enumerate(lifetimes.allocators):
        rows = history.rows_of(number)
        rows = rows[history.measured[rows]]
        if rows.size and allocator in {None, name}:
            time = records.array("time_ps")[rows]
            result.append(MemoryCounter(name, time, history.used[rows]))
    return tuple(result)


def _with_steps(planes: Columns, lines: Columns, steps: Steps) -> tuple[Columns, Columns, Columns]:
    """The tables with a process for the steps, and the steps as events."""
    categories = [
        step_category(found_by, is_cut_off=is_cut_off)
        for found_by, is_cut_off in zip(steps.found_by.to_list(), steps.is_cut_off, strict=True)
    ]
    data: dict[str, Column] = {
        "event_id": np.arange(steps.size, dtype=np.int64),
        "step_id": steps.step_id,
        "category": Names.encode(categories),
        "line_id": np.full(steps.size, lines.rows, np.int64),
        "name": steps.name,
        "start_ps": steps.begin,
        "duration_ps": steps.end - steps.begin,
    }
    if not steps.size:
        return planes, lines, Columns(data)
    plane = int(planes.array("plane_id").max(initial=-1)) + 1
    more_planes = _row({"plane_id": plane, "name": _STEPS, "kind": "other", "native_id": None})
    more_lines = _row(
        {
            "line_id": lines.rows,
            "plane_id": plane,
            "name": _STEPS,
            "start_ps": 0,
            "native_id": lines.rows if lines.is_valid("native_id").all() else None,
        }
    )
    return _joined(planes, more_planes), _joined(lines, more_lines), Columns(data)


def _without_step(events: Columns) -> Columns:
    """The same events without their step, which is written as an argument."""
    return Columns({name: events[name] for name in events if name != "step_id"}, events.valid)


def _row(values: dict[str, int | str | None]) -> Columns:
    data: dict[str, Column] = {}
    valid = {}
    for name, value in values.items():
        if isinstance(value, str):
            data[name] = Names.constant(value, 1)
        else:
            data[name] = np.array([value or 0], np.int64)
            valid[name] = np.array([value is not None])
    return Columns(data, valid)


def _joined(one: Columns, other: Columns) -> Columns:
    data: dict[str, Column] = {}
    for name, column in one.items():
        if isinstance(column, Names):
            data[name] = Names.encode([*column.to_list(), *other.names(name).to_list()])
        else:
            data[name] = np.append(column, other.array(name))
    return Columns(
        data, {name: np.append(one.is_valid(name), other.is_valid(name)) for name in data}
    )


def _executions(profile: Profile) -> tuple[Columns, Columns, Columns, Columns]:
    """Executions of ops as planes (devices), lines (threads), events and more about them."""
    runs, devices = profile.columns("op_runs"), profile.columns("op_devices")
    entry, thread = runs.array("device_entry"), np.where(
        runs.is_valid("thread"), runs.array("thread"), 0
    )  # fmt: skip
    names = devices.names("device").to_list()
    plane_of_name = {name: number for number, name in enumerate(dict.fromkeys(names))}
    plane_of_entry = np.array([plane_of_name[name] for name in names], np.int64)
    # Two entries of one device are two steps of it.
    pairs = np.stack([plane_of_entry[entry], thread])
    distinct, line = np.unique(pairs, axis=1, return_inverse=True)
    threads = profile.columns("thread_names").each("device_entry", "thread_id", "name")
    texts = {(int(plane_of_entry[at]), number): name for at, number, name in threads}
    kinds = ["host" if "cpu" in (name or "").lower() else "device" for name in plane_of_name]
    count = len(plane_of_name)
    planes = Columns(
        {
            "plane_id": np.arange(count, dtype=np.int64),
            "name": Names.encode(list(plane_of_name)),
            "kind": Names.encode(kinds),
            "native_id": np.zeros(count, np.int64),
        },
        {"native_id": np.zeros(count, np.bool_)},
    )
    keys = [(int(plane), int(number)) for plane, number in distinct.T.tolist()]
    lines = Columns(
        {
            "line_id": np.arange(len(keys), dtype=np.int64),
            "plane_id": np.array([plane for plane, _ in keys], np.int64),
            "name": Names.encode([texts.get(key) or f"thread {key[1]}" for key in keys]),
            "start_ps": np.zeros(len(keys), np.int64),
            "native_id": np.array([number for _, number in keys], np.int64),
        }
    )
    events = Columns(
        {
            "event_id": np.arange(runs.rows, dtype=np.int64),
            "line_id": line.reshape(-1).astype(np.int64),
            "name": runs.names("name"),
            "start_ps": runs.array("start_ps"),
            "duration_ps": runs.array("duration_ps"),
            "step_id": runs.array("step_id"),
            "category": runs.names("kind"),
        },
        {"step_id": runs.is_valid("step_id")},
    )
    return planes, lines, events, _stats(runs)


def _stats(runs: Columns) -> Columns:
    """Type and label of every execution as stats."""
    parts = [("op", runs.names("op_type")), ("label", runs.names("label"))]
    rows = [np.flatnonzero(names.codes >= 0) for _, names in parts]
    event = np.concatenate(rows)
    name = np.repeat(np.arange(len(parts), dtype=np.int32), [some.size for some in rows])
    offset = len(parts[0][1].values)
    value = np.concatenate([parts[0][1].codes[rows[0]], parts[1][1].codes[rows[1]] + offset])
    order = np.lexsort((name, event))
    return Columns(
        {
            "event_id": event[order],
            "name": Names(name[order], [key for key, _ in parts]),
            "value": Names(
                value[order].astype(np.int32), [*parts[0][1].values, *parts[1][1].values]
            ),
        }
    )
