"""The buffers at an allocator's peak, sorted out by who made them and when, and the peak that is
left where some of them are smaller, or not there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int32Array, Int64Array
from peakline.memory.marks import Marks
from peakline.memory.signatures import History
from peakline.shown import Brief
from peakline.tables.joins import summed


@dataclass(frozen=True, eq=False, repr=False)
class AtPeak(Brief):
    """The buffers at the peak: rows of their allocations, sorted out by signature. ``bytes`` were
    allocated for them, ``requested`` of these were requested.

    ``starts`` are the first records of the steps, ascending (empty without steps), ``step`` and
    ``own_step`` the numbers of the buffers' steps and of the peak's; ``has_finding`` marks those
    whose signature has a finding of growth.
    """

    allocator: int
    row: int
    peak: int
    starts: Int64Array
    rows: Int64Array
    bytes: Int64Array
    requested: Int64Array
    codes: Int32Array
    age: Int64Array
    left: Int64Array
    step: Int64Array
    is_freed: BoolArray
    has_finding: BoolArray
    own_step: int
    has_ends: bool

    def by_code(self, chosen: BoolArray | slice = slice(None)) -> tuple[Int32Array, Int64Array]:
        """The signatures of the ``chosen`` buffers, ascending, and their bytes."""
        codes, place = np.unique(self.codes[chosen], return_inverse=True)
        return codes, summed(place, self.bytes[chosen], codes.size)


def buffers_at_peak(
    history: History,
    allocator: int,
    marks: Marks | None,
    counted: BoolArray,
    growing: BoolArray | None = None,
) -> AtPeak | None:
    """The buffers at the largest memory in use after a ``counted`` record; None without any.

    ``growing`` marks the signatures that have a finding of growth.
    """
    lifetimes = history.lifetimes
    own_rows = history.rows_of(allocator)
    mine = counted[own_rows]
    if not mine.any():
        return None
    ordinal = int(np.where(mine, history.used[own_rows], -1).argmax())
    row = int(own_rows[ordinal])
    moments = np.full(len(lifetimes.allocators), -1, np.int64)
    moments[allocator] = row
    rows = lifetimes.live_after(moments)
    ends = lifetimes.end[rows].astype(np.int64)
    is_freed = ends >= 0
    ends = np.where(is_freed, ends, history.rows)
    starts = np.zeros(0, np.int64) if marks is None else np.append(marks.start, marks.rows)

    codes = history.signatures.codes[rows]

    def step_of(at: Int64Array) -> Int64Array:
        return np.searchsorted(starts, at, "right") - 1

    # Ages are in the allocator's own records: others' are no measure of its time.
    return AtPeak(
        allocator=allocator,
        row=row,
        peak=int(history.used[row]),
        starts=starts,
        rows=rows,
        bytes=history.allocated[rows],
        requested=history.requested[rows],
        codes=codes,
        age=ordinal - np.searchsorted(own_rows, rows),
        left=np.searchsorted(own_rows, ends) - ordinal,
        step=step_of(rows),
        is_freed=is_freed,
        has_finding=np.zeros(rows.size, np.bool_) if growing is None else growing[codes],
        own_step=int(step_of(np.array([row]))[0]),
        has_ends=bool((lifetimes.begin[own_rows] >= 0).any()),
    )


def peak_without(history: History, allocator: int, rows: Int64Array, goes: Int64Array) -> int:
    """The largest memory in use if ``goes`` bytes of the buffers that ``rows`` allocated were
    not there.
    """
    change = np.zeros(history.rows + 1, np.int64)
    np.add.at(change, rows, goes)
    ends = history.lifetimes.end[rows].astype(np.int64)
    np.add.at(change, np.where(ends < 0, history.rows, ends), -goes)
    own = history.rows_of(allocator)
    left = history.used[own] - np.cumsum(change)[own]
    counted: BoolArray = history.measured[own]
    return int(left[counted].max(initial=0))


def peak_without_signatures(history: History, allocator: int, rows: Int64Array) -> int:
    """The largest memory in use if none of the buffers of these allocations, nor others of their
    signatures, were there.
    """
    codes = history.signatures.codes
    own = history.rows_of(allocator)
    every = own[np.isin(codes[own], codes[rows][codes[rows] >= 0]) & (history.allocated[own] > 0)]
    return peak_without(history, allocator, every, history.allocated[every])
