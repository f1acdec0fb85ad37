"""StepStats of a profile of events: executions of ops, and what the allocators did for them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, Int64Array
from peakline.errors import NotFoundError
from peakline.export.step_stats import allocation_descriptions, tensor_descriptions
from peakline.kernels.memory_layout import (
    ALLOCATION,
    DEALLOCATION,
    UNTRACKED_ALLOCATION,
    UNTRACKED_DEALLOCATION,
)
from peakline.memory.lifetimes import match_lifetimes
from peakline.memory.peak.explained import BEFORE_PROFILE, UNATTRIBUTED
from peakline.memory.usage import buffer_bytes
from peakline.tables import Profile
from peakline.tables.columns import Columns, Names
from peakline.tables.tables import empty_columns
from peakline.wire.encode import Field, Messages, Number, Pool, Spans, encode


@dataclass(frozen=True, eq=False)
class OfNodes:
    """Records by execution: ``owner`` ascending, in time order within one.

    Executions after the ``nodes`` given are ``others``: what holds memory of no execution.
    ``bytes`` is negative for what was given back, ``rows`` are rows of ``events``.
    """

    nodes: int
    others: list[str]
    start_of_others: Int64Array
    end: Int64Array
    events: Columns
    rows: Int64Array
    owner: Int64Array
    bytes: Int64Array

    def fields(self, zero_ns: int) -> list[Field]:
        """Memory and outputs of every execution, those of ``others`` behind them."""
        every = np.arange(self.nodes + len(self.others) + 1)
        return [self._memory(zero_ns, every), self._outputs(every)]

    def _memory(self, zero_ns: int, every: Int64Array) -> Spans:
        """One AllocatorMemoryUsed per execution and allocator, with its records."""
        names = self.events.names("allocator")
        allocator = np.where(names.codes < 0, len(names.values), names.codes)[self.rows]
        order = np.lexsort((allocator, self.owner))
        rows, owner, allocator = self.rows[order], self.owner[order], allocator[order]
        size, time = self.bytes[order], self.events.array("time_ps")[rows]
        micros = (time // 1000 + zero_ns) // 1000
        records = encode(rows.size, [Number(1, micros), Number(2, size)], frame=6)
        new = np.ones(rows.size, np.bool_)
        new[1:] = (owner[1:] != owner[:-1]) | (allocator[1:] != allocator[:-1])
        first = np.flatnonzero(new)
        bounds = np.append(first, rows.size)
        total = _sums(np.maximum(size, 0), bounds)
        within = time <= self.end[owner]
        live = _sums(np.where(within, size, 0), bounds)
        running = np.cumsum(size)
        running -= np.repeat(running[first] - size[first], np.diff(bounds))
        peak = np.maximum(np.maximum.reduceat(running, first), 0) if first.size else total
        # The last record by the end of the execution, else the first.
        place = np.where(within, np.arange(rows.size), first[np.cumsum(new) - 1])
        last = np.maximum.reduceat(place, first) if first.size else first
        known = self.events.is_valid("in_use_bytes")[rows[last]]
        in_use = np.where(known, self.events.array("in_use_bytes")[rows[last]], 0)
        used = encode(
            first.size,
            [
                Pool(1, [*names.values, ""], skip_empty=True).of(allocator[first]),
                Number(2, total),
                Number(3, peak),
                Number(4, np.maximum(live, 0)),
                Number(5, in_use),
                records.of(bounds),
            ],
            frame=6,
        )
        return used.of(np.searchsorted(owner[first], every))

    def _outputs(self, every: Int64Array) -> Spans:
        """One NodeOutput per buffer that was allocated for an output."""
        events = self.events
        region = events.names("region_type")
        is_output = (region.codes == region.code_of("output"))[self.rows] & (self.bytes > 0)
        rows, owner = self.rows[is_output], self.owner[is_output]
        allocator = events.names("allocator").take(rows)

        def value(name: str) -> AnyArray:
            return np.where(events.is_valid(name)[rows], events.array(name)[rows], 0)

        buffers = allocation_descriptions(
            [
                (1, value("requested_bytes")),
                (2, value("allocated_bytes")),
                (4, value("allocation_id")),
                (6, value("address").astype(np.uint64)),
            ],
            Pool(3, allocator.values, skip_empty=True).of(allocator.codes),
            4,
        )
        places = np.arange(rows.size)
        tensors = tensor_descriptions(
            events.names("data_type").take(rows), events.names("shape").take(rows),
            buffers.at(places), 3,
        )  # fmt: skip
        slot = places - np.searchsorted(owner, owner)
        outputs: Messages = encode(rows.size, [Number(1, slot), tensors.at(places)], frame=7)
        return outputs.of(np.searchsorted(owner, every))


def node_memory(events: Columns, names: Names, start: Int64Array, end: Int64Array) -> OfNodes:
    """Give every allocation to the execution of its op that was running, or ran last before it.

    A deallocation belongs to who allocated the buffer. What belongs to no execution is grouped
    by its op.
    """
    lifetimes = match_lifetimes(events)
    kind = lifetimes.kind
    begins = np.isin(kind, (ALLOCATION, UNTRACKED_ALLOCATION))
    ends = np.isin(kind, (DEALLOCATION, UNTRACKED_DEALLOCATION))
    owner = np.full(events.rows, -1, np.int64)
    owner[begins] = _running(events, np.flatnonzero(begins), names, start)
    ops = events.names("op")
    title = np.where(ops.codes < 0, len(ops.values), ops.codes).astype(np.int64)
    titles = [*ops.values, UNATTRIBUTED, BEFORE_PROFILE]
    partner = lifetimes.begin.astype(np.int64)
    matched = np.flatnonzero(ends & (partner >= 0))
    owner[matched] = owner[partner[matched]]
    title[matched] = title[partner[matched]]
    title[ends & (partner < 0)] = len(titles) - 1
    size = np.zeros(events.rows, np.int64)
    size[begins] = buffer_bytes(events, np.flatnonzero(begins))
    size[ends] = -buffer_bytes(events, np.flatnonzero(ends))
    unknown = matched[size[matched] == 0]
    size[unknown] = -size[partner[unknown]]
    rows = np.flatnonzero((begins | ends) & (size != 0))
    lost = rows[owner[rows] < 0]
    used, group = np.unique(title[lost], return_inverse=True)
    owner[lost] = start.size + group.reshape(-1)
    first = np.full(used.size, np.iinfo(np.int64).max)
    np.minimum.at(first, group.reshape(-1), events.array("time_ps")[lost])
    rows = rows[np.lexsort((rows, owner[rows]))]
    others = [titles[code] or UNATTRIBUTED for code in used.tolist()]
    return OfNodes(
        start.size, others, first, np.append(end, first), events, rows, owner[rows], size[rows]
    )


def _running(events: Columns, rows: Int64Array, names: Names, start: Int64Array) -> Int64Array:
    """The execution of each record's op that began last by then, -1 for none."""
    ops = events.names("op")
    numbers: dict[str, int] = {}
    of_name = np.array([numbers.setdefault(n, len(numbers)) for n in names.values], np.int64)
    of_op = np.array([numbers.get(name, -1) for name in (*ops.values, "")], np.int64)
    wanted = np.where(ops.codes[rows] < 0, -1, of_op[ops.codes[rows]])
    key = np.concatenate([of_name[names.codes] if start.size else start, wanted])
    time = np.concatenate([start, events.array("time_ps")[rows]])
    is_record = np.arange(key.size) >= start.size
    order = np.lexsort((is_record, time, key))
    latest = np.maximum.accumulate(np.where(is_record[order], -1, np.arange(order.size)))
    same = (latest >= 0) & (key[order[latest]] == key[order])
    result = np.full(key.size, -1, np.int64)
    result[order] = np.where(same, order[latest], -1)
    return np.where(wanted >= 0, result[start.size :], -1)


