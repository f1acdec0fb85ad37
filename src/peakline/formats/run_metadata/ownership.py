"""Which output is the buffer of which allocation record, and which buffers have none.

Allocation records (step_stats.proto) carry no id, outputs carry the id of their buffer. A buffer
may be the output of many executions: the first one that shows it made it, if it has a record of
that size. Where an execution made several of one size, its outputs are those that live longest,
and ids rise with time. An allocator that does not track ids numbers them anew in every execution
(https://github.com/tensorflow/tensorflow, ``framework/tracking_allocator.cc``), so a buffer is
known by its id and its address together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from peakline.arrays import BoolArray, Int32Array, Int64Array, UInt64Array
from peakline.formats.run_metadata.keys import place_in_group, same
from peakline.kernels.allocation_records import first_in_first_out, fit_by_number, neighbours


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
        found = np.full(made.size, -1, np.int64)
        fit_by_number(
            mine[by_time], low[by_time], high[by_time], records.time[made][by_time],
            theirs[by_number], tensors.number[rows][by_number], tensors.time[rows][by_number],
            found,
        )  # fmt: skip
        got = found >= 0
        self._own(made[by_time][got], rows[by_number][found[got]])
