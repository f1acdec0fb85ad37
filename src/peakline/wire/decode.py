"""`decode`: a whole buffer into exactly sized, narrow columns, on the cores there are."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import Any, TypeVar

import numpy as np

from peakline.arrays import BoolArray
from peakline.deadline import check_deadline, checked
from peakline.kernels import layout as L
from peakline.wire.assemble import assemble, narrow_dtypes
from peakline.wire.plan import Plan
from peakline.wire.tables import Buffer, Damage, Decoded, Spans
from peakline.wire.walker import (
    I64,
    Piece,
    Skeleton,
    Store,
    as_damage,
    bounds_of,
    new_damage,
    new_ranges,
    run_walk,
)

Job = TypeVar("Job")
Result = TypeVar("Result")

PIECE_BYTES = 2 << 20
"""How much of a container one thread decodes at a time: small enough to stay in its cache."""


def threads() -> int:
    """The cores this process may use."""
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)


def as_buffer(data: bytes | bytearray | memoryview | Any) -> Buffer:
    """Any bytes-like object (a memory map too) as a read-only array, without copying."""
    array = np.frombuffer(data, np.uint8) if len(data) else np.zeros(0, np.uint8)
    array.flags.writeable = False
    return array


def decode(buf: Buffer, plan: Plan, spans: Spans | None = None) -> Decoded:
    """Decode the whole buffer (or each of ``spans``) into exactly sized, narrow columns.

    Counts first, so that memory is allocated once and in the narrowest type that holds what
    occurs (int32 for int64 columns whose values fit, uint32 likewise). Uses every core. Ends at
    the deadline, as `check_deadline`.
    """
    bounds = bounds_of(buf, spans)
    skeleton = Skeleton(plan, buf, bounds, PIECE_BYTES)
    pieces: list[Piece] = []
    while not skeleton.done:
        check_deadline()
        pieces.append(skeleton.next_piece())
    atoms = plan.arrays.nodes[:, L.N_PHASE] == 1
    rows = np.where(atoms, 0, skeleton.state.rows)
    low, high = new_ranges(plan)
    damage = Damage()
    counted = on_all_cores(lambda piece: _count(plan, buf, bounds, piece, atoms), pieces)
    bases = []
    for got, lo, hi, harm in counted:
        bases.append(rows.copy())
        rows = rows + np.where(atoms, got, 0)
        np.minimum(low, lo, out=low)
        np.maximum(high, hi, out=high)
        damage = damage + harm
    _container_ranges(plan, skeleton, low, high)
    dtypes = narrow_dtypes(plan, low, high)
    widths = np.array([d.itemsize for d in dtypes], np.int8)
    store = Store(plan, np.where(atoms, rows, 0), widths)

    def fill(job: tuple[Piece, I64, I64]) -> None:
        piece, base, got = job
        state = piece.state.copy()
        state.rows = np.where(atoms, base, state.rows)
        part = copy(store)
        part.capacity = np.where(atoms, base + got, 0)
        run_walk(plan, buf, bounds, state, 1, piece.stop, 0, part, None, new_damage())

    jobs = [(p, b, c[0]) for p, b, c in zip(pieces, bases, counted, strict=True)]
    on_all_cores(fill, jobs)
    tables = assemble(plan, [skeleton.store, store], rows, dtypes)
    return Decoded(buf, tables, as_damage(skeleton.damage) + damage)


def on_all_cores(work: Callable[[Job], Result], jobs: list[Job]) -> list[Result]:
    """``work`` for each of ``jobs``, in order; none is begun any more once the deadline is over."""
    if len(jobs) <= 1:
        return list(checked(map(work, jobs), 1))
    pool = ThreadPoolExecutor(threads())
    try:
        return list(checked(pool.map(work, jobs), 1))
    finally:
        pool.shutdown(cancel_futures=True)


def ahead(parts: Iterator[Result], depth: int) -> Iterator[Result]:
    """The same parts, as many as ``depth`` made by another thread before they are taken."""
    pool = ThreadPoolExecutor(1)
    try:
        waiting = deque(pool.submit(next, parts, None) for _ in range(depth))
        while (part := waiting.popleft().result()) is not None:
            waiting.append(pool.submit(next, parts, None))
            yield part
    finally:
        pool.shutdown(cancel_futures=True)


def _count(
    plan: Plan, buf: Buffer, bounds: tuple[I64, I64], piece: Piece, atoms: BoolArray
) -> tuple[I64, I64, I64, Damage]:
    state, damage, ranges = piece.state.copy(), new_damage(), new_ranges(plan)
    state.rows = np.where(atoms, 0, state.rows)
    run_walk(plan, buf, bounds, state, 1, piece.stop, 0, None, ranges, damage)
    return state.rows, *ranges, as_damage(damage)


def _container_ranges(plan: Plan, skeleton: Skeleton, low: I64, high: I64) -> None:
    for index, table in enumerate(plan.tables):
        if plan.arrays.nodes[index, L.N_PHASE] == 0 and skeleton.state.rows[index]:
            for c in range(len(table.columns)):
                column = plan.arrays.column_of[index] + c
                values = skeleton.store.column(
                    column, slice(0, int(skeleton.state.rows[index])), np.int64
                )
                low[column], high[column] = values.min(), values.max()
