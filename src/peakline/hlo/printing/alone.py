"""Instructions out of their computations, one line each, as XProf shows an op
(``UncachedExpression`` in ``utils/hlo_module_utils.h`` of openxla/xprof).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING

from peakline.hlo.printing.module import ALONE, printer_of

if TYPE_CHECKING:
    from peakline.hlo.messages import ModuleParts
    from peakline.hlo.printing.instructions import Printer
    from peakline.schema import HloInstructionProto

_LONGEST = 1_000_000


class InstructionLines:
    """The instructions of a program by name; of several with one name the first counts."""

    def __init__(self, parts: ModuleParts) -> None:
        self._parts = parts
        self._printer = printer_of(parts, ALONE)
        self._inside: dict[int, Printer] = {}
        self._of: dict[str, tuple[HloInstructionProto, int]] = {}
        self._bodies: dict[int, Sequence[HloInstructionProto]] = {}
        for place, computation in enumerate(parts.computations):
            self._bodies[computation.id] = computation.instructions
            for made in computation.instructions:
                self._of.setdefault(made.name, (made, place))

    def find(self, name: str) -> HloInstructionProto | None:
        """The instruction of a name."""
        found = self._of.get(name)
        return None if found is None else found[0]

    def text(self, name: str) -> str:
        """Its line, of which a million letters are shown; empty for a name that there is not."""
        if name not in self._of:
            return ""
        made, place = self._of[name]
        if place not in self._inside:
            self._inside[place] = copy(self._printer)
            self._inside[place].enter(self._parts.computations[place])
        line = "".join(self._inside[place].instruction(made, ""))
        return line.removesuffix("\n")[:_LONGEST]

    def parts(self, name: str) -> Sequence[HloInstructionProto]:
        """The instructions that a fusion consists of."""
        made = self.find(name)
        if made is None or made.opcode != "fusion" or not made.called_computation_ids:
            return ()
        return self._bodies.get(made.called_computation_ids[0], ())
