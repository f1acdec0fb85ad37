"""Instructions out of their computations, one line each, as XProf shows an op
(``UncachedExpression`` in ``utils/hlo_module_utils.h`` of openxla/xprof).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from peakline import schema
from peakline.hlo.printing.instructions import ASYNC
from peakline.hlo.printing.module import ALONE, printer
from peakline.hlo.printing.outline import Outline

if TYPE_CHECKING:
    from peakline.hlo.instruction_index import InstructionIndex
    from peakline.hlo.messages import ModuleParts
    from peakline.schema import HloInstructionProto

_LONGEST = 1_000_000


class InstructionLines:
    """The instructions of a program by name; of several with one name the first counts."""

    def __init__(self, parts: ModuleParts, index: InstructionIndex) -> None:
        self._computations, self._index = parts.computations, index
        self._outline = Outline(parts.computations)
        self._printer = printer(parts, self._outline, ALONE)

    def find(self, name: str) -> HloInstructionProto | None:
        """The instruction of a name."""
        row = self._index.row(name)
        return None if row is None else self._index.message(row)

    def text(self, name: str) -> str:
        """Its line, of which a million letters are shown; empty for a name that there is not."""
        row = self._index.row(name)
        if row is None:
            return ""
        # Of its computation the line needs what the instruction uses, and what it was started by.
        near = schema.HloComputationProto(id=self._outline.ids[self._index.computation(row)])
        made = near.instructions.add()
        made.CopyFrom(self._index.message(row))
        seen, waiting = {row}, [row]
        while waiting:
            current = waiting.pop()
            used = self._index.inputs(current, control=False)
            for each in [*used, *self._index.inputs(current, control=True)]:
                if each not in seen:
                    seen.add(each)
                    near.instructions.append(self._index.message(each))
                    if near.instructions[-1].opcode in ASYNC:
                        waiting.append(each)
        self._printer.enter(near)
        return "".join(self._printer.instruction(made, "")).removesuffix("\n")[:_LONGEST]

    def parts(self, name: str) -> Sequence[HloInstructionProto]:
        """The instructions that a fusion consists of."""
        made = self.find(name)
        if made is None or made.opcode != "fusion" or not made.called_computation_ids:
            return ()
        place = self._outline.places.get(made.called_computation_ids[0])
        return () if place is None else self._computations[place].instructions
