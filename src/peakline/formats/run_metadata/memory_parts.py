"""What the runs' executions record of memory, and which output is the buffer of which record."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from peakline.arrays import BoolArray, Int32Array, Int64Array, UInt64Array
from peakline.formats.memory_log.tensors import data_types
from peakline.formats.run_metadata import texts
from peakline.formats.run_metadata.runs import (
    BUFFER,
    MEMORY,
    NODES,
    ON_DEVICE,
    OUTPUT,
    PERSISTENT,
    RECORDS,
    STATS,
    TENSOR,
    Runs,
    names_of,
    picoseconds,
    place_in_group,
    same,
)
from peakline.kernels.allocation_records import first_in_first_out, fit_by_number, neighbours
from peakline.tables.columns import Names
from peakline.wire import Spans
from peakline.wire.strings import Interner


@dataclass(frozen=True, eq=False)
class Records:
    """Allocation records in file order: the execution, the memory (``domain``: an allocator of a
    task), the entry they stand in, picoseconds, and bytes (negative: freed).
    """

    node: Int32Array
    domain: Int64Array
    entry: Int64Array
    time: Int64Array
    bytes: Int64Array

    @property
    def is_free(self) -> BoolArray:
        """The records of deallocations."""
        return self.bytes < 0

    @cached_property
    def partner(self) -> Int64Array:
        """The record of the other end of the buffer's life, -1 where there is none.

        Frees take the allocations of their size in order, within one entry.
        """
        group = same(self.entry, np.abs(self.bytes))
        partner = np.full(group.size, -1, np.int64)
        order = np.argsort(group, kind="stable")
        first_in_first_out(group, self.is_free, order, partner)
        return partner


@dataclass(frozen=True, eq=False)
class Tensors:
    """Outputs that show a buffer, in file order; ``number`` is its id, 0 for none.

    ``rank`` orders them in time: by the start of their execution.
    """

    node: Int32Array
    domain: Int64Array
    number: Int64Array
    address: UInt64Array
    size: Int64Array
    rank: Int64Array
    time: Int64Array

    @cached_property
    def key(self) -> Int64Array:
        """The buffer each shows, numbered; those that have neither id nor address share some."""
        return same(self.domain, self.number, self.address)

    @cached_property
    def first(self) -> Int64Array:
        """Per buffer the row that shows it first."""
        order = np.lexsort((self.rank, self.key))
        _, at = np.unique(self.key[order], return_index=True)
        return order[at]

    @cached_property
    def renumbers(self) -> BoolArray:
        """Per row, whether its domain gives one id to several buffers."""
        shown = self.first[(self.number[self.first] > 0) & (self.address[self.first] > 0)]
        pair = same(self.domain[shown], self.number[shown])
        twice = self.domain[shown][np.bincount(pair)[pair] > 1] if shown.size else shown
        return np.isin(self.domain, twice)


class Ownership:
    """Per record the output that shows its buffer (``tensor``, -1 for none), and per buffer of
    the outputs whether a record made it (``is_owned``).
    """

    def __init__(self, records: Records, tensors: Tensors) -> None:
        self.tensor = np.full(records.node.size, -1, np.int64)
        self.is_owned = np.zeros(tensors.first.size, np.bool_)
        self._records, self._tensors = records, tensors
        self._claim()
        self._fit()

    def _claim(self) -> None:
        records, tensors = self._records, self._tensors
        made = np.flatnonzero(~records.is_free)
        known = (tensors.number > 0) | (tensors.address > 0)
        anew = tensors.renumbers | (tensors.number == 0)
        first = tensors.node[tensors.first][tensors.key] == tensors.node
        rows = np.flatnonzero(known & (first | anew))
        # One row per execution and buffer, in order of the ids.
        _, once = np.unique(same(tensors.node[rows], tensors.key[rows]), return_index=True)
        rows = rows[once]
        rows = rows[np.lexsort((rows, tensors.number[rows]))]
        group = same(
            np.concatenate([records.node[made], tensors.node[rows]]),
            np.concatenate([records.domain[made], tensors.domain[rows]]),
            np.concatenate([records.bytes[made], tensors.size[rows]]),
        )
        cut = made.size
        # From the end: the outputs live longest.
        parts = (group[:cut], group[cut:])
        place = np.concatenate([place_in_group(part[::-1])[::-1] for part in parts])
        slot = same(group, place)
        record_of = np.full(int(slot.max(initial=-1)) + 1, -1, np.int64)
        record_of[slot[:cut]] = made
        owner = record_of[slot[cut:]]
        self._own(owner[owner >= 0], rows[owner >= 0])

    def _own(self, records: Int64Array, tensors: Int64Array) -> None:
        self.tensor[records] = tensors
        self.is_owned[self._tensors.key[tensors]] = True

    def _fit(self) -> None:
        """Give buffers that were made by one execution and shown by another their record.

        Ids rise with time: the record lies between those with the next lower and higher id.
        """
        records, tensors = self._records, self._tensors
        shown = tensors.first
        open_ = ~self.is_owned & (tensors.number[shown] > 0) & ~tensors.renumbers[shown]
        buffers = np.flatnonzero(open_)
        made = np.flatnonzero(~records.is_free)
        left = (self.tensor[made] < 0) & (records.partner[made] < 0)
        if not buffers.size or not left.any():
            return
        order = np.lexsort((records.time[made], records.domain[made]))
        made, left = made[order], left[order]
        label = self.tensor[made]
        number = np.where(label < 0, 0, tensors.number[label]) if tensors.number.size else label
        low, high = np.empty(made.size, np.int64), np.empty(made.size, np.int64)
        neighbours(records.domain[made], number.astype(np.int64), low, high)
        made, low, high = made[left], low[left], high[left]
        rows = shown[buffers]
        group = same(
            np.concatenate([records.domain[made], tensors.domain[rows]]),
            np.concatenate([records.bytes[made], tensors.size[rows]]),
        )
        mine, theirs = group[: made.size], group[made.size :]
        by_time = np.lexsort((records.time[made], mine))
        by_number = np.lexsort((tensors.number[rows], theirs))
        result = np.full(made.size, -1, np.int64)
        fit_by_number(
            mine[by_time], low[by_time], high[by_time], records.time[made][by_time],
            theirs[by_number], tensors.number[rows][by_number], tensors.time[rows][by_number],
            result,
        )  # fmt: skip
        got = result >= 0
        self._own(made[by_time][got], rows[by_number][result[got]])


_PATHS = (
    "dev_stats.device", f"{NODES}.node_name", f"{NODES}.timeline_label",
    f"{NODES}.all_start_micros", f"{NODES}.all_start_nanos", f"{NODES}.all_end_rel_micros",
    f"{NODES}.all_end_rel_nanos", f"{MEMORY}.*", f"{RECORDS}.*", f"{TENSOR}.dtype",
    f"{TENSOR}.shape", f"{TENSOR}.shape?", f"{BUFFER}.*", f"{STATS}.temp_memory_size", PERSISTENT,
    ON_DEVICE,
)  # fmt: skip


@dataclass
class Executions:
    """Per execution: its run (place in the list), task, start and end in picoseconds, and
    ``rank``, its place in time.
    """

    run: Int64Array
    task: Int32Array
    start: Int64Array
    end: Int64Array
    rank: Int64Array = field(init=False)

    def __post_init__(self) -> None:
        self.rank = np.empty(self.start.size, np.int64)
        self.rank[np.argsort(self.start, kind="stable")] = np.arange(self.start.size)


class MemoryParts:
    """Executions, allocation records and outputs of all runs.

    ``allocators`` names each memory: an allocator's name, in a file of several tasks with the
    task before it, since each task has memory of its own.
    """

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self._steps = runs.steps(*_PATHS)
        self._devices = self._steps.device_names()
        self.names = names_of(runs.buffer, self._steps.nodes.spans("node_name"))
        self.executions = self._read_executions()
        self._number_memories()
        self.records = self._read_records()
        self.tensors = self._read_tensors()

    def _read_executions(self) -> Executions:
        nodes, clock = self._steps.nodes, self.runs.clock
        tasks = Names.encode([texts.task_of(name) for name in self._devices.values])
        self._tasks = tasks.values
        start = clock.at(nodes.array("all_start_micros"), nodes.array("all_start_nanos"))
        length = picoseconds(nodes.array("all_end_rel_micros"), nodes.array("all_end_rel_nanos"))
        return Executions(
            run=self._steps.run_of_node,
            task=tasks.codes[self._devices.codes][nodes.parent],
            start=start,
            end=start + length,
        )

    def _number_memories(self) -> None:
        steps, interner = self._steps, Interner()
        memory, tensor, buffer = steps[MEMORY], steps[TENSOR], steps[BUFFER]
        names = [
            interner.add(self.runs.buffer, table.spans("allocator_name"))
            for table in (memory, buffer)
        ]
        self._node_of_buffer = steps[OUTPUT].parent[tensor.parent[buffer.parent]]
        nodes = np.concatenate([memory.parent, self._node_of_buffer])
        pairs = self.executions.task[nodes].astype(np.int64) * (len(interner) + 1)
        distinct, domain = np.unique(pairs + np.concatenate(names), return_inverse=True)
        self._domain_of_memory = domain[: memory.rows]
        self._domain_of_buffer = domain[memory.rows :]
        task, code = np.divmod(distinct, len(interner) + 1)
        several = np.unique(task).size > 1
        self.allocators = [
            f"{self._tasks[t]}/{interner.values[c]}"
            if several and self._tasks[t]
            else interner.values[c]
            for t, c in zip(task.tolist(), code.tolist(), strict=True)
        ]

    def _read_records(self) -> Records:
        memory, records = self._steps[MEMORY], self._steps[RECORDS]
        entry, time, size = self._estimated()
        real = records.array("alloc_bytes") != 0
        when = self.runs.clock.at(records.array("alloc_micros"))[real]
        written = records.array("alloc_bytes")[real].astype(np.int64)
        entry = np.concatenate([records.parent[real], entry])
        order = np.argsort(entry, kind="stable")
        entry = entry[order]
        return Records(
            node=memory.parent[entry],
            domain=self._domain_of_memory[entry],
            entry=entry,
            time=np.concatenate([when, time])[order],
            bytes=np.concatenate([written, size])[order],
        )

    def _estimated(self) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Records made up for entries that only have totals: entry, time, bytes.

        What is live at the end is allocated at the start; the rest of the peak too, and freed at
        the end.
        """
        memory, records = self._steps[MEMORY], self._steps[RECORDS]
        live, peak, total = (
            np.maximum(memory.array(f"{name}_bytes").astype(np.int64), 0)
            for name in ("live", "peak", "total")
        )
        most = np.where((peak > 0) | (live > 0), np.maximum(peak, live), total)
        silent = np.bincount(records.parent, minlength=memory.rows) == 0
        self.estimated = np.flatnonzero(silent & (most > 0))
        rows = self.estimated
        chosen, passing = rows[live[rows] > 0], rows[most[rows] > live[rows]]
        gone = (most - live)[passing]
        start, end = self.executions.start[memory.parent], self.executions.end[memory.parent]
        return (
            np.concatenate([chosen, passing, passing]),
            np.concatenate([start[chosen], start[passing], end[passing]]),
            np.concatenate([live[chosen], gone, -gone]),
        )

    def _read_tensors(self) -> Tensors:
        buffer, node = self._steps[BUFFER], self._node_of_buffer
        got = buffer.array("allocated_bytes").astype(np.int64)
        self.requested = buffer.array("requested_bytes").astype(np.int64)
        return Tensors(
            node=node,
            domain=self._domain_of_buffer,
            number=np.maximum(buffer.array("allocation_id").astype(np.int64), 0),
            address=buffer.array("ptr").astype(np.uint64),
            size=np.where(got > 0, got, self.requested),
            rank=self.executions.rank[node],
            time=self.executions.start[node],
        )

    def estimated_places(self) -> tuple[Int32Array, Int64Array]:
        """Execution and memory of each entry whose records are estimated."""
        memory = self._steps[MEMORY]
        return memory.parent[self.estimated], self._domain_of_memory[self.estimated]

    def reported(self) -> tuple[Int32Array, Int64Array, Int64Array]:
        """Execution, memory, and what the allocator said is in use at the execution's end, of
        the entries that say so.
        """
        memory = self._steps[MEMORY]
        in_use = memory.array("allocator_bytes_in_use").astype(np.int64)
        rows = np.flatnonzero(in_use > 0)
        return memory.parent[rows], self._domain_of_memory[rows], in_use[rows]

    def labels(self, nodes: Int32Array) -> tuple[list[str], Int32Array]:
        """The distinct labels of executions, and per execution which."""
        spans: Spans = self._steps.nodes.spans("timeline_label").take(nodes)
        names = names_of(self.runs.buffer, spans)
        return list(names.values), names.codes

    def has_temporary(self) -> BoolArray:
        """Per execution whether it records temporary memory."""
        stats = self._steps[STATS]
        result = np.zeros(self._steps.nodes.rows, np.bool_)
        result[stats.parent] = stats.array("temp_memory_size") > 0
        return result

    def persistent(self) -> tuple[Int32Array, Int64Array]:
        """Execution and id of every buffer that lives on between steps."""
        stats = self._steps[STATS]
        chosen = [self._steps[path] for path in (PERSISTENT, ON_DEVICE)]
        node = np.concatenate([stats.parent[table.parent] for table in chosen])
        number = np.concatenate([table.array("value").astype(np.int64) for table in chosen])
        return node, number

    def descriptions(self, rows: Int64Array) -> dict[str, Names]:
        """``data_type`` and ``shape`` of rows of `tensors`; null for row -1."""
        tensor = self._steps[TENSOR]
        shapes = tensor.spans("shape"), tensor.array("shape?")
        columns = {
            "data_type": data_types(tensor.array("dtype")),
            "shape": texts.shape_names(self.runs.buffer, *shapes),
        }
        described = np.append(self._steps[BUFFER].parent, -1)[rows]
        return {
            name: Names(np.append(names.codes, np.int32(-1))[described], names.values)
            for name, names in columns.items()
        }
