"""The memory of a compiled program: what it needs at most, and what is live then.

XLA decides before a program runs where every value lies (its buffer assignment): parameters,
outputs and constants have their memory from the beginning to the end, temporaries share what is
left, as the simulated heap says that placed them (``xla/service/buffer_assignment.cc``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.deadline import check_deadline
from peakline.formats.hlo_proto.buffers import live_bytes, total_bytes
from peakline.hlo.liveness import compute_need
from peakline.kernels.heap_layout import ALLOCATE, FREE, SHARE
from peakline.kernels.heap_trace import live_spans
from peakline.tables.columns import Columns, Names
from peakline.tables.joins import ranges
from peakline.tables.once import once

if TYPE_CHECKING:
    from peakline.hlo.liveness import Need, Value
    from peakline.tables import Profile
    from peakline.tables.programs import Programs


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
        strange, result = live_spans(
            self.kind, value, shared, count, holder, top, spans, blocks, order
        )
        while ((above := holder[holder]) != holder).any():
            holder = above
        rows = order[:result]
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


_CONTROL_FLOW = frozenset(("while", "call", "conditional", "async-start", "async-update"))
"""Opcodes whose called computations run as part of the program; others apply them to elements,
or are fused."""


def program_order(computations: Columns, instructions: Columns, calls: Columns) -> Int64Array:
    """Per instruction its place in the order of the whole program, -1 for what is fused or applied.

    The instructions of a loop's condition and body come before the loop itself, once each
    (``FlattenSchedule`` in ``xla/hlo/utils/hlo_live_range.cc``). A computation without a schedule
    runs in the order of the file. ``instructions`` needs ``computation_id``, ``opcode`` and
    ``schedule_index``; all three tables are those of one program.
    """
    of = instructions.array("computation_id")
    entry = np.flatnonzero(computations.array("is_entry"))
    place = np.full(of.size, -1, np.int64)
    if not entry.size:
        return place
    order = np.lexsort((instructions.array("schedule_index"), of))
    bounds = np.searchsorted(of[order], np.arange(computations.rows + 1))
    runs = instructions.names("opcode").per_row(_CONTROL_FLOW.__contains__, np.bool_)
    is_loop = instructions.names("opcode").per_row("while".__eq__, np.bool_)
    caller, called = calls.array("instruction_id"), calls.array("computation_id")
    first_call = np.searchsorted(caller, np.arange(of.size + 1))
    rows: list[Int64Array] = []
    seen: set[int] = set()
    # What is still to do: computations to begin, and of those that have begun the instructions, the
    # calls among them, and from where on.
    waiting: list[int | tuple[Int64Array, Int64Array, int, int]] = [int(entry[0])]
    while waiting:
        one = waiting.pop()
        if isinstance(one, int):
            if one in seen:
                continue
            seen.add(one)
            listed = order[bounds[one] : bounds[one + 1]]
            one = listed, np.flatnonzero(runs[listed]), 0, 0
        listed, stops, done, at = one
        if at == stops.size:
            rows.append(listed[done:])
            continue
        stop = int(stops[at])
        rows.append(listed[done:stop])
        waiting.append((listed, stops, stop, at + 1))
        row = int(listed[stop])
        inside = called[first_call[row] : first_call[row + 1]].tolist()
        # A loop's condition, listed behind its body, runs first.
        waiting += inside if is_loop[row] else inside[::-1]
    every = np.concatenate(rows)
    place[every] = np.arange(every.size)
    return place


MAIN_SPACE = 0
"""The memory space of the device's main memory."""
BY_TRACE, BY_ALLOCATIONS, BY_NOTHING = "heap trace", "allocations", "no temporaries"
BY_SCHEDULE = "schedule"
_THREAD_LOCAL, _OUTPUT = "thread-local", "output"


