"""Parameters of a program whose memory a result could take: those that are not donated yet."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from peakline.arrays import Int64Array
from peakline.deadline import checked

if TYPE_CHECKING:
    from peakline.hlo.memory import ProgramMemory
    from peakline.hlo.uses import Uses
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
    from peakline import schema
    from peakline.wire import Plan, decode

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
