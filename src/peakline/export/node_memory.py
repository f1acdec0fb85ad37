"""Which execution each record of an allocator belongs to, and what it says of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, Int64Array
from peakline.export.tensors import allocation_descriptions, tensor_descriptions
from peakline.kernels.memory_layout import (
    ALLOCATION,
    DEALLOCATION,
    UNTRACKED_ALLOCATION,
    UNTRACKED_DEALLOCATION,
)
from peakline.memory.lifetimes import match_lifetimes
from peakline.memory.peak.explained import BEFORE_PROFILE, UNATTRIBUTED
from peakline.memory.usage import buffer_bytes
from peakline.tables.columns import Columns, Names
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
    found = np.full(key.size, -1, np.int64)
    found[order] = np.where(same, order[latest], -1)
    return np.where(wanted >= 0, found[start.size :], -1)


def _sums(values: Int64Array, bounds: Int64Array) -> Int64Array:
    """The sum of every stretch of rows."""
    total = np.append(0, np.cumsum(values))
    found: Int64Array = total[bounds[1:]] - total[bounds[:-1]]
    return found
