"""A simulated heap of a compiled program, and what is live in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from peakline.arrays import AnyArray, Int64Array
from peakline.deadline import check_deadline
from peakline.formats.hlo_proto.buffers import live_bytes
from peakline.kernels.heap_layout import ALLOCATE, FREE, SHARE
from peakline.kernels.heap_trace import live_spans
from peakline.tables.columns import Columns, Names

if TYPE_CHECKING:
    from peakline.hlo.memory import ProgramMemory

TEMPORARY = "temporary"
_KINDS = {"allocation": ALLOCATE, "deallocation": FREE, "share": SHARE}
STRANGE = 3
"""The kind of an event that is none of those."""


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


@dataclass(frozen=True, eq=False)
class Uses:
    """When the values of a heap are live: a row per value, in the order in which they begin.

    ``spans`` has of each the event that begins it and the one that frees it, one more than there
    are where none does. Of values that share memory one at a time is shown in ``blocks`` (-1 for
    one that never is): the last that was put there. ``root`` is the value whose memory each uses at
    the end, ``users`` how many use that then, ``strange`` how many events do not fit those before.
    """

    value: Int64Array
    spans: Int64Array
    blocks: Int64Array
    root: Int64Array
    users: Int64Array
    strange: int


class Replay:
    """One simulated heap, event by event: its ``kind``, the ``value`` it is about and the one that
    this shares its memory with. Values are rows of ``size``, in bytes, -1 for one without a place.

    A value that is shared with one of which nothing was in use any more brings its memory back: an
    operation in place gives its operand free first (``HeapSimulator::RunComputation``). Events that
    do not fit those before change nothing.
    """

    __retained__ = "kind value shared size curve uses"

    def __init__(
        self, kind: AnyArray, value: Int64Array, shared: Int64Array, size: Int64Array
    ) -> None:
        self.kind, self.value, self.shared, self.size = kind, value, shared, size

    @cached_property
    def curve(self) -> Int64Array:
        """What is live after each event, in bytes."""
        return self.curve_of(self.size)

    def curve_of(self, size: Int64Array) -> Int64Array:
        """The same, were the values as large as ``size`` says."""
        one = np.zeros(self.kind.size, np.int64)
        return live_bytes(one, self.kind, self.value, self.shared, size)[0]

    @property
    def peak(self) -> int:
        """The most that is live at one time, in bytes."""
        return int(self.curve.max(initial=0))

    @property
    def peak_event(self) -> int:
        """The first event after which it is."""
        return int(self.curve.argmax()) if self.curve.size else 0

    @cached_property
    def uses(self) -> Uses:
        """When the values are live."""
        check_deadline()
        known, code = np.unique(
            np.concatenate([[-1], self.value, self.shared]), return_inverse=True
        )
        # The first one is that of nothing.
        value, shared = code[1:].reshape(2, -1) - 1
        count, holder, top, order = np.zeros((4, known.size), np.int64)
        holder[:] = np.arange(known.size)
        spans, blocks = np.full((2, known.size, 2), -1)
        strange, found = live_spans(
            self.kind, value, shared, count, holder, top, spans, blocks, order
        )
        while ((above := holder[holder]) != holder).any():
            holder = above
        rows = order[:found]
        root = holder[rows]
        return Uses(
            known[rows + 1], spans[rows], blocks[rows], known[root + 1], count[root], strange
        )

    def live(self) -> tuple[Int64Array, Int64Array]:
        """What is live at the peak, in the order in which it began: per piece of memory the value
        that was last put there, and the one whose memory it is.
        """
        # Whose memory a value uses can change later, where events do not fit.
        until = slice(self.peak_event + 1 if self.peak else 0)
        uses = Replay(self.kind[until], self.value[until], self.shared[until], self.size).uses
        # Where one is freed twice, another one that shares its memory is not freed any more.
        rows = np.flatnonzero((uses.spans[:, 1] == until.stop) & (uses.users > 0))
        root, first, place = np.unique(uses.root[rows], return_index=True, return_inverse=True)
        latest = np.argsort(uses.spans[rows, 0])
        value = np.zeros(root.size, np.int64)
        value[place[latest]] = uses.value[rows[latest]]
        order = np.argsort(first)
        return value[order], root[order]


class Heap(Replay):
    """One simulated heap of a program, with its rows of ``hlo_heap_events``; values are rows of
    ``hlo_buffers``.
    """

    __retained__ = f"{Replay.__retained__} events"

    def __init__(self, events: Columns, memory: ProgramMemory) -> None:
        self.events, self._memory = events, memory
        value, shared = (memory.rows_of(events.array(name)) for name in ("buffer", "shared_with"))
        kind = events.names("kind").per_row(
            lambda text: _KINDS.get(text, STRANGE), np.uint8, STRANGE
        )
        super().__init__(kind, value, shared, memory.buffers.array("bytes"))

    def live_set(self, definer: Int64Array) -> LiveSet:
        """What is live at the peak; ``definer`` are the instructions that define the values."""
        rows, holders = self.live()
        kind = Names.constant(TEMPORARY, rows.size)
        return LiveSet(self.size[holders], rows, definer[rows], kind)

    def places(self) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Of each value: its row, and the places of the instructions that made it and that used it
        last; -1 for one that is not known.

        The name of an end is that of the maker (``HeapSimulator::RunComputation``), in older
        traces that of the last user. An end is never before what began last, and before what
        begins next: between these the last that takes the value counts.
        """
        names = self._memory.instructions.names("name").codes
        instruction = self.events.names("instruction").codes
        # Both columns number their texts alike; of two instructions with one name the first counts.
        place = np.full(max(names.max(initial=-1), instruction.max(initial=-1)) + 2, -1)
        place[names[::-1]] = self._memory.order[::-1]
        place[-1] = -1
        named = place[instruction]
        begun = np.where(self.kind == FREE, -1, named)
        before = np.maximum.accumulate(begun)
        later = np.where(begun < 0, self._memory.order.max(initial=-1) + 1, begun)
        # Places of a loop's state may come before those of what holds it.
        after = np.maximum(np.minimum.accumulate(later[::-1])[::-1], before + 1)
        first, last = self.uses.spans.T
        made, ended = np.append(named, -1)[first], np.append(named, -1)[last]
        is_ended = last < named.size
        at = np.minimum(last, max(named.size - 1, 0))
        low, high = (np.where(is_ended, one[at], -1) for one in (before, after))
        used = self._memory.last_users(self.uses.value, high)
        return self.uses.value, made, np.where(is_ended, np.maximum.reduce([ended, low, used]), -1)

    @property
    def heap_bytes(self) -> int:
        """From the lowest to the highest byte at which something of it lies."""
        rows = self.value[self.value >= 0]
        begin = self._memory.buffers.array("offset_bytes")[rows]
        end = begin + self.size[rows]
        return int(end.max(initial=0) - begin.min(initial=int(end.max(initial=0))))
