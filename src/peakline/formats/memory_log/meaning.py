"""What the records of a memory log mean for the buffers: which begins one, ends one, shares one.

The rules are those of the emitters in TensorFlow (``tensor.cc``, ``op_kernel.cc``,
``executor.cc``, ``gpu_device.cc``); docs/memory-logs.md has them.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array, Int64Array, UInt8Array
from peakline.formats.memory_log.records import Records
from peakline.kernels import memory_log_layout as layout
from peakline.kernels.memory_log import move, pair, track
from peakline.kernels.memory_log_layout import STEP, TENSOR_DEALLOCATION
from peakline.tables.columns import Columns, Names
from peakline.tables.tables import empty_columns

UNKNOWN_STEP = -6

SPECIAL_STEPS = {
    -1: "constant folding",
    -2: "op kernel construction",
    -3: "external tensor allocation",
    -4: "network buffer",
    -5: "proto from GPU memory",
    UNKNOWN_STEP: "unknown",
}
"""Step ids that stand for work outside any step (log_memory.h). Every other id is a step's own."""

_FUNCTION_RUN = -(1 << 32)
"""Ids below are those of runs of functions: random 64-bit ones, negative since no session counts
so. A constant that later releases may add is not so far from 0."""


def steps_of(records: Records, time_ps: Int64Array) -> Columns:
    """One row per step, in the order in which they begin.

    A step lasts from the first to the last record that names it; a second MemoryLogStep with
    the same id begins another. Its name is the handle of its MemoryLogStep, else what the
    special id stands for, ``run 3`` for the third run of a function, else the id.
    """
    rows = np.flatnonzero(records.kind != TENSOR_DEALLOCATION)
    if not rows.size:
        return empty_columns("steps")
    ids, which = np.unique(records.step[rows], return_inverse=True)
    # By step, in file order within it.
    order = np.argsort(which, kind="stable")
    rows, which = rows[order], which[order]
    begins = np.ones(rows.size, np.bool_)
    begins[1:] = which[1:] != which[:-1]
    result = records.kind[rows] == STEP
    count = np.cumsum(result)
    own = count - (count - result)[np.flatnonzero(begins)][np.cumsum(begins) - 1]
    begins |= result & (own > 1)

    first = np.flatnonzero(begins)
    last = np.append(first[1:], rows.size) - 1
    number = ids[which[first]]
    handle = np.full(first.size, -1, np.int64)
    told_rows = np.flatnonzero(result)
    handle[np.searchsorted(first, told_rows, side="right") - 1] = records.op[rows[told_rows]]
    by_start = np.argsort(rows[first], kind="stable")
    number, handle = number[by_start], handle[by_start]
    run = np.cumsum(number < _FUNCTION_RUN).tolist()
    names = [
        (records.texts[text] if text >= 0 else "")
        or (f"run {order}" if step < _FUNCTION_RUN else SPECIAL_STEPS.get(step, str(step)))
        for step, text, order in zip(number.tolist(), handle.tolist(), run, strict=True)
    ]
    return Columns(
        {
            "step_id": number.astype(np.int64),
            "name": Names.encode(names),
            "start_ps": time_ps[rows[first]][by_start],
            "end_ps": time_ps[rows[last]][by_start],
        }
    )


@dataclass(frozen=True, eq=False)
class Meaning:
    """``rows``: the records that begin or end a buffer. The other columns are per record.

    ``shared``: a tensor output whose buffer was there already. ``life``: how often the ids of
    its allocator had begun anew; ``lives`` how many lives each allocator had and ``crowded``
    how many of its allocations could not be kept apart. ``completes``: for the second record of
    a deferred deallocation the row of the first, else -1; None when nothing was deferred.
    """

    rows: Int64Array
    shared: BoolArray
    life: UInt8Array
    lives: list[int]
    crowded: list[int]
    completes: Int32Array | None

    @property
    def returned(self) -> Int32Array | None:
        """The inverse of ``completes``: where a deferred deallocation took effect, else -1."""
        if self.completes is None:
            return None
        result = np.full_like(self.completes, -1)
        second = np.flatnonzero(self.completes >= 0)
        result[self.completes[second]] = second
        return result


