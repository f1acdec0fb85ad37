"""A simulated heap of a compiled program, and what is live in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from peakline.arrays import AnyArray, Int64Array
from peakline.tables.columns import Columns, Names

if TYPE_CHECKING:
    from peakline.hlo.memory import ProgramMemory

TEMPORARY = "temporary"


@dataclass(frozen=True, slots=True)
class Live:
    """What holds memory at a program's peak: ``bytes`` of it, for a value or what stands for an
    allocation.

    ``buffer`` is its row in the program's ``hlo_buffers``, ``instruction`` that of the instruction
    that defines it, -1 where it names none.
    """

    bytes: int
    buffer: int
    instruction: int
    kind: str


@dataclass(frozen=True, eq=False)
class LiveSet:
    """As `Live`, of many: a column for each field."""

    bytes: Int64Array
    buffer: Int64Array
    instruction: Int64Array
    kind: Names

    def take(self, rows: AnyArray) -> LiveSet:
        """Those of ``rows``."""
        return LiveSet(
            self.bytes[rows], self.buffer[rows], self.instruction[rows], self.kind.take(rows)
        )


class Heap:
    """One simulated heap: `curve` is what is live after each of its ``events``, in bytes."""

    def __init__(self, events: Columns, memory: ProgramMemory) -> None:
        self.events, self._memory = events, memory
        self.curve: Int64Array = events.array("live_bytes")

    @property
    def peak(self) -> int:
        """The most that is live at one time."""
        return max(int(self.curve.max(initial=0)), 0)

    @property
    def peak_event(self) -> int:
        """The first event after which it is."""
        return int(self.curve.argmax()) if self.curve.size else 0

    @cached_property
    def spans(self) -> dict[int, tuple[int, int, int]]:
        """By value (its number): the first event of it, the one that frees it (one more than there
        are where none does), and the value whose memory it uses.
        """
        kinds = self.events.names("kind").to_list()
        rows = zip(
            kinds,
            self.events.array("buffer").tolist(),
            self.events.array("shared_with").tolist(),
            strict=True,
        )
        end, found, holder = len(kinds), dict[int, tuple[int, int, int]](), dict[int, int]()
        for at, (kind, value, other) in enumerate(rows):
            if kind == "deallocation":
                begin, _, held = found.get(value, (at, at, value))
                found[value] = begin, at, held
            elif kind is not None:
                held = holder.get(other, other) if kind == "share" else value
                holder[value] = held
                found[value] = at, end, held
        return found

    def live_set(self, definer: Int64Array) -> LiveSet:
        """What is live at the peak: per piece of memory the value that was last put there.

        ``definer`` are the instructions that define the values of the program.
        """
        at = self.peak_event
        held: dict[int, tuple[int, int]] = {}
        for value, (begin, end, holder) in self.spans.items():
            if begin <= at < end and self.curve.size:
                held[holder] = max(held.get(holder, (-1, value)), (begin, value))
        rows = self._memory.rows_of(np.array([value for _, value in held.values()], np.int64))
        holders = self._memory.rows_of(np.array(list(held), np.int64))
        placed = (rows >= 0) & (holders >= 0)
        rows, holders = rows[placed], holders[placed]
        size = self._memory.buffers.array("bytes")[holders]
        return LiveSet(size, rows, definer[rows], Names.constant(TEMPORARY, rows.size))

    def places(self) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Of each value with a place: its row, and the places of the instructions that made it and
        that used it last; -1 for one that is not known.
        """
        names = self._memory.instructions.names("name").codes
        instruction = self.events.names("instruction").codes
        # Both columns number their texts alike; of two instructions with one name the first counts.
        place = np.full(max(names.max(initial=-1), instruction.max(initial=-1)) + 2, -1)
        place[names[::-1]] = self._memory.order[::-1]
        at = np.append(place[instruction], -1)
        spans = np.array(list(self.spans.values()), np.int64).reshape(-1, 3)
        begin, end = at[spans[:, 0]], at[spans[:, 1]]
        rows = self._memory.rows_of(np.array(list(self.spans), np.int64))
        placed = rows >= 0
        return rows[placed], begin[placed], end[placed]

    @property
    def heap_bytes(self) -> int:
        """From the lowest to the highest byte at which something of it lies."""
        buffers = self._memory.buffers
        rows = self._memory.rows_of(self.events.array("buffer"))
        rows = rows[rows >= 0]
        begin = buffers.array("offset_bytes")[rows]
        end = begin + buffers.array("bytes")[rows]
        return int(end.max(initial=0) - begin.min(initial=int(end.max(initial=0))))
