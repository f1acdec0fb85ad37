"""`decode`: a whole buffer into exactly sized, narrow columns, on the cores there are.

`stream`: the same piece by piece, never holding more than a few pieces.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from peakline.arrays import AnyArray
from peakline.deadline import checked
from peakline.kernels import layout as L
from peakline.wire.assemble import assemble
from peakline.wire.column_types import DType, fits
from peakline.wire.pieces import PIECE_BYTES, Walk, Walked, threads
from peakline.wire.plan import Plan
from peakline.wire.tables import Buffer, Damage, Decoded, Spans, WireTable
from peakline.wire.walker import EVERYWHERE, I64, Skeleton, as_damage


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
    walk = Walk(buf, plan, spans, piece_bytes)
    skeleton = walk.skeleton
    for one in walk.pieces():
        rows = np.where(walk.is_atom, one.rows, skeleton.state.rows)
        tables = assemble(plan, [skeleton.store, one.store], rows, one.dtypes, whole=False)
        yield Part(tables, one.damage, min(one.piece.stop[1], buf.size))
    rows = np.where(walk.is_atom, 0, skeleton.state.rows)
    tables = assemble(plan, [skeleton.store, walk.nothing()], rows, plan.types.piece, whole=False)
    yield Part(tables, as_damage(skeleton.damage), int(buf.size))


Job = TypeVar("Job")
Result = TypeVar("Result")

_MARGIN, _MOST_GROWTH = 1.2, 8
"""How much more room is made than the rows so far let expect, and how many times the rows so far at
most. What stays untouched takes none.
"""

_FREE_ROWS, _LEAST_BYTES = 1 << 20, 4
"""A message takes two bytes when nothing is in it, and some ten as columns: beyond so many of one
kind they must take so many bytes on average. No profiler writes messages like that.
"""


def as_buffer(data: bytes | bytearray | memoryview | Any) -> Buffer:
    """Any bytes-like object (a memory map too) as a read-only array, without copying."""
    array = np.frombuffer(data, np.uint8) if len(data) else np.zeros(0, np.uint8)
    array.flags.writeable = False
    return array


def decode(buf: Buffer, plan: Plan, spans: Spans | None = None) -> Decoded:
    """Decode the whole buffer (or each of ``spans``) into narrow columns.

    They have the narrowest type that holds what occurs (int32 for int64 columns whose values fit,
    uint32 likewise). Uses every core. Ends at the deadline, as `check_deadline`. What comes after
    a million messages with next to nothing in them is not read, and is damage.
    """
    walk = Walk(buf, plan, spans, PIECE_BYTES)
    atoms = _Growing(plan, walk)
    damage = Damage()
    for one in walk.pieces():
        atoms.add(one)
        damage = damage + one.damage
        at = one.piece.stop[1]
        if at < walk.end and _is_crowd(plan, np.maximum(atoms.rows, walk.skeleton.state.rows), at):
            damage = damage + Damage(1, walk.end - at, at)
            break
    skeleton = walk.skeleton
    rows = np.where(walk.is_atom, atoms.rows, skeleton.state.rows)
    dtypes = _container_types(plan, skeleton)
    tables = assemble(plan, [skeleton.store, atoms], rows, dtypes)
    return Decoded(buf, tables, as_damage(skeleton.damage) + damage)


def _is_crowd(plan: Plan, rows: I64, read: int) -> bool:
    """Whether the messages of one kind are too many for the bytes that have been ``read``."""
    messages = (
        count
        for table, count in zip(plan.tables, rows.tolist(), strict=True)
        if table.message is not None
    )
    most = max(messages, default=0)
    return most > _FREE_ROWS and most * _LEAST_BYTES > read


class _Growing:
    """The columns of atoms, piece after piece, each in the narrowest type that holds its values."""

    def __init__(self, plan: Plan, walk: Walk) -> None:
        self._plan, self._size = plan, walk.size
        self.rows = np.zeros(len(plan.tables), np.int64)
        self._bytes = 0
        self._is_small = walk.end <= np.iinfo(np.int32).max
        self._arrays: list[AnyArray] = [np.zeros(0, dtype) for dtype in plan.types.narrow]

    def column(self, column: int, rows: slice, dtype: object = None) -> AnyArray:  # noqa: ARG002
        """Rows of one column, in its own type; as `Store.column`."""
        return self._arrays[column][rows]

    def add(self, one: Walked) -> None:
        """The rows of one more piece."""
        self._bytes += one.piece.atom_bytes
        is_last = one.piece.stop[0] == EVERYWHERE
        bases = self.rows
        self.rows = bases + one.rows
        for index in one.rows.nonzero()[0].tolist():
            at, count = int(bases[index]), int(one.rows[index])
            room = at + count
            if not is_last:
                more = max(self._size / max(self._bytes, 1), 1)
                room = int(room * min(more * _MARGIN, _MOST_GROWTH))
            first = self._plan.arrays.column_of[index]
            for column in range(first, first + len(self._plan.tables[index].columns)):
                values = one.store.column(column, slice(0, count), one.dtypes[column])
                if column == first:
                    values = self._parents(index, values, one, bases)
                self._put(column, at, room, values)

    def _parents(self, index: int, local: AnyArray, one: Walked, bases: I64) -> AnyArray:
        """The rows of parents in the whole: those of atoms are numbered within the piece."""
        table = self._plan.tables[index]
        recursion = table.find("@parent_table")
        if recursion >= 0:
            column = self._plan.arrays.column_of[index] + recursion
            above = one.store.column(column, slice(0, local.size), one.dtypes[column])
            base = bases[above]
        elif table.parent < 0 or not bases[table.parent]:
            return local
        else:
            base = bases[table.parent]
        result: AnyArray = local.astype(np.int64) + base
        if local.min() < 0:
            result[local < 0] = -1
        return result

    def _put(self, column: int, at: int, room: int, values: AnyArray) -> None:
        array = self._arrays[column]
        dtype, types = array.dtype, self._plan.types
        if dtype not in (values.dtype, types.exact[column]):
            is_offset = self._is_small and types.is_start[column]
            if not (is_offset or fits(values, dtype)):
                dtype = types.exact[column]
        end = at + values.size
        if end > array.size or dtype != array.dtype:
            grown = np.empty(max(end, room if end > array.size else array.size), dtype)
            grown[:at] = array[:at]
            self._arrays[column] = array = grown
        array[at:end] = values


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


def _container_types(plan: Plan, skeleton: Skeleton) -> list[DType]:
    """The narrowest types that hold what is in the containers."""
    dtypes = list(plan.types.narrow)
    for index, table in enumerate(plan.tables):
        count = int(skeleton.state.rows[index])
        if plan.arrays.nodes[index, L.N_PHASE] == 0 and count:
            first = plan.arrays.column_of[index]
            for column in range(first, first + len(table.columns)):
                exact = plan.types.exact[column]
                if dtypes[column] != exact:
                    values = skeleton.store.column(column, slice(0, count), exact)
                    if not fits(values, dtypes[column]):
                        dtypes[column] = exact
    return dtypes