def read_meaning(records: Records) -> Meaning:
    """Follow all records once, in file order."""
    completes = _completions(records)
    # A tensor without a buffer (TensorFlow 1.0 logged those) means nothing for memory.
    skipped = ~records.has(layout.HAS_BUFFER)
    if completes is not None:
        skipped |= completes >= 0
    role, life = np.zeros((2, len(records)), np.uint8)
    newest, crowded = np.zeros((2, max(1, len(records.allocators))), np.int64)
    known, at, seed = _no_keys(1024), np.zeros(2, np.int64), secrets.randbits(64)
    columns = (
        records.kind.astype(np.uint8),
        skipped,
        # No name is a name as well.
        np.maximum(records.allocator, 0).astype(np.int32),
        records.number.astype(np.int64),
        records.op.astype(np.int32),
        records.step == UNKNOWN_STEP,
    )
    while not track(*columns, seed, role, life, newest, crowded, *(*known, at)):
        known = _more_keys(known, seed)
    return Meaning(
        np.flatnonzero(role == layout.BEGINS_OR_ENDS),
        role == layout.SHARED,
        life,
        (newest + 1).tolist(),
        crowded.tolist(),
        completes,
    )


def _no_keys(slots: int) -> list[AnyArray]:
    """An empty hash table: number and allocator of each key, and what `track` knows of it."""
    keys: list[AnyArray] = [np.zeros(slots, np.int64), np.full(slots, -1, np.int32)]
    keys += [np.zeros(slots, kind) for kind in (np.uint16, np.uint16, np.int32, np.uint8)]
    return keys


def _more_keys(known: list[AnyArray], seed: int) -> list[AnyArray]:
    """A hash table of the same keys with more room."""
    more = _no_keys(4 * known[0].size)
    place = np.full(known[0].size, -1, np.int64)
    move(known[0], known[1], more[0], more[1], seed, place)
    held = np.flatnonzero(place >= 0)
    for old, new in zip(known[2:], more[2:], strict=True):
        new[place[held]] = old[held]
    return more


def _completions(records: Records) -> AnyArray | None:
    """Per record the deferred deallocation that it completes, or None when there is none.

    A deferred deallocation is followed by one that is not. They share an id where the runtime
    frees late; where it frees at once (``gpu_device.cc`` today) the second record names whatever
    lies at the address by then, so only allocator, operation and step show it.
    """
    deferred = records.has(layout.DEFERRED)
    if not deferred.any():
        return None
    rows = np.flatnonzero(records.kind == layout.RAW_DEALLOCATION)
    late = deferred[rows]
    allocator, number = records.allocator[rows], records.number[rows]
    partner = _partners(_groups((allocator, number), number > 0), late)
    open_rows = partner < 0
    open_rows[partner[partner >= 0]] = False
    keys = (allocator, records.op[rows], records.step[rows])
    second = _partners(_groups(keys, open_rows), late)
    partner = np.where(partner < 0, second, partner)
    completes = np.full(len(records), -1, np.int32 if len(records) < 2**31 else np.int64)
    result = partner >= 0
    completes[rows[result]] = rows[partner[result]]
    return completes


def _partners(group: Int64Array, deferred: BoolArray) -> Int64Array:
    """Per record that is not deferred the deferred one that it completes, -1 for none."""
    head, tail = np.full((2, int(group.max(initial=-1)) + 1), -1, np.int64)
    behind, partner = np.full((2, group.size), -1, np.int64)
    pair(group, deferred, head, tail, behind, partner)
    return partner


def _groups(keys: tuple[AnyArray, ...], taking_part: BoolArray) -> Int64Array:
    """A number per distinct combination of ``keys``, -1 for those that take no part."""
    combined = np.zeros(taking_part.size, np.int64)
    for key in keys:
        values, codes = np.unique(key, return_inverse=True)
        _, combined = np.unique(combined * values.size + codes, return_inverse=True)
    return np.where(taking_part, combined, -1)
