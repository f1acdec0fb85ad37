"""The instructions of a program by name: each is read from its bytes when it is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from peakline import schema
from peakline.tables.programs import INSTRUCTIONS

if TYPE_CHECKING:
    from peakline.schema import HloInstructionProto
    from peakline.tables.programs import Programs

_WANTED = frozenset(("name", "computation_id"))


class InstructionIndex:
    """Where the instructions of a program are; they are known by their rows in
    ``hlo_instructions``.
    """

    def __init__(self, programs: Programs, number: int) -> None:
        self._buffer = programs.data(number)
        self._spans = programs.parts(number, ())[INSTRUCTIONS].spans("@span")
        listed = programs.read(number, "hlo_instructions", _WANTED)
        self._names = listed.names("name")
        self._computation = listed.array("computation_id")
        hashes = (hash(self._names[row]) for row in range(listed.rows))
        found = np.fromiter(hashes, np.int64, listed.rows)
        # Of hashes alone: the names of a million are more than all else.
        self._order = np.argsort(found, kind="stable").astype(np.int32)
        self._hashes = found[self._order]
        links = programs.read(number, "hlo_operands")
        self._operand, self._is_control = links.array("operand_id"), links.array("is_control")
        rows = np.arange(listed.rows + 1)
        self._begin = np.searchsorted(links.array("instruction_id"), rows)

    def names(self) -> dict[str, None]:
        """All names, in the order of the instructions."""
        return dict.fromkeys(name or "" for name in self._names.to_list())

    def row(self, name: str) -> int | None:
        """The first instruction of a name."""
        low, high = (
            int(np.searchsorted(self._hashes, hash(name), side)) for side in ("left", "right")
        )
        rows = self._order[low:high].tolist()
        return next((row for row in rows if self.name(row) == name), None)

    def name(self, row: int) -> str:
        """What an instruction is called."""
        return self._names[row] or ""

    def computation(self, row: int) -> int:
        """The place of the computation that an instruction is of."""
        return int(self._computation[row])

    def inputs(self, row: int, *, control: bool) -> list[int]:
        """The operands of an instruction, or those that must have run before."""
        links = slice(self._begin[row], self._begin[row + 1])
        rows: list[int] = self._operand[links][self._is_control[links] == control].tolist()
        return rows

    def message(self, row: int) -> HloInstructionProto:
        """The message of an instruction.

        Raises DecodeError where it is damaged.
        """
        return schema.HloInstructionProto.FromString(self._spans.bytes(self._buffer, row))
