"""``allocator_events`` of traced runs: from the allocation records of their executions.

What the runtime records of an execution includes frees after its end, so the memory of a step can
be rebuilt. Four kinds of buffers have no record of their own:

* those that were there before the run (variables, constants): they are seen when an execution
  puts them out, and count from the start of the run in which they are first seen;
* those handed over by a receive, which the runtime does not trace: they count from the execution
  that first puts them out;
* what was fed: the ``_Arg`` that puts it out has a size, but neither id nor address;
* what nothing names, such as an optimizer's slots: executions record what their allocator had in
  use at their end. What this exceeds the found buffers by at the end of the first one is
  ``(before profile)``, from the start of the run. Frees of it are not recorded: where the
  executions end with less of it than all before, for good, so much was freed until then.

A file with several runs does not record what happened between them: a buffer in use at the end of
a run and not seen in a later one is taken as freed when that run ended.

Allocation ids are the allocator's own where an output has them; others are given while reading
and negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array
from peakline.formats.run_metadata import texts
from peakline.formats.run_metadata.memory_parts import MemoryParts, Ownership
from peakline.formats.run_metadata.runs import Runs, same
from peakline.tables.columns import Columns, Names

_REGIONS = ("output", "temp", "persist")
_OUT, _TEMP, _PERSIST = range(3)
_UNNAMED = "(before profile)"
_STEADY = 5
_LATER = np.iinfo(np.int64).max


@dataclass
class Estimates:
    """How often something had to be guessed: estimated allocations, frees between runs."""

    allocations: int = 0
    deallocations: int = 0


@dataclass(frozen=True, eq=False)
class _Before:
    """Buffers without a record: the output that shows each, when it begins, its region, and
    whether it was there before its run.
    """

    tensor: Int64Array
    time: Int64Array
    region: Int32Array
    is_older: BoolArray


@dataclass(frozen=True, eq=False)
class _Bases:
    """What no buffer explains: an execution of the run, the memory, the run, bytes, and when it was
    freed (`_LATER`: not in its run).
    """

    node: Int32Array
    domain: Int64Array
    run: Int64Array
    bytes: Int64Array
    freed: Int64Array

    def ends(self, rank: Int64Array, latest: int) -> Int64Array:
        """Those that end with their run, because a later one follows."""
        return np.flatnonzero((self.freed == _LATER) & (rank[self.run] < latest))


def read_allocator_events(runs: Runs) -> tuple[Columns, Estimates]:
    """The ``allocator_events`` of all runs."""
    events = _Events(MemoryParts(runs))
    return events.table(), events.estimates


class _Events:
    """One reading of the table."""

    def __init__(self, parts: MemoryParts) -> None:
        self._parts = parts
        self._runs, self._nodes = parts.runs, parts.executions
        self._records, self._tensors = parts.records, parts.tensors
        self.estimates = Estimates(allocations=parts.estimated.size)
        self._owners = Ownership(self._records, self._tensors)
        self._forget_estimated()
        self._before = self._read_before()

    def _forget_estimated(self) -> None:
        """What an execution with estimated records shows first is in its estimate."""
        first = self._tensors.first
        node, domain = self._parts.estimated_places()
        pair = same(
            np.concatenate([node, self._tensors.node[first]]),
            np.concatenate([domain, self._tensors.domain[first]]),
        )
        self._owners.is_owned |= np.isin(pair[node.size :], pair[: node.size])

    # Buffers without a record.

    def _read_before(self) -> _Before:
        tensors, nodes = self._tensors, self._nodes
        first = tensors.first
        identified = (tensors.number[first] > 0) | (tensors.address[first] > 0)
        result = first[identified & ~self._owners.is_owned & (tensors.size[first] > 0)]
        result = result[~self._is_view(result)]
        received = self._is_received(tensors.node[result])
        fed = self._feeds()
        tensor = np.concatenate([result, fed])
        run = nodes.run[tensors.node[tensor]]
        begins = self._begin_of_run[run]
        late = np.concatenate([received, np.zeros(fed.size, np.bool_)])
        region = np.full(tensor.size, _OUT, np.int32)
        region[: result.size][~received] = _PERSIST
        return _Before(tensor, np.where(late, tensors.time[tensor], begins), region, ~late)

    def _is_view(self, rows: Int64Array) -> BoolArray:
        """Outputs without an id whose address another output shows with one."""
        tensors = self._tensors
        numbered = np.flatnonzero((tensors.number > 0) & (tensors.address > 0))
        place = same(
            np.concatenate([tensors.domain[numbered], tensors.domain[rows]]),
            np.concatenate([tensors.address[numbered], tensors.address[rows]]),
        )
        known = np.isin(place[numbered.size :], place[: numbered.size])
        view: BoolArray = known & (tensors.number[rows] == 0)
        return view

    def _is_received(self, nodes: Int32Array) -> BoolArray:
        """Executions with an input that no execution of the file put out: it was received."""
        labels, codes = self._parts.labels(nodes)
        known = set(self._parts.names.values)
        received = np.zeros(len(labels), np.bool_)
        for number, label in enumerate(labels):
            _, inputs = texts.label_parts(label) or ("", [])
            sources = (name.partition(":")[0] for name in inputs if name and name[0] != "^")
            received[number] = any(name not in known for name in sources)
        return received[codes]

    def _feeds(self) -> Int64Array:
        """One output per ``_Arg`` and run that shows memory without an id and an address."""
        tensors = self._tensors
        rows = np.flatnonzero((tensors.number == 0) & (tensors.address == 0) & (tensors.size > 0))
        labels, codes = self._parts.labels(tensors.node[rows])
        parts = [texts.label_parts(label) for label in labels]
        is_feed = np.array([part is not None and part[0] == "_Arg" for part in parts], np.bool_)
        rows = rows[is_feed[codes]] if codes.size else rows
        node = tensors.node[rows]
        _, once = np.unique(
            same(self._nodes.run[node], self._parts.names.codes[node]), return_index=True
        )
        return rows[np.sort(once)]

    # Runs.

    @cached_property
    def _earliest(self) -> int:
        return int(self._records.time.min(initial=0))

    @cached_property
    def _run_start(self) -> Int64Array:
        start = np.full(len(self._runs.runs), np.iinfo(np.int64).max)
        np.minimum.at(start, self._nodes.run, self._nodes.start)
        return start

    @cached_property
    def _begin_of_run(self) -> Int64Array:
        """When what was there before a run begins: for the first one before any record."""
        return np.where(self._run_rank == 0, min(0, self._earliest), self._run_start)

    @cached_property
    def _run_end(self) -> Int64Array:
        end = np.full(len(self._runs.runs), np.iinfo(np.int64).min)
        np.maximum.at(end, self._nodes.run, self._nodes.end)
        np.maximum.at(end, self._nodes.run[self._records.node], self._records.time)
        return end

    @cached_property
    def _run_rank(self) -> Int64Array:
        """The place of each run among those that ran something, in time."""
        rank = np.empty(len(self._runs.runs), np.int64)
        rank[np.argsort(self._run_start, kind="stable")] = np.arange(rank.size)
        return rank

    def _last_seen(self, tensor: Int64Array, node: Int32Array) -> Int64Array:
        """The rank of the last run in which the buffer of an output is seen (else ``node``'s)."""
        tensors, ranks = self._tensors, self._run_rank
        last = np.zeros(tensors.first.size, np.int64)
        np.maximum.at(last, tensors.key, ranks[self._nodes.run[tensors.node]])
        seen = ranks[self._nodes.run[node]]
        followed = tensor >= 0
        if tensors.node.size:
            followed &= (tensors.number[tensor] > 0) & ~tensors.renumbers[tensor]
        seen[followed] = np.maximum(seen[followed], last[tensors.key[tensor[followed]]])
        return seen

    # The table.

    def table(self) -> Columns:
        """All events in time order."""
        records, before, tensors = self._records, self._before, self._tensors
        made, old = records.node.size, before.tensor.size
        # Rows: the old buffers, the records, and what a run's end frees.
        origin = np.where(records.is_free, records.partner, -1)
        origin = old + np.where(origin < 0, np.arange(made), origin)
        tensor = np.concatenate([before.tensor, self._owners.tensor])
        node = np.concatenate([tensors.node[before.tensor], records.node])
        freed = np.concatenate([np.zeros(old, np.bool_), (records.partner >= 0) | records.is_free])
        begins = np.concatenate([np.ones(old, np.bool_), ~records.is_free | (records.partner < 0)])
        last = self._last_seen(tensor, node)
        latest = self._run_rank[self._nodes.run].max(initial=0)
        ended = np.flatnonzero(~freed & (last < latest))
        self.estimates.deallocations = ended.size
        run_of_rank = np.argsort(self._run_rank, kind="stable")
        size = np.concatenate([tensors.size[before.tensor], np.abs(records.bytes)])
        region = np.concatenate([before.region, self._regions()])
        domain = np.concatenate([tensors.domain[before.tensor], records.domain])
        op = self._parts.names.codes[node]

        source = np.concatenate([np.arange(old), origin, ended])
        is_free = np.arange(source.size) >= old
        is_free[old : old + made] = records.is_free
        time = np.concatenate([before.time, records.time, self._run_end[run_of_rank[last[ended]]]])
        is_older = np.zeros(source.size, np.bool_)
        is_older[:old] = before.is_older

        # What no buffer explains comes before all that happens at its time.
        change = np.where(is_free, -size[source], size[source])
        base = self._bases(domain[source], time, change)
        more, gone = base.node.size, base.ends(self._run_rank, latest)
        place = node.size + np.arange(more)
        gone = np.concatenate([np.flatnonzero(base.freed < _LATER), gone])
        source = np.concatenate([place, source, place[gone]])
        is_free = np.concatenate([np.zeros(more, np.bool_), is_free, np.ones(gone.size, np.bool_)])
        begin, end = self._begin_of_run[base.run], self._run_end[base.run[gone]]
        time = np.concatenate([begin, time, np.minimum(base.freed[gone], end)])
        is_older = np.concatenate(
            [np.ones(more, np.bool_), is_older, np.zeros(gone.size, np.bool_)]
        )
        node = np.concatenate([node, base.node])
        tensor = np.concatenate([tensor, np.full(more, -1)])
        begins = np.concatenate([begins, np.ones(more, np.bool_)])
        size = np.concatenate([size, base.bytes])
        region = np.concatenate([region, np.full(more, -1, np.int32)])
        domain = np.concatenate([domain, base.domain])
        op = np.concatenate([op, np.full(more, len(self._parts.names.values), np.int32)])

        order = np.argsort(time, kind="stable")
        source, is_free, time = source[order], is_free[order], time[order]
        is_older = is_older[order]
        label = tensor[source]
        is_base = source >= place[0] if more else np.zeros(source.size, np.bool_)
        numbers = self._numbers(tensor, begins)
        address = np.where(label < 0, 0, _taken(tensors.address, label))
        reported, has_report = self._most_reported(domain[source])
        requested = np.where(is_base, size[source], _taken(self._parts.requested, label))
        return Columns(
            {
                "time_ps": time,
                "sequence": order.astype(np.int64),
                "allocator": Names(domain[source].astype(np.int32), self._parts.allocators),
                "activity": Names(is_free.astype(np.int32), ["allocation", "deallocation"]),
                "address": address.astype(np.uint64),
                "allocation_id": numbers[source],
                "requested_bytes": np.where(is_free, 0, requested),
                "allocated_bytes": size[source],
                "op": Names(op[source], [*self._parts.names.values, _UNNAMED]),
                "region_type": Names(region[source], _REGIONS),
                **self._parts.descriptions(label),
                "step_id": self._runs.step_ids[self._nodes.run[node[source]]],
                "is_before": is_older,
                "peak_bytes": reported,
            },
            {
                "peak_bytes": has_report,
                "address": address != 0,
                "requested_bytes": ~is_free & ((label >= 0) | is_base),
                "step_id": ~is_older & ~is_base,
            },
        )

    def _most_reported(self, domain: Int64Array) -> tuple[Int64Array, BoolArray]:
        """The most that each memory had in use at an execution's end, at its last event.

        What is found of buffers can be less: others may run meanwhile, whose buffers nothing names.
        """
        _, memory, in_use = self._parts.reported()
        most = np.zeros(len(self._parts.allocators) + 1, np.int64)
        np.maximum.at(most, memory, in_use)
        is_last = np.zeros(domain.size, np.bool_)
        last = np.full(most.size, -1, np.int64)
        last[domain] = np.arange(domain.size)  # of several, the last one stays
        is_last[last[last >= 0]] = True
        return most[domain], is_last & (most[domain] > 0)

    def _bases(self, domain: Int64Array, time: Int64Array, change: Int64Array) -> _Bases:
        """Per run and memory what its allocator had in use beyond all buffers found, in parts that
        were freed at one time, in the order of the runs; ``change`` is what each event adds to its
        memory.
        """
        node, memory, in_use = self._parts.reported()
        if not node.size:
            return _Bases(node, memory, self._nodes.run[node], in_use, in_use)
        # Live at an execution's end: the running sum of its memory, events of that time included.
        when = np.concatenate([time, self._nodes.end[node]])
        where = np.concatenate([domain, memory])
        is_report = np.arange(when.size) >= time.size
        order = np.lexsort((is_report, when, where))
        total = np.cumsum(np.concatenate([change, np.zeros(node.size, np.int64)])[order])
        # The sum goes on from one memory to the next: take off what it was where each begins.
        first = np.flatnonzero(np.diff(where[order], prepend=-1))
        length = np.diff(np.append(first, order.size))
        live = np.empty(order.size, np.int64)
        live[order] = total - np.repeat(np.where(first > 0, total[first - 1], 0), length)
        rest = in_use - live[time.size :]

        # Of each run and memory in the order of ends: how much is left of it at most.
        rank, ends = self._run_rank[self._nodes.run[node]], self._nodes.end[node]
        order = np.lexsort((ends, rank, memory))
        is_first = np.ones(order.size, np.bool_)
        is_first[1:] = (np.diff(rank[order]) != 0) | (np.diff(memory[order]) != 0)
        starts = np.flatnonzero(is_first)
        left = np.empty(order.size, np.int64)
        for begin, end in pairwise([*starts.tolist(), order.size]):
            left[begin:end] = _levels(np.maximum(rest[order[begin:end]], 0))
        lost = np.where(is_first, 0, -np.diff(left, prepend=0))
        stays = np.append(starts[1:], order.size) - 1
        size = np.concatenate([lost, left[stays]])
        # When is not recorded: the least is in use where it was right after the last report of it.
        freed = np.concatenate([np.roll(ends[order], 1), np.full(stays.size, _LATER)])
        sample = order[np.concatenate([np.arange(order.size), stays])]
        some = size > 0
        sample, size, freed = sample[some], size[some], freed[some]
        in_order = np.lexsort((memory[sample], rank[sample]))
        sample, size, freed = sample[in_order], size[in_order], freed[in_order]
        return _Bases(node[sample], memory[sample], self._nodes.run[node[sample]], size, freed)

    def _numbers(self, tensor: Int64Array, begins: BoolArray) -> Int64Array:
        """An allocation id per row that ``begins`` a buffer (or frees one that nothing began):
        the allocator's own if no other buffer has it, else one below 0.
        """
        tensors = self._tensors
        known = np.flatnonzero(begins & (tensor >= 0))
        known = known[_taken(tensors.number, tensor[known]) > 0]
        pair = same(_taken(tensors.domain, tensor[known]), _taken(tensors.number, tensor[known]))
        once = known[np.bincount(pair)[pair] == 1] if known.size else known
        numbers = np.zeros(tensor.size, np.int64)
        numbers[once] = tensors.number[tensor[once]]
        given = begins & (numbers == 0)
        numbers[given] = -1 - np.arange(given.sum())
        return numbers

    def _regions(self) -> Int32Array:
        """Per record an index of `_REGIONS`, -1 where nothing shows it."""
        records, nodes, temporary = self._records, self._nodes, self._parts.has_temporary()
        end = records.time[records.partner]
        brief = (records.partner >= 0) & (end <= nodes.end[records.node])
        region = np.where(temporary[records.node] | brief, _TEMP, -1).astype(np.int32)
        shown = self._owners.tensor >= 0
        region[shown] = _OUT
        node, number = self._parts.persistent()
        rows = np.flatnonzero(shown)
        tensor = self._owners.tensor[rows]
        pair = same(
            np.concatenate([nodes.run[node], nodes.run[records.node[rows]]]),
            np.concatenate([number, _taken(self._tensors.number, tensor)]),
        )
        region[rows[np.isin(pair[node.size :], pair[: node.size])]] = _PERSIST
        return region


def _levels(rest: Int64Array) -> Int64Array:
    """What is left of what was there before, of what no buffer explains at the ends of executions.

    Others run meanwhile, so a report can be of more than is left. It has become less only where no
    `_STEADY` reports in a row reach again what every report before had.
    """
    falls: Int64Array = np.zeros(0, np.int64)
    if rest.size > _STEADY:
        steady = np.lib.stride_tricks.sliding_window_view(rest, _STEADY).min(axis=1)
        later = np.maximum.accumulate(steady[::-1])[::-1]
        before = np.minimum.accumulate(rest)[: later.size - 1]
        falls = np.flatnonzero(later[1:] < before) + 1
    result = np.empty_like(rest)
    for begin, end in pairwise([0, *falls.tolist(), rest.size]):
        result[begin:end] = rest[begin:end].min()
    return np.minimum.accumulate(result)


def _taken(column: AnyArray, rows: Int64Array) -> AnyArray:
    """``column[rows]``, anything for row -1."""
    return np.append(column, column.dtype.type(0))[rows]
