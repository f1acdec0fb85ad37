"""Changes of a program's heap: values that are made again, halved, or moved into it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from peakline.arrays import Int64Array
from peakline.deadline import checked
from peakline.hlo.packing import PackedHeap
from peakline.hlo.uses import Uses
from peakline.replay.xla_heap import Pieces, pack
from peakline.text import whole_number

if TYPE_CHECKING:
    from peakline.hlo.memory import ProgramMemory

_OF_LIBRARIES = frozenset(("custom-call", "cholesky", "fft", "triangular-solve"))
_MOST_TOGETHER = 10_000
"""So many values at most are halved together."""


@dataclass(frozen=True, eq=False)
class Change:
    """The pieces of a heap after a change of ``kind``.

    ``held`` are the values that it is about: by their row in ``hlo_buffers`` the bytes that each
    holds now. ``wide`` is the type that a change of precision is about.
    """

    kind: str
    pieces: Pieces
    held: Mapping[int, int]
    wide: str = ""


class Groups:
    """Rows by their number."""

    def __init__(self, number: Int64Array) -> None:
        self._order = np.argsort(number, kind="stable")
        self._sorted = number[self._order]

    def of(self, number: int) -> list[int]:
        """The rows with a number, ascending."""
        begin, end = np.searchsorted(self._sorted, [number, number + 1])
        listed: list[int] = self._order[begin:end].tolist()
        return listed


class HeapChanges:
    """What can be changed in one heap of a program, at the moment when it holds most."""

    def __init__(self, heap: PackedHeap, memory: ProgramMemory, uses: Uses) -> None:
        self.heap, self._memory, self._uses = heap.heap, memory, uses
        self._trace, self._alignment = heap.trace, heap.alignment
        self.heap_bytes = 0 if heap.packed is None else heap.packed.heap_bytes
        self.pieces = heap.trace.pieces
        buffers = memory.buffers
        defined = np.append(
            np.where(buffers.is_valid("instruction_id"), buffers.array("instruction_id"), -1), -1
        )
        self._rows = heap.rows
        self._instruction: Int64Array = defined[heap.rows]
        self._whole = ~np.append(
            buffers.names("shape_index").per_row(bool, np.bool_), True
        )[heap.rows]  # fmt: skip
        self._shape = [
            None if row < 0 else buffers.names("shape")[row] for row in heap.rows.tolist()
        ]
        self._moments(heap)

    def _moments(self, heap: PackedHeap) -> None:
        """When places in the program's order come in the heap's time: by what is allocated then."""
        events = self.heap.events
        value = np.searchsorted(heap.values, events.array("buffer"))
        begins = events.names("kind").per_row(lambda text: text != "deallocation", np.bool_)
        made = self._instruction[value]
        begins &= (made >= 0) & (self._trace.piece[value] >= 0)
        at = np.flatnonzero(begins)
        # Values of a loop's state begin with the loop's body: never before what came earlier.
        self._place = np.maximum.accumulate(self._uses.order[made[at]])
        self._time = self._trace.time[at]
        self._last = int(self._trace.time[-1]) + 1 if self._trace.time.size else 0
        peak = self.heap.peak_event
        self.peak_time = int(self._trace.time[peak]) if self._trace.time.size else 0

    def _when(self, place: int) -> int:
        """When what stands at a place of the program begins."""
        at = int(np.searchsorted(self._place, place, "left"))
        return int(self._time[at]) if at < self._time.size else self._last

    def _when_done(self, place: int) -> int:
        """The last moment before anything that stands behind a place begins."""
        at = int(np.searchsorted(self._place, place, "right"))
        return int(self._time[at]) - 1 if at < self._time.size else self._last

    def packed_bytes(self, pieces: Pieces) -> int | None:
        """The size of the heap with other pieces; None where packing them takes too long."""
        packed = pack(pieces, self._alignment)
        return None if packed is None else packed.heap_bytes

    # What lives at the peak.

    def _live(self) -> list[int]:
        """The pieces at the peak, the largest first."""
        spans = np.repeat(np.arange(len(self.pieces)), np.diff(self.pieces.first))
        here = (self.pieces.begin <= self.peak_time) & (self.peak_time <= self.pieces.end)
        found = np.unique(spans[here])
        return found[np.argsort(-self.pieces.size[found], kind="stable")].tolist()  # type: ignore[no-any-return]

    @cached_property
    def _lasting(self) -> frozenset[int]:
        """Instructions whose values lie unchanged until the program ends."""
        buffers, opcodes = self._memory.buffers, self._uses.opcodes
        stays = buffers.names("kind").per_row("parameter".__eq__, np.bool_)
        stays &= ~buffers.array("is_donated") & buffers.is_valid("instruction_id")
        constants = np.flatnonzero(opcodes.per_row("constant".__eq__, np.bool_))
        return frozenset((*buffers.array("instruction_id")[stays].tolist(), *constants.tolist()))

    @cached_property
    def _by_piece(self) -> Groups:
        return Groups(self._trace.piece)

    @cached_property
    def _by_instruction(self) -> Groups:
        return Groups(self._instruction)

    # Changes.

    def rematerialised(self, most: int) -> Iterator[Change]:
        """Cheap values that are held across the peak, made again where they are needed next.

        What they are made of must be needed then anyway.
        """
        for piece in self._live()[: 4 * most]:
            values = self._by_piece.of(piece)
            made = int(self._instruction[values[0]])
            if len(values) != 1 or made < 0 or not self._whole[values[0]]:
                continue
            spans = self._spans_around(made)
            if spans is not None:
                pieces = self._with_spans(piece, [(max(low, 0), high) for low, high in spans])
                yield Change("rematerialise", pieces, self._held([piece]))
                most -= 1
            if not most:
                return

    def _spans_around(self, made: int) -> list[tuple[int, int]] | None:
        """When a value lives if it is made again after the peak; None where that cannot be."""
        uses = self._uses
        if not uses.is_cheap(made) or uses.leaves(made):
            return None
        own = int(uses.order[made])
        places = sorted(int(uses.order[user]) for user in uses.users(made))
        if own < 0 or not places or places[0] < 0:
            return None
        # A loop or a call that takes it may hold it as long as it runs.
        before = [place for place in places if self._when(place) <= self.peak_time]
        after = [place for place in places if self._when(place) > self.peak_time]
        if not after:
            return None
        made_of = (uses.source_of(operand) for operand in uses.operands(made))
        if not all(one in self._lasting or uses.last_use(one) >= after[0] for one in made_of):
            return None
        spans = [(self._when(after[0]), self._when_done(after[-1]))]
        if before:
            spans.insert(0, (self._when(own), self._when_done(before[-1])))
        return spans

    def chunked(self, most: int) -> Iterator[Change]:
        """The largest values at the peak, with what is made of them element by element until it is
        added up or multiplied, computed in two halves.
        """
        done = set[int]()
        for piece in self._live()[:most]:
            if piece in done:
                continue
            members = self._until_reduced(piece)
            if members:
                done |= members
                yield self._halved("chunk", members)

    def _until_reduced(self, piece: int) -> set[int]:
        """The pieces that can only be halved together; empty where something needs the whole."""
        found, waiting = {piece}, [piece]
        uses = self._uses
        while waiting:
            for value in self._by_piece.of(waiting.pop()):
                made = int(self._instruction[value])
                if not self._can_be_split(value) or uses.leaves(made):
                    return set()
                for user in uses.users(made):
                    if uses.reduces(user) and self._is_smaller(user, value):
                        continue
                    next_pieces = set(self._trace.piece[self._by_instruction.of(user)].tolist())
                    if not uses.is_cheap(user) or not next_pieces or min(next_pieces) < 0:
                        return set()
                    waiting += next_pieces - found
                    found |= next_pieces
            if len(found) > _MOST_TOGETHER:
                return set()
        return found

    def _can_be_split(self, value: int) -> bool:
        made = int(self._instruction[value])
        sizes = _dimensions(self._shape[value])
        if made < 0 or not sizes or sizes[0] < 2:
            return False
        return self._uses.is_cheap(made) or self._uses.reduces(made)

    def _is_smaller(self, user: int, value: int) -> bool:
        """Whether what a sum or product makes of a value is at most half as large."""
        held = int(self.pieces.size[self._trace.piece[value]])
        return 2 * int(self._uses.instructions.array("bytes")[user]) <= held

    def narrowed(self, wide: str) -> Change:
        """All values of a type in one half as wide; scalars stay as they are, and what is made by
        calls of libraries.
        """
        fits = np.zeros(len(self.pieces), np.bool_)
        is_wide = [
            (shape or "").startswith(f"{wide}[")
            and bool(_dimensions(shape))
            and self._uses.opcodes[made] not in _OF_LIBRARIES
            for shape, made in zip(self._shape, self._instruction.tolist(), strict=True)
        ]
        placed = self._trace.piece >= 0
        fits[self._trace.piece[placed & np.array(is_wide, np.bool_)]] = True
        fits[self._trace.piece[placed & ~np.array(is_wide, np.bool_)]] = False
        change = self._halved("lower_precision", np.flatnonzero(fits).tolist())
        live = set(self._live())
        at_peak = [piece for piece in np.flatnonzero(fits).tolist() if piece in live]
        return replace(change, held=self._held(at_peak), wide=wide)

    def with_more(self, rows: Int64Array) -> Pieces:
        """The pieces with temporaries, rows of ``hlo_buffers``, that lie elsewhere now.

        Times are places in the program's order. The heap's events do not say by which instruction a
        value is last needed, only between which two allocations: there the last user decides.
        """
        more = pieces_of(self._memory, self._uses, rows)
        order = self._uses.order
        values = np.flatnonzero((self._trace.piece >= 0) & (self._instruction >= 0))
        made = self._instruction[values]
        last = [self._uses.last_use(one) for one in checked(made.tolist())]
        at = np.searchsorted(self._time, self._trace.end[values], "right")
        low = np.append(self._place, 0)[at - 1]
        end = np.clip(last, low, np.maximum(np.append(self._place, order.size + 1)[at] - 1, low))
        begin = np.minimum(np.maximum(order[made], 0), end)
        count, length = len(self.pieces), np.zeros(len(self.pieces), np.int64)
        piece = self._trace.piece[values]
        np.maximum.at(length, piece, end - begin)
        return Pieces.of_spans(
            np.append(self.pieces.number, more.number + int(self.pieces.number.max(initial=0)) + 1),
            np.append(self.pieces.size, more.size),
            np.append(length, more.length),
            np.append(piece, np.arange(count, count + len(more))),
            np.append(begin, more.begin),
            np.append(end, more.end),
        )

    # How they are made.

    def _of_spans(self) -> Int64Array:
        return np.repeat(np.arange(len(self.pieces)), np.diff(self.pieces.first))

    def _with_spans(self, piece: int, spans: Iterable[tuple[int, int]]) -> Pieces:
        pieces, others = self.pieces, self._of_spans() != piece
        begin, end = np.array(list(spans), np.int64).T
        return Pieces.of_spans(
            pieces.number,
            pieces.size,
            pieces.length,
            np.append(self._of_spans()[others], np.full(begin.size, piece)),
            np.append(pieces.begin[others], begin),
            np.append(pieces.end[others], np.maximum(begin, end)),
        )

    def _halved(self, kind: str, pieces: Iterable[int]) -> Change:
        listed = list(pieces)
        size = self.pieces.size.copy()
        size[listed] = -(-size[listed] // 2)
        return Change(kind, replace(self.pieces, size=size), self._held(listed))

    def _held(self, pieces: Iterable[int]) -> dict[int, int]:
        """The bytes of pieces by the value that had each first."""
        found: dict[int, int] = {}
        for piece in pieces:
            row = int(self._rows[int(self.pieces.number[piece])])
            if row >= 0 and self._instruction[int(self.pieces.number[piece])] >= 0:
                found[row] = int(self.pieces.size[piece])
        return found


def pieces_of(memory: ProgramMemory, uses: Uses, rows: Int64Array) -> Pieces:
    """Temporaries, rows of ``hlo_buffers``, as pieces: what lies in one place at the same time, one
    value in that of another, is one. Times are places in the program's order.
    """
    buffers = memory.buffers
    made = buffers.array("instruction_id")[rows]
    begin = np.maximum(uses.order[made], 0)
    end = np.maximum([uses.last_use(one) for one in checked(made.tolist())], begin)
    size = buffers.array("bytes")[rows]
    place = buffers.array("allocation")[rows], buffers.array("offset_bytes")[rows]
    by = np.lexsort((begin, *place))
    is_new = np.ones(rows.size, np.bool_)
    same = np.logical_and.reduce([one[by][1:] == one[by][:-1] for one in place])
    is_new[1:] = ~same | (begin[by][1:] > end[by][:-1])
    starts = np.flatnonzero(is_new)
    ends = np.maximum.reduceat(end[by], starts) if starts.size else end
    sizes = np.maximum.reduceat(size[by], starts) if starts.size else size
    begins, number = begin[by][starts], np.arange(starts.size)
    return Pieces.of_spans(number, sizes, ends - begins, number, begins, ends)


def _dimensions(shape: str | None) -> list[int]:
    """The dimensions in the text of an array's shape, such as ``f32[8,16]``."""
    inside = (shape or "").partition("[")[2].partition("]")[0]
    return [size for text in inside.split(",") if (size := whole_number(text)) is not None]
