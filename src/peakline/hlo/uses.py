"""What each value of a program is made of and used by."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from peakline.arrays import Int64Array
from peakline.formats.hlo_proto.categories import ELEMENTWISE
from peakline.tables.columns import Columns

if TYPE_CHECKING:
    from peakline.hlo.memory import ProgramMemory
    from peakline.tables.programs import Programs

_PASSES_ON = frozenset(("bitcast", "get-tuple-element", "tuple", "opt-barrier", "domain"))
"""Opcodes that hand on memory instead of filling some."""
_PER_ELEMENT = ELEMENTWISE - {"rng"}
_CHEAP = _PER_ELEMENT | frozenset(
    "bitcast broadcast constant concatenate dynamic-slice get-tuple-element iota pad parameter "
    "reshape reverse slice transpose tuple".split()
)
_IN_PLACE = _PER_ELEMENT | {"parameter", "constant", "broadcast", "tuple", "get-tuple-element"}
_REDUCING = frozenset(("reduce", "dot"))
_WANTED = frozenset(
    "name opcode fusion_kind computation_id op_name source_file source_line shape layout bytes "
    "parameter_number is_root".split()
)


class Uses:
    """Operands and users of a program's instructions.

    ``order`` is the place of each in the order of the program, as `ProgramMemory.order` gives it.
    """

    def __init__(self, programs: Programs, memory: ProgramMemory) -> None:
        self._programs, self._number = programs, memory.number
        self.order = memory.order
        self.instructions: Columns = programs.read(memory.number, "hlo_instructions", _WANTED)
        self.opcodes = self.instructions.names("opcode")
        operands = programs.read(memory.number, "hlo_operands")
        data = ~operands.array("is_control")
        self._user = operands.array("instruction_id")[data]
        self._operand = operands.array("operand_id")[data]
        rows = np.arange(self.instructions.rows + 1)
        self._first = np.searchsorted(self._user, rows)
        self._by = np.argsort(self._operand, kind="stable")
        self._first_user = np.searchsorted(self._operand[self._by], rows)

    def operands(self, row: int) -> list[int]:
        """The operands of an instruction, in their order."""
        listed: list[int] = self._operand[self._first[row] : self._first[row + 1]].tolist()
        return listed

    def users(self, row: int) -> set[int]:
        """The instructions that read what an instruction made, or hand it to a computation.

        Those that only hand it on (tuples, bitcasts) are passed; one that is its computation's
        result is a user itself.
        """
        found, seen, waiting = set[int](), {row}, [row]
        is_root = self.instructions.array("is_root")
        while waiting:
            one = waiting.pop()
            passes_on = one == row or self.opcodes[one] in _PASSES_ON
            if not passes_on or is_root[one]:
                found.add(one)
            if not passes_on:
                continue
            listed = self._by[self._first_user[one] : self._first_user[one + 1]]
            for user in set(self._user[listed].tolist()) - seen:
                seen.add(user)
                waiting.append(user)
        return found

    def leaves(self, row: int) -> bool:
        """Whether it is the result of its computation, or part of it."""
        is_root = self.instructions.array("is_root")
        return any(is_root[user] and self._only_passes_on(user, row) for user in self.users(row))

    def _only_passes_on(self, user: int, row: int) -> bool:
        return user == row or self.opcodes[user] in _PASSES_ON

    def source_of(self, row: int) -> int:
        """The instruction that made what ``row`` hands on."""
        seen = set[int]()
        while self.opcodes[row] in _PASSES_ON - {"tuple"} and row not in seen:
            seen.add(row)
            listed = self.operands(row)
            if not listed:
                break
            row = listed[0]
        return row

    def last_use(self, row: int) -> int:
        """The place of the last instruction that needs it; beyond all where it leaves."""
        if self.leaves(row):
            return self.order.size
        return max((int(self.order[user]) for user in self.users(row)), default=-1)

    # What instructions do.

    @cached_property
    def _inside(self) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array]:
        """Calls by caller, and the instructions by their computation."""
        calls = self._programs.read(self._number, "hlo_calls")
        of = self.instructions.array("computation_id")
        by = np.argsort(of, kind="stable")
        return calls.array("instruction_id"), calls.array("computation_id"), by, of[by]

    def parts(self, row: int) -> list[int]:
        """The instructions of the computation of a fusion; empty for others."""
        if self.opcodes[row] != "fusion":
            return []
        caller, called, by, of = self._inside
        at = int(np.searchsorted(caller, row))
        if at == caller.size or caller[at] != row:
            return []
        begin, end = np.searchsorted(of, [called[at], called[at] + 1])
        listed: list[int] = by[begin:end].tolist()
        return listed

    def is_cheap(self, row: int) -> bool:
        """Whether it is little work to make it again: each element of few, no sums."""
        opcode = self.opcodes[row] or ""
        if opcode != "fusion":
            return opcode in _CHEAP and opcode not in {"parameter", "constant"}
        listed = self.parts(row)
        return bool(listed) and all(self.opcodes[part] in _CHEAP for part in listed)

    def reduces(self, row: int) -> bool:
        """Whether it adds up what it reads, or is a matrix product: it can do that in pieces."""
        if self.opcodes[row] in _REDUCING:
            return True
        listed = [self.opcodes[part] or "" for part in self.parts(row)]
        allowed = _CHEAP | _REDUCING
        return any(one in _REDUCING for one in listed) and all(one in allowed for one in listed)

    def works_in_place(self, row: int, operand: int) -> bool:
        """Whether its result can take the place of what ``operand`` made: element for element.

        Within a fusion all that the operand goes through must be so
        (``HloDataflowAnalysis::CanShareOperandBufferWithUser``).
        """
        places = [n for n, one in enumerate(self.operands(row)) if self.source_of(one) == operand]
        opcode = self.opcodes[row] or ""
        if opcode != "fusion":
            return opcode in _PER_ELEMENT or (opcode == "dynamic-update-slice" and places == [0])
        numbers = self.instructions.array("parameter_number")
        parts = self.parts(row)
        reached = {
            part
            for part in parts
            if self.opcodes[part] == "parameter" and int(numbers[part]) in places
        }
        for part in parts:
            # An operand stands before its users.
            if not reached.isdisjoint(self.operands(part)):
                reached.add(part)
                if self.opcodes[part] not in _IN_PLACE - {"broadcast"}:
                    return False
        return bool(parts)