def _sums(values: Int64Array, bounds: Int64Array) -> Int64Array:
    """The sum of every stretch of rows."""
    total = np.append(0, np.cumsum(values))
    result: Int64Array = total[bounds[1:]] - total[bounds[:-1]]
    return result


START_NS = 1_000_000_000
"""Where the profile's clock begins: the tables do not say when that was, and 0 is no time."""
_TASK = "/job:localhost/replica:0/task:0"
_OP = re.compile(r"([^\s:()]+):([A-Za-z_]\w*)")
"""How TensorFlow's executors name what they run: ``scope/name:Type``."""
_DERIVED = re.compile(
    r"(?i)steps|xla modules|xla traceme|(?:framework|tensorflow) (?:ops|name scope)|source code|"
    r"async xla ops|launch stats|overheads?|.*derived.*"
)
"""Lines of a device that repeat what others show."""
_STREAM = re.compile(r"(?i)stream\s*+#?+\s*+(\w++)")


def executions_of_events(
    profile: Profile,
) -> tuple[Names, Int64Array, Messages, Messages, Int64Array]:
    """What `peakline.export.step_stats.executions` gives, of events.

    Host threads: events that are named as executors name ops, or all of them where none is.
    Devices: all events but those of derived lines, an entry for each of their streams. Memory of
    an allocator's record goes to the execution that its op names and that was running, or last
    ran; what belongs to none stands in executions of its own without length.
    """
    wanted = frozenset(("line_id", "name", "start_ps", "duration_ps"))
    events = profile.columns("events", wanted)
    lines, planes = profile.columns("lines"), profile.columns("planes")
    device_of_line, thread_of_line = _devices(planes, lines)
    named = [_OP.fullmatch(name) for name in events.names("name").values]
    is_op = np.array([result is not None for result in named] + [False], np.bool_)
    kinds = dict(planes.each("plane_id", "kind"))
    on_host = np.array([kinds[plane] == "host" for plane in lines.array("plane_id").tolist()])
    is_own = np.array([name is not None for name in device_of_line], np.bool_)
    line, codes = events.array("line_id"), events.names("name").codes
    host = on_host[line]
    ops = is_op[codes]
    chosen = is_own[line] & (~host | ops) if (ops & host).any() else is_own[line]
    chosen &= events.is_valid("start_ps")
    rows = np.flatnonzero(chosen)
    if not rows.size:
        raise NotFoundError(f"{profile.path}: no executions of ops on host or device lines")
    devices = list(dict.fromkeys(name for name in device_of_line if name is not None))
    entry_of_line = np.array([devices.index(n) if n is not None else -1 for n in device_of_line])
    start = events.array("start_ps")[rows]
    order = np.lexsort((start, entry_of_line[line[rows]]))
    rows, start = rows[order], start[order]
    entry, thread = entry_of_line[line[rows]], thread_of_line[line[rows]]
    end = start + np.maximum(events.array("duration_ps")[rows], 0)
    node, label = _texts(events.names("name").values, named)
    codes = codes[rows]
    memory = node_memory(_records(profile), Names(codes, node), start, end)
    more = memory.others
    # Memory of no execution stands in an entry of its own, behind all others.
    codes = np.append(codes, len(node) + np.arange(len(more))).astype(np.int32)
    start = np.append(start, memory.start_of_others)
    length = np.append(end - start[: end.size], np.zeros(len(more), np.int64))
    entry = np.append(entry, np.full(len(more), len(devices)))
    thread = np.append(thread, np.zeros(len(more), np.int64))
    fields: list[Field] = [
        Pool(1, [*node, *more]).of(codes),
        *_times(start, length),
        Number(10, thread),
        Pool(8, [*label, *(f"{name} = unknown()" for name in more)]).of(codes),
        *memory.fields(START_NS),
    ]
    nodes = encode(entry.size, fields, frame=2)
    threads, first_thread = _threads(lines, entry_of_line, thread_of_line, len(devices))
    if more:
        devices.append(next((name for name in devices if "CPU" in name), devices[0]))
        first_thread = np.append(first_thread, first_thread[-1])
    first = np.searchsorted(entry, np.arange(len(devices) + 1))
    # Two entries may have one device.
    names = Names(np.arange(len(devices), dtype=np.int32), devices)
    return names, first, nodes, threads, first_thread


