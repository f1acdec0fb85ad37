"""`stream`: a buffer piece by piece, never holding more than a few pieces."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from peakline.deadline import check_deadline
from peakline.kernels import layout as L
from peakline.wire.assemble import assemble, stream_dtypes
from peakline.wire.decode import PIECE_BYTES, threads
from peakline.wire.plan import Plan
from peakline.wire.tables import Buffer, Damage, Spans, WireTable
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

_Result = TypeVar("_Result")

_MOST_ROWS = 32 << 20
"""A piece that might hold more rows than this is counted before room is made for it."""


@dataclass(frozen=True, eq=False)
class Part:
    """One piece of a stream: its atomic tables (rows numbered from 0 within the piece).

    The columns are valid until the next piece is read. ``position`` is the offset up to
    which the buffer has been read.
    """

    tables: dict[str, WireTable]
    damage: Damage
    position: int


def stream(
    buf: Buffer, plan: Plan, spans: Spans | None = None, piece_bytes: int = PIECE_BYTES
) -> Iterator[Part]:
    """Decode piece by piece, in order, never holding more than a few pieces.

    Rows of atomic messages are numbered within their piece; ``parent`` of a row directly below a
    container is that container's row in the whole file. Containers' tables grow from part to
    part; the rows of those still open are not filled in yet, and a row of a oneof message that
    was replaced stays, with parent -1. The last part has no atoms. Ends at the deadline, as
    `check_deadline`.
    """
    bounds = bounds_of(buf, spans)
    skeleton = Skeleton(plan, buf, bounds, piece_bytes)
    atoms = plan.arrays.nodes[:, L.N_PHASE] == 1
    dtypes = stream_dtypes(plan)
    exact = [np.dtype(column.dtype) for table in plan.tables for column in table.columns]
    widths = np.array([dtype.itemsize for dtype in dtypes], np.int8)
    wide = np.full(plan.arrays.columns, 8, np.int8)
    workers = threads()
    spare: list[Store] = []

    def run(piece: Piece, store: Store | None) -> tuple[I64, Damage, Store]:
        if store is None:
            # Far more bytes than rows, most likely: count before making room.
            rows, _ = walk_atoms(piece, None)
            store = Store(plan, np.where(atoms, rows, 0), wide)
        return *walk_atoms(piece, store), store

    def walk_atoms(piece: Piece, store: Store | None) -> tuple[I64, Damage]:
        state, damage = piece.state.copy(), new_damage()
        state.rows = np.where(atoms, 0, state.rows)
        ranges = None if store is not None else new_ranges(plan)
        run_walk(plan, buf, bounds, state, 1, piece.stop, 0, store, ranges, damage)
        return state.rows, as_damage(damage)

    def room_for(piece: Piece) -> Store | None:
        # A row costs at least one byte of an atom.
        need = piece.atom_bytes + 1
        if need > _MOST_ROWS:
            return None
        for store in spare:
            if store.capacity.max(initial=0) >= need:
                spare.remove(store)
                return store
        room = max(need, piece_bytes + (piece_bytes >> 3))
        return Store(plan, np.where(atoms, room, 0), widths)

    def begun(piece: Piece) -> Future[tuple[I64, Damage, Store]]:
        # The last one, when nothing is left to do meanwhile, needs no thread.
        begin = _at_once if skeleton.done and not waiting else pool.submit
        return begin(run, piece, room_for(piece))

    waiting: deque[tuple[Piece, Future[tuple[I64, Damage, Store]]]] = deque()
    pool = ThreadPoolExecutor(workers)
    try:
        while waiting or not skeleton.done:
            check_deadline()
            while not skeleton.done and len(waiting) <= workers:
                piece = skeleton.next_piece()
                waiting.append((piece, begun(piece)))
            piece, future = waiting.popleft()
            rows, damage, store = future.result()
            rows = np.where(atoms, rows, skeleton.state.rows)
            fits = dtypes if store.widths is widths else exact
            tables = assemble(plan, [skeleton.store, store], rows, fits, whole=False)
            yield Part(tables, damage, min(piece.stop[1], buf.size))
            if store.capacity.max(initial=0) <= 2 * piece_bytes and store.widths is widths:
                spare.append(store)
    finally:
        # Who wants no more pieces does not wait for those that nobody has begun.
        pool.shutdown(cancel_futures=True)
    rows = np.where(atoms, 0, skeleton.state.rows)
    empty = Store(plan, np.zeros(len(plan.tables), np.int64), widths)
    tables = assemble(plan, [skeleton.store, empty], rows, dtypes, whole=False)
    yield Part(tables, as_damage(skeleton.damage), int(buf.size))


def _at_once(work: Callable[..., _Result], *arguments: object) -> Future[_Result]:
    """As `ThreadPoolExecutor.submit`, done by this thread."""
    future: Future[_Result] = Future()
    future.set_result(work(*arguments))
    return future
