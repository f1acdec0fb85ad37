"""Running the kernel: the state of a walk, where its rows go, and cutting a buffer into pieces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from peakline.arrays import AnyArray, Int8Array, Int64Array
from peakline.kernels import layout as L
from peakline.kernels.wire_walk import walk
from peakline.wire.plan import Plan
from peakline.wire.tables import Buffer, Damage, Spans

I64 = Int64Array
EVERYWHERE = int(np.iinfo(np.int64).max)


@dataclass
class State:
    """Where a walk stands; copied at every pause so that another walk can start there."""

    where: I64
    stack: I64
    cells: I64
    rows: I64

    @classmethod
    def initial(cls, plan: Plan, start: int) -> State:
        """Before the first root, which begins at ``start``."""
        frame_cells = max(1, int(plan.arrays.nodes[:, L.N_CELLS].max()))
        return cls(
            np.array([0, start, -1, 0], np.int64),
            np.zeros((L.MAX_DEPTH, L.K_WIDTH), np.int64),
            np.zeros((L.MAX_DEPTH + 1) * frame_cells + 3, np.int64),
            np.zeros(len(plan.tables), np.int64),
        )

    def copy(self) -> State:
        """A state that can be walked on from without changing this one."""
        return State(self.where.copy(), self.stack.copy(), self.cells.copy(), self.rows.copy())


class Store:
    """Columns of one walk in a single allocation: widths, bases and the three views of it."""

    def __init__(self, plan: Plan, capacity: I64, widths: Int8Array) -> None:
        self.capacity, self.widths = capacity, widths
        self.base = np.zeros(plan.arrays.columns, np.int64)
        at = 0
        for index, table in enumerate(plan.tables):
            for c in range(len(table.columns)):
                column = plan.arrays.column_of[index] + c
                width = int(widths[column])
                self.base[column] = at // width
                at += -(-int(capacity[index]) * width // 8) * 8
        # Untouched until written, and zero where a walk leaves a row unfilled.
        self.arena = np.zeros(at, np.uint8)
        self.out32, self.out64 = self.arena.view(np.int32), self.arena.view(np.int64)

    def column(self, column: int, rows: slice, dtype: npt.DTypeLike) -> AnyArray:
        """Rows of one column as ``dtype`` (of the column's width, or narrower for wide stores)."""
        width = int(self.widths[column])
        view: AnyArray = self.arena
        if width != 1:
            view = self.out64 if width == 8 else self.out32
        first = int(self.base[column])
        values: AnyArray = view[first + rows.start : first + rows.stop]
        dtype = np.dtype(dtype)
        if dtype.itemsize == width:
            values = values.view(dtype)
        elif dtype == np.float32:
            values = values.astype(np.int32).view(np.float32)
        else:
            values = values.astype(dtype)
        return values


def run_walk(
    plan: Plan, buf: Buffer, spans: tuple[I64, I64], state: State, phase: int,
    stop: tuple[int, int], pause: int, store: Store, damage: I64,
) -> bool:  # fmt: skip
    """One call of the kernel."""
    saved = np.zeros((L.MAX_DEPTH, len(plan.tables)), np.int64)
    arrays = plan.arrays
    done = walk(
        buf, spans[0], spans[1],
        arrays.fields, arrays.spec.reshape(-1), arrays.nodes.reshape(-1),
        arrays.descendants, *arrays.filters,
        state.where, state.stack.reshape(-1), state.cells, state.rows, saved,
        phase, stop[0], stop[1], pause,
        store.arena, store.out32, store.out64, store.widths, store.base, store.capacity, damage,
    )  # fmt: skip
    return bool(done)


def new_damage() -> I64:
    """No damage, as the kernel counts it."""
    damage = np.zeros(L.D_WIDTH, np.int64)
    damage[L.D_FIRST] = damage[L.D_CUT] = -1
    return damage


def as_damage(damage: I64) -> Damage:
    """What the kernel counted."""
    return Damage(*(int(damage[k]) for k in (L.D_COUNT, L.D_BYTES, L.D_FIRST, L.D_MISSING,
                                             L.D_GROUPS)))  # fmt: skip


@dataclass
class Piece:
    """Bytes between two pauses of the skeleton walk."""

    state: State
    stop: tuple[int, int]
    atom_bytes: int
    """Bytes of atomic messages in it, which bound its rows."""


class Skeleton:
    """The serial walk: emits the containers and cuts the atoms into pieces."""

    def __init__(self, plan: Plan, buf: Buffer, spans: tuple[I64, I64], cut: int) -> None:
        self.plan, self.buf, self.spans, self.cut = plan, buf, spans, cut
        self.state = State.initial(plan, int(spans[0][0]) if spans[0].size else 0)
        self.done = spans[0].size == 0
        self.damage = new_damage()
        self._containers = plan.arrays.nodes[:, L.N_PHASE] == 0
        self.capacity = np.where(self._containers, 256, 0).astype(np.int64)
        self.store = self._new_store()

    def _new_store(self) -> Store:
        return Store(self.plan, self.capacity, np.full(self.plan.arrays.columns, 8, np.int8))

    def next_piece(self) -> Piece:
        """Walk on until the next pause."""
        before = self.state.copy()
        damage = self.damage.copy()
        while True:
            self.done = run_walk(
                self.plan, self.buf, self.spans, self.state, 0, (EVERYWHERE, EVERYWHERE),
                self.cut, self.store, self.damage,
            )  # fmt: skip
            if not (self.state.rows[self._containers] > self.capacity[self._containers]).any():
                break
            self._grow()
            self.state, self.damage = before.copy(), damage.copy()
        stop = (int(self.state.where[L.S_ROOT]), int(self.state.where[L.S_POSITION]))
        if self.done:
            stop = (EVERYWHERE, EVERYWHERE)
        read = self.state.where[L.S_ATOM_BYTES] - before.where[L.S_ATOM_BYTES]
        return Piece(before, stop, int(read))

    def _grow(self) -> None:
        old, old_capacity = self.store, self.capacity
        grown = np.maximum(self.state.rows * 2, old_capacity)
        self.capacity = np.where(self._containers, grown, 0)
        self.store = self._new_store()
        for index, table in enumerate(self.plan.tables):
            for c in range(len(table.columns)):
                column = self.plan.arrays.column_of[index] + c
                rows = slice(0, int(old_capacity[index]))
                self.store.column(column, rows, np.int64)[:] = old.column(column, rows, np.int64)


def bounds_of(buf: Buffer, spans: Spans | None) -> tuple[I64, I64]:
    """Starts and ends of the roots; ValueError when one reaches outside the buffer."""
    if spans is None:
        return np.zeros(1, np.int64), np.array([buf.size], np.int64)
    starts = spans.start.astype(np.int64)
    ends = starts + spans.length.astype(np.int64)
    if starts.size and (starts.min() < 0 or ends.max() > buf.size or (ends < starts).any()):
        raise ValueError("a span reaches outside the buffer")
    return starts, ends