@dataclass(frozen=True, slots=True)
class Packing:
    """How well the temporaries of a heap are packed: ``heap_bytes`` is the room they take,
    ``live_bytes`` what of it is in use at most at one time: no packing needs less.
    """

    heap_bytes: int
    live_bytes: int


@dataclass(frozen=True, eq=False)
class Lives:
    """Per value the places of the first and the last instruction that need it, in the order of the
    program; whether they are known; whether it holds memory at the peak.
    """

    start: Int64Array
    end: Int64Array
    is_known: BoolArray
    at_peak: BoolArray


class ProgramMemory:
    """The memory of one program in one memory space, by its buffer assignment.

    ``is_assigned`` says whether there is one; without it everything here is empty.
    """

    __retained__ = (
        "_programs module need buffers instructions order _is_here _is_temporary events _numbers "
        "heaps _by_heap lasting definer live_set live lives packing"
    )

    def __init__(self, programs: Programs, number: int, space: int = MAIN_SPACE) -> None:
        self._programs, self.number, self.space = programs, number, space
        self.module = programs.read(number, "hlo_modules")
        self.is_assigned = bool(self.module.is_valid("argument_bytes")[0])

    @cached_property
    def need(self) -> Need | None:
        """What a program without a buffer assignment needs, computed; None where it has one, or
        nothing gives the order of its instructions.
        """
        if self.is_assigned or self.space != MAIN_SPACE:
            return None

        return compute_need(self._programs, self.number)

    @cached_property
    def buffers(self) -> Columns:
        """The values that have a place, those of every memory space; of a computed peak what holds
        memory then.
        """
        if self.need is None:
            return self._programs.read(self.number, "hlo_buffers")
        need = self.need
        result = [(value, "parameter") for value in need.parameters]
        result += [(value, "constant") for value in need.constants]
        result += [(one, _OUTPUT if one in need.outputs else TEMPORARY) for one in need.live]
        return _computed([one for one in result if one[0].bytes])

    @cached_property
    def instructions(self) -> Columns:
        """The names of the instructions."""
        return self._programs.read(self.number, "hlo_instructions", {"name"})

    @cached_property
    def order(self) -> Int64Array:
        """Per instruction its place in the order of the program; see `program_order`."""
        computations = self._programs.read(self.number, "hlo_computations", frozenset())
        calls = self._programs.read(self.number, "hlo_calls")
        wanted = {"opcode", "computation_id", "schedule_index"}
        instructions = self._programs.read(self.number, "hlo_instructions", wanted)
        return program_order(computations, instructions, calls)

    @cached_property
    def _is_here(self) -> BoolArray:
        here: BoolArray = self.buffers.array("memory_space") == self.space
        return here

    @cached_property
    def _is_temporary(self) -> BoolArray:
        """Which values lie where only the program itself puts something."""
        return self.buffers.names("kind").per_row(TEMPORARY.__eq__, np.bool_)

    # Heaps.

    @cached_property
    def events(self) -> Columns:
        """The events of the simulated heaps of this memory space, those of temporaries.

        A heap is of the space in which the first of its values that has a place lies.
        """
        events = self._programs.read(self.number, "hlo_heap_events")
        buffer = self.rows_of(events.array("buffer"))
        placed = np.flatnonzero(buffer >= 0)
        trace = events.array("trace")
        result, first = np.unique(trace[placed], return_index=True)
        rows = buffer[placed[first]]
        fits = result[self._is_here[rows] & self._is_temporary[rows]]
        return events.take(np.isin(trace, fits))

    def rows_of(self, values: AnyArray) -> Int64Array:
        """The row in `buffers` of each value's number, -1 for one without a place."""
        order, known = self._numbers
        if not known.size:
            return np.full(values.size, -1, np.int64)
        at = np.minimum(np.searchsorted(known, values), known.size - 1)
        return np.where(known[at] == values, order[at], -1)

    @cached_property
    def _numbers(self) -> tuple[Int64Array, Int64Array]:
        """The rows of `buffers` in the order of their values' numbers, and these."""
        number = self.buffers.array("native_id")
        order = np.argsort(number, kind="stable")
        return order, number[order]

    @cached_property
    def heaps(self) -> list[Heap]:
        """The simulated heaps with temporaries of this memory space."""
        trace = self.events.array("trace")
        return [Heap(self.events.take(trace == one), self) for one in np.unique(trace).tolist()]

    @cached_property
    def _by_heap(self) -> Int64Array:
        """Allocations whose contents over time are known."""
        allocation = self.buffers.array("allocation")
        rows = [heap.value for heap in self.heaps]
        result = np.concatenate(rows) if rows else np.zeros(0, np.int64)
        return np.unique(allocation[result[result >= 0]])

    # The peak.

    @cached_property
    def lasting(self) -> LiveSet:
        """What holds its memory all the time, and temporaries of which no heap says when they are
        live: of each allocation the largest value in it, the last defined of several.
        """
        buffers = self.buffers
        kinds = buffers.names("kind")
        heaps = self._by_heap
        here = self._is_here & ~kinds.per_row(_THREAD_LOCAL.__eq__, np.bool_)
        rows = np.flatnonzero(here & ~np.isin(buffers.array("allocation"), heaps))
        allocation, size = buffers.array("allocation")[rows], buffers.array("bytes")[rows]
        instruction = self.definer[rows]
        defined = np.full(rows.size, -1, np.int64)
        defined[instruction >= 0] = self.order[instruction[instruction >= 0]]
        by = np.lexsort((defined, size, allocation))
        last = np.append(allocation[by][1:] != allocation[by][:-1], True)[: rows.size]
        result = rows[by[last]]
        return LiveSet(
            buffers.array("allocation_bytes")[result],
            result,
            self.definer[result],
            kinds.take(result),
        )

    @cached_property
    def definer(self) -> Int64Array:
        """The instruction that defines each value, -1 where it names none."""
        known = self.buffers.is_valid("instruction_id")
        return np.where(known, self.buffers.array("instruction_id"), -1)

    def last_users(self, values: Int64Array, before: Int64Array) -> Int64Array:
        """Per value, a row of `buffers`, the last place below ``before`` of an instruction that
        takes what defines the value; -1 where there is none, and for parts of a tuple, of which
        an instruction may take others.
        """
        links = self._programs.read(self.number, "hlo_operands")
        of = links.array("operand_id")
        data = np.flatnonzero(~links.array("is_control"))
        order = data[np.argsort(of[data], kind="stable")]
        of, user = of[order], self.order[links.array("instruction_id")[order]]
        is_part = self.buffers.names("shape_index").per_row(bool, np.bool_)
        own = np.append(np.where(is_part, -1, self.definer), -1)[values]
        first, last = np.searchsorted(of, own, "left"), np.searchsorted(of, own, "right")
        at, place = ranges(first, last), np.repeat(np.arange(values.size), last - first)
        result = np.full(values.size, -1, np.int64)
        inside = user[at] < before[place]
        np.maximum.at(result, place[inside], user[at[inside]])
        return result

    @cached_property
    def live_set(self) -> LiveSet:
        """Everything that holds memory when the program needs most, the largest first; together
        `peak_bytes`.
        """
        parts = [self.lasting, *(heap.live_set(self.definer) for heap in self.heaps)]
        kinds = [kind for part in parts for kind in part.kind.to_list()]
        size, buffer, instruction = (
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("bytes", "buffer", "instruction")
        )
        if self.need is not None:
            every = self.buffers
            size, buffer = every.array("bytes"), np.arange(every.rows)
            instruction, kinds = every.array("instruction_id"), every.names("kind").to_list()
        result = LiveSet(size, buffer, instruction, Names.encode(kinds))
        return result.take(np.argsort(-size, kind="stable"))

    @cached_property
    def live(self) -> list[Live]:
        """The same, one by one."""
        result = self.live_set
        columns = (result.bytes.tolist(), result.buffer.tolist(), result.instruction.tolist())
        kinds = [kind or "" for kind in result.kind.to_list()]
        return list(map(Live, *columns, kinds))

    @property
    def peak_bytes(self) -> int:
        """The most memory that the program needs at one time."""
        if self.need is not None:
            return self.need.whole_bytes
        peaks = [heap.peak for heap in self.heaps]
        return total_bytes(np.append(self.lasting.bytes, np.array(peaks, np.int64)))

    @property
    def is_known(self) -> bool:
        """Whether the program says what it needs, or it can be computed."""
        return self.is_assigned or self.need is not None

    @cached_property
    def lives(self) -> Lives:
        """When each value of `buffers` is live, those of this memory space.

        Parameters, constants and temporaries without a heap are so from the beginning to the end,
        results of the program from where they are made to the end.
        """
        if not self.is_assigned:
            nothing, none = np.zeros(0, np.int64), np.zeros(0, np.bool_)
            return Lives(nothing, nothing, none, none)
        buffers = self.buffers
        last = int(self.order.max(initial=0))
        kinds = buffers.names("kind")
        is_output = kinds.per_row(_OUTPUT.__eq__, np.bool_)
        start = np.zeros(buffers.rows, np.int64)
        defined = is_output & buffers.is_valid("instruction_id")
        start[defined] = self.order[buffers.array("instruction_id")[defined]]
        end = np.full(buffers.rows, last, np.int64)
        known = self._is_here & ~kinds.per_row(_THREAD_LOCAL.__eq__, np.bool_) & (start >= 0)
        at_peak = np.zeros(buffers.rows, np.bool_)
        at_peak[self.live_set.buffer] = True
        for heap in self.heaps:
            rows, begin, stop = heap.places()
            start[rows], end[rows] = begin, np.where(stop < 0, last, stop)
            known[rows] = begin >= 0
        return Lives(start, end, known, at_peak)

    @property
    def found_by(self) -> str:
        """How the peak was found: where heaps do not cover all temporaries, or several do and
        nothing says that they peak together, it is an upper bound.
        """
        if self.need is not None:
            return BY_SCHEDULE
        unknown = self.lasting.kind
        if unknown.code_of(TEMPORARY) in unknown.codes or len(self.heaps) > 1:
            return BY_ALLOCATIONS
        return BY_TRACE if self.heaps else BY_NOTHING

    @cached_property
    def packing(self) -> Packing:
        """How the temporaries of all heaps are packed."""
        return Packing(
            sum(heap.heap_bytes for heap in self.heaps), sum(heap.peak for heap in self.heaps)
        )


def _computed(result: Sequence[tuple[Value, str]]) -> Columns:
    """As ``hlo_buffers``, of values that hold memory and the kind of each."""
    instruction = np.array([value.row for value, _ in result], np.int64)
    size = np.array([value.bytes for value, _ in result], np.int64)
    index = [f"{{{','.join(map(str, one.path))}}}" if one.path else "" for one, _ in result]
    nothing = np.zeros(instruction.size, np.int64)
    return Columns(
        {
            "native_id": np.arange(instruction.size),
            "allocation": np.arange(instruction.size),
            "offset_bytes": nothing,
            "bytes": size,
            "unpadded_bytes": size,
            "allocation_bytes": size,
            "memory_space": nothing,
            "kind": Names.encode([kind for _, kind in result]),
            "instruction_id": instruction,
            "shape_index": Names.encode(index),
            "shape": Names.encode([value.shape for value, _ in result]),
        }
    )


@once
def memory_of(profile: Profile, number: int, space: int = MAIN_SPACE) -> ProgramMemory:
    """The memory of one program of the profile.

    Raises IndexError where it has no such program.
    """
    programs = profile.programs()
    if programs is None or not 0 <= number < len(programs):
        raise IndexError(number)
    return ProgramMemory(programs, number, space)
