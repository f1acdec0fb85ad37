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
        self._is_root = self.instructions.array("is_root")
        self._last_use: dict[int, int] = {}
        self._sources: dict[int, int] = {}
        self._from: dict[int, dict[int, list[int]]] = {}
        self._moved: dict[int, frozenset[int] | None] = {}

    def operands(self, row: int) -> list[int]:
        """The operands of an instruction, in their order."""
        listed: list[int] = self._operand[self._first[row] : self._first[row + 1]].tolist()
        return listed

    def users(self, row: int) -> set[int]:
        """The instructions that read what an instruction made, or hand it to a computation.

        Those that only hand it on (tuples, bitcasts) are passed; one that is its computation's
        result is a user itself.
        """
        result, seen, waiting = set[int](), {row}, [row]
        while waiting:
            one = waiting.pop()
            passes_on = one == row or self.opcodes[one] in _PASSES_ON
            if not passes_on or self._is_root[one]:
                result.add(one)
            if not passes_on:
                continue
            for user in self._direct_users(one) - seen:
                seen.add(user)
                waiting.append(user)
        return result

    def _direct_users(self, row: int) -> set[int]:
        listed = self._by[self._first_user[row] : self._first_user[row + 1]]
        users: set[int] = set(self._user[listed].tolist())
        return users

    def leaves(self, row: int) -> bool:
        """Whether it is the result of its computation, or part of it."""
        return self.last_use(row) == self.order.size

    def source_of(self, row: int) -> int:
        """The instruction that made what ``row`` hands on."""
        seen: dict[int, None] = {}
        while self.opcodes[row] in _PASSES_ON - {"tuple"} and row not in seen:
            if row in self._sources:
                row = self._sources[row]
                break
            seen[row] = None
            listed = self.operands(row)
            if not listed:
                break
            row = listed[0]
        self._sources.update(dict.fromkeys(seen, row))
        return row

    def last_use(self, row: int) -> int:
        """The place of the last instruction that needs it; beyond all where it leaves.

        That of its users, or of theirs where they only hand it on.
        """
        known = self._last_use
        waiting = [(row, False)]
        while waiting:
            one, is_ready = waiting.pop()
            if one in known and not is_ready:
                continue
            users = () if self._is_root[one] else self._direct_users(one)
            if is_ready:
                known[one] = max(known[one], *map(self._held_by, users))
                continue
            # What leads back to itself is held by the others.
            known[one] = self.order.size if self._is_root[one] else -1
            if users:
                waiting.append((one, True))
                waiting += [(user, False) for user in users if self.opcodes[user] in _PASSES_ON]
        return known[row]

    def _held_by(self, user: int) -> int:
        """Up to which place a user needs what it uses."""
        passes_on = self.opcodes[user] in _PASSES_ON
        return self._last_use[user] if passes_on else int(self.order[user])

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
        places = self._places(row).get(operand, [])
        opcode = self.opcodes[row] or ""
        if opcode != "fusion":
            return opcode in _PER_ELEMENT or (opcode == "dynamic-update-slice" and places == [0])
        if row not in self._moved:
            self._moved[row] = self._moved_inside(row)
        moved = self._moved[row]
        return moved is not None and moved.isdisjoint(places)

    def _places(self, row: int) -> dict[int, list[int]]:
        """Which operands of an instruction come from each instruction."""
        if row not in self._from:
            result: dict[int, list[int]] = {}
            self._from[row] = result
            for place, one in enumerate(self.operands(row)):
                result.setdefault(self.source_of(one), []).append(place)
        return self._from[row]

    def _moved_inside(self, fusion: int) -> frozenset[int] | None:
        """The parameters of a fusion that go through something else than element for element; None
        where nothing is known of it.
        """
        parts, numbers = self.parts(fusion), self.instructions.array("parameter_number")
        given = [part for part in parts if self.opcodes[part] == "parameter"]
        # A bit for each parameter that goes into a part.
        reached = {part: 1 << bit for bit, part in enumerate(given)}
        moved = 0
        for part in parts:
            # An operand stands before its users.
            through = 0
            for operand in self.operands(part):
                through |= reached.get(operand, 0)
            if through:
                reached[part] = reached.get(part, 0) | through
                if self.opcodes[part] not in _IN_PLACE - {"broadcast"}:
                    moved |= through
        bits = reversed(f"{moved:b}")
        result = {int(numbers[part]) for part, bit in zip(given, bits, strict=False) if bit == "1"}
        return frozenset(result) if parts else None
