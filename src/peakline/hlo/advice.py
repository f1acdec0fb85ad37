"""What would lower the memory that a compiled program needs, and how far.

Each change is tried on the program's simulated heap: lifetimes or sizes are changed, and all is
packed again as XLA packs it. That is an estimate: XLA may choose another order, and fuse otherwise,
once the program is another.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from peakline import schema
from peakline.arrays import Int64Array
from peakline.deadline import checked
from peakline.hlo.heap_changes import Change, HeapChanges, pieces_of
from peakline.hlo.memory import memory_of
from peakline.hlo.packing import alignments_of, packed_heaps
from peakline.hlo.uses import Uses
from peakline.replay.xla_heap import pack
from peakline.tables.once import once
from peakline.text import size_text
from peakline.wire import Plan, decode

if TYPE_CHECKING:
    from peakline.hlo.memory import ProgramMemory
    from peakline.tables import Profile
    from peakline.tables.programs import Programs


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
    found = []
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
            found.append(_donation(memory, parameters[row], int(buffers[place])))
    return found


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
    found: dict[tuple[str | None, str | None], list[tuple[int, int]]] = {}
    root = _entry_root(memory, uses)
    for result in uses.operands(root) if uses.opcodes[root] == "tuple" else [root]:
        source = uses.source_of(result)
        form = _form(uses, result)
        if unused := made.get((source, form[0])):
            found.setdefault(form, []).append((source, unused.popleft()))
    return found


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
        found = [*self._donate()]
        for heap in self.heaps:
            changes = [
                *heap.rematerialised(_EACH),
                *heap.chunked(_EACH),
                *(heap.narrowed(wide) for wide in self._wide()),
            ]
            for change in checked(changes, 1):
                found += self._tried(heap, change)
        return tuple(sorted(found, key=lambda one: (-one.bytes, one.kind, one.title)))

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