def _records(profile: Profile) -> Columns:
    """What allocators did over time; nothing where the profile is one moment."""
    if profile.is_derived("allocator_events"):
        return empty_columns("allocator_events")
    return profile.columns_or_empty("allocator_events")


def _devices(planes: Columns, lines: Columns) -> tuple[list[str | None], Int64Array]:
    """The device and thread number of every line; None for a line that is no device's own."""
    kinds = {plane: (kind, name) for plane, kind, name in planes.each("plane_id", "kind", "name")}
    result: list[str | None] = []
    for plane, name in lines.each("plane_id", "name"):
        kind, device = kinds[plane]
        if kind == "host":
            result.append(f"{_TASK}/device:CPU:0")
        elif kind != "device" or _DERIVED.fullmatch(name or ""):
            result.append(None)
        else:
            stream = _STREAM.match(name or "")
            where = device if (device or "").startswith("/") else f"/device:{device}"
            result.append(f"{where}/stream:{stream[1]}" if stream else f"{_TASK}{where}")
    # Threads of step_stats.proto have 32 bits.
    own = lines.array("native_id") & 0xFFFFFFFF
    threads = np.where(lines.is_valid("native_id"), own, lines.array("line_id"))
    if np.unique(threads).size < threads.size:
        threads = lines.array("line_id")
    return result, threads.astype(np.int64)


def _texts(
    names: Sequence[str], named: Sequence[re.Match[str] | None]
) -> tuple[list[str], list[str]]:
    """Node name and label of every name of an event."""
    nodes, labels = [], []
    for name, result in zip(names, named, strict=True):
        node, op = (result[1], result[2]) if result else (name, "unknown")
        nodes.append(node)
        labels.append(f"{node} = {op}()")
    return nodes, labels


def _times(start_ps: Int64Array, length_ps: Int64Array) -> list[Field]:
    """When each execution began and how long it took, in micros and nanos."""
    start = start_ps // 1000 + START_NS
    length = (start_ps + length_ps) // 1000 - start_ps // 1000
    return [
        Number(2, start // 1000),
        Number(4, length // 1000),
        Number(5, length // 1000),
        Number(9, start // 1000),
        Number(13, start),
        Number(15, length),
        Number(16, length),
        Number(17, start),
    ]


def _threads(
    lines: Columns, entry_of_line: Int64Array, thread_of_line: Int64Array, devices: int
) -> tuple[Messages, Int64Array]:
    """The names of the threads, and the first of each device."""
    own = np.flatnonzero(entry_of_line >= 0)
    own = own[np.argsort(entry_of_line[own], kind="stable")]
    names = lines.names("name").take(own)
    fields: list[Field] = [Number(1, thread_of_line[own]), Pool(2, names.values).of(names.codes)]
    first = np.searchsorted(entry_of_line[own], np.arange(devices + 1))
    return encode(own.size, fields, frame=3), first
