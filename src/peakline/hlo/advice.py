"""What would lower the memory that a compiled program needs, and how far.

Each change is tried on the program's simulated heap: lifetimes or sizes are changed, and all is
packed again as XLA packs it. That is an estimate: XLA may choose another order, and fuse otherwise,
once the program is another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from peakline import schema
from peakline.arrays import Int64Array
from peakline.deadline import checked
from peakline.hlo.memory import memory_of
from peakline.hlo.packing import PackedHeap, alignments_of, packed_heaps
from peakline.hlo.uses import Uses
from peakline.replay.xla_heap import Pieces, pack
from peakline.tables.once import once
from peakline.text import size_text, whole_number
from peakline.wire import Plan, decode

if TYPE_CHECKING:
    from peakline.hlo.memory import ProgramMemory
    from peakline.tables import Profile
    from peakline.tables.programs import Programs


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
        result = np.unique(spans[here])
        return result[np.argsort(-self.pieces.size[result], kind="stable")].tolist()  # type: ignore[no-any-return]

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
        result, waiting = {piece}, [piece]
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
                    waiting += next_pieces - result
                    result |= next_pieces
            if len(result) > _MOST_TOGETHER:
                return set()
        return result

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
        result: dict[int, int] = {}
        for piece in pieces:
            row = int(self._rows[int(self.pieces.number[piece])])
            if row >= 0 and self._instruction[int(self.pieces.number[piece])] >= 0:
                result[row] = int(self.pieces.size[piece])
        return result


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


_DONORS = "hlo_module.buffer_donor.entries"


@dataclass(frozen=True, eq=False)
class Donation:
    """A parameter (its row in ``hlo_buffers``) that could be donated, and what that saves: the
    bytes of the result's allocation, whose place it would take. ``guests`` are the rows of
    temporaries that lie in that allocation before the result is written.
    """

    parameter: int
    bytes: int
    guests: Int64Array


def find_donations(programs: Programs, memory: ProgramMemory, uses: Uses) -> list[Donation]:
    """Which parameters results could take the memory of, the largest first, one result each.

    Both have the same type, dimensions and layout, and the parameter is not needed any more when
    the result is written, or only by what writes it, element for element in place. A parameter that
    is needed later would be copied, which saves nothing (``xla/service/copy_insertion.cc``).
    """
    results = {
        form: (np.array(listed, np.int64), np.ones(len(listed), np.bool_))
        for form, listed in _results(memory, uses).items()
    }
    result = []
    parameters = _parameters(memory, uses)
    for row in _donors(programs, memory, uses):
        parameters.pop(row, None)
    for row in checked(parameters):
        listed = results.get(_form(uses, row))
        if listed is None:
            continue
        (made, buffers), is_free = listed[0].T, listed[1]
        last, written = uses.last_use(row), uses.order[made]
        fits = is_free & (written > last)
        same = np.flatnonzero(is_free & (written == last))
        for one in dict.fromkeys(made[same].tolist()):
            fits[same] |= (made[same] == one) & _in_place(uses, one, row)
        if fits.any():
            place = int(fits.argmax())
            is_free[place] = False
            result.append(_donation(memory, parameters[row], int(buffers[place])))
    return result


def _donors(programs: Programs, memory: ProgramMemory, uses: Uses) -> list[int]:
    """Parameters of the entry that are donated, whether or not a result took their place
    (``HloModuleProto.buffer_donor``).
    """
    plan = Plan(schema.shape("xla.HloProto"), (f"{_DONORS}.parameter_number",))
    numbers = decode(programs.data(memory.number), plan)[_DONORS].array("parameter_number")
    table = uses.instructions
    of = table.array("computation_id")
    is_one = uses.opcodes.per_row("parameter".__eq__, np.bool_)
    is_one &= np.isin(table.array("parameter_number"), numbers)
    is_one &= of == (of[_entry_root(memory, uses)] if of.size else -1)
    rows: list[int] = np.flatnonzero(is_one).tolist()
    return rows


def _in_place(uses: Uses, made: int, parameter: int) -> bool:
    # A loop takes over what it begins with.
    return uses.opcodes[made] == "while" or uses.works_in_place(made, parameter)


def _form(uses: Uses, row: int) -> tuple[str | None, str | None]:
    table = uses.instructions
    return table.names("shape")[row], table.names("layout")[row]


def _parameters(memory: ProgramMemory, uses: Uses) -> dict[int, int]:
    """Instructions of the entry's parameters that are arrays of their own, the largest first, and
    their rows in ``hlo_buffers``.
    """
    buffers = memory.buffers
    fits = buffers.names("kind").per_row("parameter".__eq__, np.bool_)
    fits &= ~buffers.array("is_donated") & ~buffers.array("is_live_out")
    fits &= (buffers.array("memory_space") == memory.space) & buffers.is_valid("instruction_id")
    fits &= buffers.names("shape_index").per_row(lambda text: not text, np.bool_, 1)
    rows = np.flatnonzero(fits)
    rows = rows[np.argsort(-buffers.array("bytes")[rows], kind="stable")]
    of = buffers.array("instruction_id")[rows]
    is_parameter = uses.opcodes.per_row("parameter".__eq__, np.bool_)
    return {
        made: row
        for made, row in zip(of.tolist(), rows.tolist(), strict=True)
        if is_parameter[made]
    }


def _results(
    memory: ProgramMemory, uses: Uses
) -> dict[tuple[str | None, str | None], list[tuple[int, int]]]:
    """The program's results with an allocation of their own, by type, dimensions and layout: the
    instruction that makes each, and its row in ``hlo_buffers``.
    """
    buffers = memory.buffers
    fits = buffers.names("kind").per_row("output".__eq__, np.bool_)
    fits &= (buffers.array("memory_space") == memory.space) & buffers.is_valid("instruction_id")
    rows = np.flatnonzero(fits)
    made: dict[tuple[int, str | None], deque[int]] = {}
    shapes = buffers.names("shape")
    for row in rows.tolist():
        key = int(buffers.array("instruction_id")[row]), shapes[row]
        made.setdefault(key, deque()).append(row)
    results: dict[tuple[str | None, str | None], list[tuple[int, int]]] = {}
    root = _entry_root(memory, uses)
    for result in uses.operands(root) if uses.opcodes[root] == "tuple" else [root]:
        source = uses.source_of(result)
        form = _form(uses, result)
        if unused := made.get((source, form[0])):
            results.setdefault(form, []).append((source, unused.popleft()))
    return results


def _entry_root(memory: ProgramMemory, uses: Uses) -> int:
    """What runs last of the whole program is its result's computation's."""
    table = uses.instructions
    last = int(memory.order.argmax()) if memory.order.size else 0
    of = table.array("computation_id")
    if not of.size:
        return last
    roots: Int64Array = np.flatnonzero(table.array("is_root") & (of == of[last]))
    return int(roots[0]) if roots.size else last


def _donation(memory: ProgramMemory, parameter: int, buffer: int) -> Donation:
    buffers = memory.buffers
    allocation = buffers.array("allocation")
    others = np.flatnonzero(allocation == allocation[buffer])
    instruction = buffers.array("instruction_id")
    others = others[(instruction[others] != instruction[buffer]) & (instruction[others] >= 0)]
    size = int(buffers.array("allocation_bytes")[buffer])
    return Donation(parameter, size, others.astype(np.int64))


WORTH = 0.05
"""A change that saves less than this share of what the program needs is left out."""
WORTH_BYTES = 64 * 1024
"""... and one that saves less than this."""
_EACH = 6
"""So many of the largest values are tried for each kind of change."""
_ROWS = 8
"""So many values stand behind an advice."""

_SUGGESTIONS = {
    "rematerialise": (
        "Cheap to make, and held across the peak: recompute it where it is needed "
        "(jax.checkpoint, tf.recompute_grad)."
    ),
    "chunk": (
        "It is only added up or multiplied with: compute it in pieces along its leading dimension "
        "(jax.lax.map with batch_size, jax.lax.scan), or in a form that needs no such intermediate."
    ),
    "donate": (
        "The program does not read it any more when a result of its size is written: if the caller "
        "needs it no more either, donate it (donate_argnums of jax.jit)."
    ),
    "lower_precision": "Compute in a smaller type where the result allows it: {narrow} for {wide}.",
}
_NARROW = {"f32": "bf16", "f64": "f32"}


@dataclass(frozen=True)
class Advice:
    """One way to lower what a program needs. Sizes are bytes.

    ``kind`` is ``rematerialise`` (a cheap value held across the peak), ``chunk`` (the largest
    values, in two halves), ``donate`` (parameters whose memory a result can take) or
    ``lower_precision`` (all temporaries of a type in the next smaller one). ``bytes`` is by how
    much the program's allocations would shrink, ``peak_after`` what would be left of them, the heap
    as it would be packed; both are estimates. ``rows`` are the values behind it, the largest first:
    name and op_name of the instruction, source (``file:line``), shape, and the bytes it holds now.
    """

    kind: str
    bytes: int
    peak_after: int
    title: str
    rows: tuple[Mapping[str, object], ...]
    suggestion: str


@once
def advice_of(profile: Profile, number: int) -> tuple[Advice, ...]:
    """What would lower the need of one program of the profile, most bytes first.

    Raises IndexError where it has no such program, and as `peakline.deadline.check_deadline`.
    """
    memory = memory_of(profile, number)
    programs = profile.programs()
    return find_advice(programs, memory) if programs is not None else ()


def find_advice(programs: Programs, memory: ProgramMemory) -> tuple[Advice, ...]:
    """The same for a program's memory; empty without a buffer assignment."""
    if not (memory.is_assigned and memory.instructions.rows):
        return ()
    return _Search(programs, memory).found()


