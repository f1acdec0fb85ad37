"""`Walk`: the pieces of a buffer one after the other, each walked by one of all cores."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from peakline.deadline import check_deadline
from peakline.kernels import layout as L
from peakline.progress import current_progress, stage
from peakline.wire.column_types import DType
from peakline.wire.plan import Plan
from peakline.wire.tables import Buffer, Damage, Spans
from peakline.wire.walker import (
    I64,
    Piece,
    Skeleton,
    Store,
    as_damage,
    bounds_of,
    new_damage,
    run_walk,
)

_Result = TypeVar("_Result")

PIECE_BYTES = 2 << 20
"""How much of a container one thread decodes at a time: small enough to stay in its cache."""
_FEW_ROWS = 1 << 12
_BYTES_PER_ROW = 128
"""What room is made for at first in a piece of more than `_FEW_ROWS` bytes. A row can be one byte:
a piece that has more rows is walked again, with room for them, which later ones have at once.
"""
_MOST_BYTES = np.iinfo(np.int32).max
"""What lengths and rows within a piece of the usual types can count."""


def threads() -> int:
    """The cores this process may use."""
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1)


@dataclass(frozen=True, eq=False)
class Walked:
    """The atoms of a piece: ``rows`` per table, 0 for containers, and their columns of ``dtypes``
    in ``store``, valid until the next piece is taken.
    """

    piece: Piece
    rows: I64
    damage: Damage
    store: Store
    dtypes: list[DType]


class Walk:
    """The walk over a buffer, or over each of ``spans`` of it; no more than a few pieces are held.

    Rows of atomic messages are numbered within their piece, those of containers in the whole.
    """

    def __init__(self, buf: Buffer, plan: Plan, spans: Spans | None, piece_bytes: int) -> None:
        self._buf, self._plan, self._piece_bytes = buf, plan, piece_bytes
        self._bounds = bounds_of(buf, spans)
        self.skeleton = Skeleton(plan, buf, self._bounds, piece_bytes)
        self.is_atom = plan.arrays.nodes[:, L.N_PHASE] == 1
        self._spare: list[Store] = []
        self._room = np.zeros(len(plan.tables), np.int64)
        """What pieces so far had, and some more."""

    @property
    def size(self) -> int:
        """How many bytes there are to walk over."""
        return int((self._bounds[1] - self._bounds[0]).sum())

    @property
    def end(self) -> int:
        """Where the last byte is."""
        return int(self._bounds[1].max(initial=0))

    def pieces(self) -> Iterator[Walked]:
        """The pieces in order. Ends at the deadline, as `check_deadline`."""
        skeleton, workers = self.skeleton, threads()
        waiting: deque[Future[Walked]] = deque()
        pool = ThreadPoolExecutor(workers)
        progress, done = current_progress(), int(self._bounds[0].min(initial=0))
        ended = ExitStack()
        try:
            ended.enter_context(stage("", self.size))
            while waiting or not skeleton.done:
                check_deadline()
                while not skeleton.done and len(waiting) <= workers:
                    waiting.append(self._begin(pool, is_alone=not waiting))
                walked = waiting.popleft().result()
                if progress is not None:
                    progress.advance(max(0, int(walked.piece.stop[1]) - done))
                    done = int(walked.piece.stop[1])
                yield walked
                store = walked.store
                if (
                    store.capacity.max(initial=0) <= 2 * self._piece_bytes
                    and store.widths is self._plan.types.piece_widths
                ):
                    self._spare.append(store)
        finally:
            # Who wants no more pieces does not wait for those that nobody has begun.
            pool.shutdown(cancel_futures=True)
            ended.close()

    def nothing(self) -> Store:
        """A store of no atoms."""
        return Store(
            self._plan, np.zeros(len(self._plan.tables), np.int64), self._plan.types.piece_widths
        )

    def _begin(self, pool: ThreadPoolExecutor, *, is_alone: bool) -> Future[Walked]:
        piece = self.skeleton.next_piece()
        # The last one, when nothing is left to do meanwhile, needs no thread.
        begin = _at_once if is_alone and self.skeleton.done else pool.submit
        return begin(self._run, piece, self._room_for(piece))

    def _run(self, piece: Piece, store: Store) -> Walked:
        plan = self._plan
        while True:
            state, damage = piece.state.copy(), new_damage()
            state.rows = np.where(self.is_atom, 0, state.rows)
            run_walk(plan, self._buf, self._bounds, state, 1, piece.stop, 0, store, damage)
            rows = np.where(self.is_atom, state.rows, 0)
            if (rows <= store.capacity).all():
                break
            room = rows + (rows >> 2)
            store = Store(plan, room, store.widths)
            self._room = np.maximum(self._room, room)
        is_usual = store.widths is plan.types.piece_widths
        dtypes = plan.types.piece if is_usual else plan.types.exact
        return Walked(piece, rows, as_damage(damage), store, dtypes)

    def _room_for(self, piece: Piece) -> Store:
        if piece.atom_bytes > _MOST_BYTES:
            widths = np.full(self._plan.arrays.columns, 8, np.int8)
        elif self._spare:
            return self._spare.pop()
        else:
            widths = self._plan.types.piece_widths
        most = min(piece.atom_bytes, self._piece_bytes)
        room = min(piece.atom_bytes, max(most // _BYTES_PER_ROW, _FEW_ROWS))
        rooms = np.where(self.is_atom, np.maximum(self._room, room), 0)
        return Store(self._plan, rooms, widths)


def _at_once(work: Callable[..., _Result], *arguments: object) -> Future[_Result]:
    """As `ThreadPoolExecutor.submit`, done by this thread."""
    future: Future[_Result] = Future()
    future.set_result(work(*arguments))
    return future
