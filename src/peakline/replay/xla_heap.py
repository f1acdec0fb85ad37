"""Where XLA puts the temporaries of a program: best fit of values whose lifetimes are known.

Before a program runs, XLA simulates a heap: values of a program in their order, some of which share
memory. It places them twice, the largest first and the longest-lived first, each in the smallest
gap that fits at all the times at which it lives, and takes the smaller heap
(``GlobalDecreasingSizeBestFitHeap`` in ``xla/service/heap_simulator/heap_simulator.cc``,
``AssignBuffersWithSequentialOrdering`` in ``xla/service/buffer_assignment.cc``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.deadline import check_deadline
from peakline.kernels.best_fit import place
from peakline.kernels.heap_layout import FREE, PENDING
from peakline.kernels.heap_trace import replay

MOST_BYTES = 2**61
"""More than any heap: sizes that add up to more are made smaller."""
LARGEST_FIRST, LONGEST_FIRST = "spatial", "temporal"
"""The orders in which pieces are placed, in XLA's words."""
MOST_WORK = 4_000_000_000
"""Comparisons of lifetimes after which a packing is given up: a quarter of a minute."""
_AT_ONCE = 1024
"""So many pieces are placed between two looks at the deadline."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """Pieces of memory, each used by one value or by several that share it.

    Piece ``p`` has ``size[p]`` bytes and lives in the spans ``first[p]`` to ``first[p + 1]``, from
    ``begin`` to ``end`` (both inclusive, not negative), which are in order and apart from each
    other. ``number`` decides between equal pieces, ``length`` is how long the value lived that has
    the piece first.
    """

    number: Int64Array
    size: Int64Array
    length: Int64Array
    first: Int64Array
    begin: Int64Array
    end: Int64Array

    def __len__(self) -> int:
        return int(self.size.size)

    @classmethod
    def of_spans(
        cls,
        number: Int64Array,
        size: Int64Array,
        length: Int64Array,
        piece: AnyArray,
        begin: AnyArray,
        end: AnyArray,
    ) -> Pieces:
        """Pieces from any spans, each of ``piece``: those that touch or overlap become one."""
        by = np.lexsort((begin, piece))
        piece, begin, end = piece[by], begin[by], end[by]
        # Pieces apart from each other on one axis, so that one running maximum serves them all.
        step = int(end.max(initial=0)) + 3
        latest = np.maximum.accumulate(end + piece * step)
        is_new = np.ones(piece.size, np.bool_)
        is_new[1:] = (begin + piece * step)[1:] > latest[:-1] + 1
        starts = np.flatnonzero(is_new)
        last = np.append(starts[1:], piece.size)[: starts.size] - 1
        of = piece[starts]
        return cls(
            number,
            np.clip(size, 0, MOST_BYTES // max(size.size, 1)),
            length,
            np.searchsorted(of, np.arange(size.size + 1)).astype(np.int64),
            np.ascontiguousarray(begin[starts], np.int64),
            np.ascontiguousarray(latest[last] - of * step, np.int64),
        )

    def live_peak(self) -> int:
        """The most bytes that live at one time: no packing needs less."""
        piece = np.repeat(np.arange(len(self)), np.diff(self.first))
        times = np.concatenate([self.begin, self.end + 1])
        change = np.concatenate([self.size[piece], -self.size[piece]])
        # What ends makes room before anything begins.
        by = np.lexsort((change, times))
        return int(np.cumsum(change[by]).max(initial=0))


@dataclass(frozen=True, eq=False)
class HeapTrace:
    """The values of a heap's events: of each its ``piece``, -1 where it takes no memory.

    ``begin`` and ``end`` are the times of the value itself, which count the events of values that
    take memory. ``time`` is, per event, how many of them came before it.
    """

    pieces: Pieces
    piece: Int64Array
    begin: Int64Array
    end: Int64Array
    time: Int64Array


@dataclass(frozen=True, eq=False)
class Packed:
    """Where each piece lies: its ``offset`` in a heap of ``heap_bytes``, and which order of
    placing gave it.
    """

    offset: Int64Array
    heap_bytes: int
    order: str


def read_trace(
    kind: AnyArray, value: Int64Array, shared_with: Int64Array, size: Int64Array
) -> HeapTrace:
    """The pieces of a heap's events (``HeapSimulatorTrace`` in ``xla/service/hlo.proto``).

    ``value`` and ``shared_with`` are rows of ``size`` (bytes), -1 for none; ``kind`` is that of
    `peakline.kernels.heap_layout`. A piece is as large as the largest value that uses it, and has
    the row of the value that had it first as its number. A value that is never freed lives until
    the end; events that fit none before are passed over.
    """
    count = size.size
    size = np.clip(size, 0, MOST_BYTES // max(count, kind.size, 1))
    holder = np.arange(count)
    kinds = np.ascontiguousarray(kind, np.uint8)
    value, shared_with = np.ascontiguousarray(value), np.ascontiguousarray(shared_with)
    replay(kinds, value, shared_with, size, np.zeros(count, np.int64), holder,
           np.zeros(kind.size, np.int64))  # fmt: skip
    while (further := holder[holder]).tolist() != holder.tolist():
        holder = further
    most = np.zeros(count, np.int64)
    starts = np.flatnonzero((kinds != FREE) & (value >= 0))
    named = np.unique(value[starts])
    np.maximum.at(most, holder[named], size[named])
    most = most[holder]
    counts = (value >= 0) & (np.append(most, 0)[value] > 0)
    time: Int64Array = np.cumsum(counts) - counts
    last = int(counts.sum())
    begin, end = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    starts = starts[counts[starts]]
    # Of several events the first counts: assigned from the last on.
    begin[value[starts][::-1]] = time[starts][::-1]
    frees = np.flatnonzero((kinds == FREE) & counts)
    frees = frees[time[frees] > begin[value[frees]]]
    end[value[frees][::-1]] = time[frees][::-1]
    is_here = begin >= 0
    end[is_here & (end < 0)] = last
    end[~is_here] = -1
    rows = np.flatnonzero(is_here)
    number, of = np.unique(holder[rows], return_inverse=True)
    piece = np.full(count, -1, np.int64)
    piece[rows] = of
    pieces = Pieces.of_spans(
        number, most[number], end[number] - begin[number], of, begin[rows], end[rows]
    )
    return HeapTrace(pieces, piece, begin, end, time)


def pack(pieces: Pieces, alignment: int) -> Packed | None:
    """The smaller heap of both orders, the first where they are equal.

    Offsets are multiples of ``alignment``. None where it would take more than `MOST_WORK`, which
    only hundreds of thousands of pieces do that live at the same time. Raises as `check_deadline`.
    """
    result: Packed | None = None
    for name, order in (
        (LARGEST_FIRST, _largest_first(pieces)),
        (LONGEST_FIRST, _longest_first(pieces)),
    ):
        offset = _place(pieces, order, alignment)
        if offset is None:
            return None
        heap = int((offset + pieces.size).max(initial=0))
        if result is None or heap < result.heap_bytes:
            result = Packed(offset, heap, name)
    return result


def _largest_first(pieces: Pieces) -> Int64Array:
    return np.lexsort((pieces.number, -pieces.length, -pieces.size))


def _longest_first(pieces: Pieces) -> Int64Array:
    """By the time from the first begin to the last end, what lies between spans included."""
    is_empty = pieces.first[1:] == pieces.first[:-1]
    begin = np.append(pieces.begin, 0)[pieces.first[:-1]]
    end = pieces.end[pieces.first[1:] - 1] if pieces.end.size else begin
    length = np.where(is_empty, 0, end - begin)
    return np.lexsort((pieces.number, -pieces.size, -length))


def _place(pieces: Pieces, order: Int64Array, alignment: int) -> Int64Array | None:
    spans = pieces.begin.size
    leaves = 1 << max(spans - 1, 0).bit_length()
    by = np.argsort(pieces.begin, kind="stable")
    leaf = np.empty(spans, np.int64)
    leaf[by] = np.arange(spans)
    room = (
        leaf,
        pieces.begin[by],
        np.full(2 * leaves, -1, np.int64),
        np.zeros(spans, np.int64),
        np.zeros(spans, np.int64),
        np.zeros((4, max(spans, 1)), np.int64),
        np.zeros((4, PENDING), np.int64),
        np.zeros(spans // 8 + 64, np.int64),
        np.zeros(256, np.int64),
        np.zeros(5, np.int64),
        np.zeros(len(pieces), np.int64),
    )
    work = 0
    for done in range(0, order.size, _AT_ONCE):
        check_deadline()
        work += place(
            order[done : done + _AT_ONCE], pieces.first, pieces.begin, pieces.end, pieces.size,
            alignment, *room,
        )  # fmt: skip
        if work > MOST_WORK:
            return None
    return room[-1]


def are_shifted(offset: Int64Array, recorded: Int64Array, where: BoolArray) -> bool:
    """Whether the offsets are the recorded ones but for one constant, of those that are marked."""
    return np.unique((offset - recorded)[where]).size <= 1