class _Search:
    """The changes that are tried on one program."""

    def __init__(self, programs: Programs, memory: ProgramMemory) -> None:
        self.programs, self.memory, self.uses = programs, memory, Uses(programs, memory)
        self.heaps = [
            HeapChanges(one, memory, self.uses)
            for one in packed_heaps(memory)
            if one.packed is not None
        ]
        live = sum(one.heap.peak for one in self.heaps)
        self.needed = memory.peak_bytes - live + sum(one.heap_bytes for one in self.heaps)

    def found(self) -> tuple[Advice, ...]:
        """What is worth it, most bytes first."""
        result = [*self._donate()]
        for heap in self.heaps:
            changes = [
                *heap.rematerialised(_EACH),
                *heap.chunked(_EACH),
                *(heap.narrowed(wide) for wide in self._wide()),
            ]
            for change in checked(changes, 1):
                result += self._tried(heap, change)
        return tuple(sorted(result, key=lambda one: (-one.bytes, one.kind, one.title)))

    def _wide(self) -> list[str]:
        """The types whose next smaller one the device computes with.

        On CPUs XLA makes numbers of 16 bits wider again (``FloatNormalization`` in
        ``xla/service/cpu/cpu_compiler.cc``); a program that names no device may be of one.
        """
        backend = self.memory.module.names("backend")[0]
        return [wide for wide in _NARROW if wide != "f32" or backend in {"gpu", "tpu"}]

    def _is_worth(self, saved: int) -> bool:
        return saved >= max(WORTH * self.needed, WORTH_BYTES)

    def _tried(self, heap: HeapChanges, change: Change) -> Iterable[Advice]:
        # What leaves as much live at the peak packs better by chance, if at all.
        if not self._is_worth(heap.heap.peak - change.pieces.live_peak()):
            return
        after = heap.packed_bytes(change.pieces)
        if after is None or not self._is_worth(heap.heap_bytes - after):
            return
        suggestion = _SUGGESTIONS[change.kind]
        if change.wide:
            suggestion = suggestion.format(wide=change.wide, narrow=_NARROW[change.wide])
        yield self._advice(change.kind, heap.heap_bytes - after, change.held, suggestion)

    def _donate(self) -> Iterable[Advice]:
        donations = find_donations(self.programs, self.memory, self.uses)
        largest = [one for one in donations if one.bytes]
        if not largest:
            return
        saved = sum(one.bytes for one in largest) - self._displaced(largest)
        if self._is_worth(saved):
            held = {one.parameter: one.bytes for one in largest}
            yield self._advice("donate", saved, held, _SUGGESTIONS["donate"])

    def _displaced(self, donations: list[Donation]) -> int:
        """By how much the heap grows by the temporaries that lie where results will be written:
        there the parameters lie then.
        """
        rows = np.concatenate([one.guests for one in donations])
        if not rows.size:
            return 0
        if self.heaps:
            heap = self.heaps[0]
            after = heap.packed_bytes(heap.with_more(rows))
            if after is not None:
                return max(after - heap.heap_bytes, 0)
        packed = pack(pieces_of(self.memory, self.uses, rows), alignments_of(self.memory)[0])
        if packed is not None:
            return packed.heap_bytes
        return int(self.memory.buffers.array("bytes")[rows].sum())

    def _advice(self, kind: str, saved: int, held: Mapping[int, int], suggestion: str) -> Advice:
        by = sorted(held.items(), key=lambda one: -one[1])
        rows = tuple(self._row(row, size) for row, size in by[:_ROWS])
        title = f"{rows[0]['shape']} of {rows[0]['instruction']}"
        if len(by) > 1:
            title = f"{len(by)} values of {size_text(sum(held.values()))}, such as {title}"
        return Advice(kind, saved, self.needed - saved, title, rows, suggestion)

    def _row(self, row: int, size: int) -> dict[str, object]:
        table, buffers = self.uses.instructions, self.memory.buffers
        made = int(buffers.array("instruction_id")[row])
        file = table.names("source_file")[made]
        line = int(table.array("source_line")[made])
        return {
            "instruction": table.names("name")[made] or "",
            "op_name": table.names("op_name")[made] or "",
            "source": f"{file}:{line}" if file else "",
            "shape": buffers.names("shape")[row] or "",
            "bytes": size,
        }
