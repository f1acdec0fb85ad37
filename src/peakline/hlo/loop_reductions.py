"""Sums over devices that each turn of a loop adds to what it carries: one after it would do.

A sum of sums may be taken in any order, so what ``carry + all_reduce(x)`` makes in every turn the
sum of x over the turns makes with one reduction. Only results that nothing but that addition reads
count: what a layer of a loop over layers reduces is read by the next op.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline import schema
from peakline.deadline import checked
from peakline.hlo.row_costs import turns_of
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.tables.programs import INSTRUCTIONS, Programs

_REDUCES = frozenset(("all-reduce", "all-reduce-start", "reduce-scatter"))
_HANDS_ON = frozenset(
    "get-tuple-element tuple bitcast copy all-reduce-done convert reshape".split()
)
_ADDS = ("/add", "/add_any")
"""How the names of ops end that a fusion of an addition is for (jax.lax)."""


@dataclass(frozen=True)
class LoopReduction:
    """The reduction ``name`` of ``op_name`` in a loop of ``turns``, in program ``number``."""

    number: int
    name: str
    op_name: str
    turns: int


@once
def loop_reductions(profile: Profile) -> tuple[LoopReduction, ...]:
    """Those of all programs. Raises InputError when the profile cannot be read."""
    programs = profile.programs()
    if programs is None or "hlo_instructions" not in profile.tables:
        return ()
    names = profile.columns("hlo_instructions", frozenset(("module_id", "opcode")))
    codes = names.names("opcode").per_row(_REDUCES.__contains__, np.bool_)
    result: list[LoopReduction] = []
    for number in checked(np.unique(names.array("module_id")[codes]).tolist(), 1):
        result += _of_program(programs, number)
    return tuple(result)


def _of_program(programs: Programs, number: int) -> list[LoopReduction]:
    wanted = frozenset(("name", "opcode", "op_name", "computation_id", "is_root"))
    table = programs.read(number, "hlo_instructions", wanted)
    opcode, op_name, name = (table.names(one) for one in ("opcode", "op_name", "name"))
    of = table.array("computation_id")
    calls = programs.read(number, "hlo_calls")
    called = (calls.array(one).tolist() for one in ("computation_id", "instruction_id"))
    loops = {body: row for body, row in zip(*called, strict=True) if opcode[row] == "while"}
    operands = programs.read(number, "hlo_operands")
    users: dict[int, list[int]] = {}
    reads: dict[int, list[int]] = {}
    for user, operand in zip(
        operands.array("instruction_id").tolist(),
        operands.array("operand_id").tolist(),
        strict=True,
    ):
        users.setdefault(operand, []).append(user)
        reads.setdefault(user, []).append(operand)

    def ends(row: int, links: dict[int, list[int]]) -> set[int]:
        """What reads it, or what it is made of, beyond those that only hand it on."""
        result, seen, waiting = set[int](), {row}, list(links.get(row, ()))
        while waiting:
            one = waiting.pop()
            if one in seen:
                continue
            seen.add(one)
            passes = opcode[one] in _HANDS_ON and links.get(one)
            if passes:
                waiting += links[one]
            else:
                result.add(one)
        return result

    def is_carried(row: int, reduction: int) -> bool:
        """Whether it adds the reduction to what a turn hands to the next, and to nothing else."""
        adds = opcode[row] == "add" or (
            opcode[row] == "fusion" and (op_name[row] or "").endswith(_ADDS)
        )
        made_of = ends(row, reads) - {reduction}
        return (
            adds
            and bool(made_of)
            and {opcode[one] for one in made_of} == {"parameter"}
            and all(opcode[one] == "tuple" for one in ends(row, users))
        )

    result = []
    spans = programs.parts(number, ())[INSTRUCTIONS].spans("@span")
    for row in np.flatnonzero(opcode.per_row(_REDUCES.__contains__, np.bool_)).tolist():
        loop = loops.get(int(of[row]))
        readers = ends(row, users)
        if loop is None or not readers or not all(is_carried(one, row) for one in readers):
            continue
        proto = schema.HloInstructionProto.FromString(spans.bytes(programs.data(number), loop))
        turns = turns_of(proto)
        if turns is None or turns > 1:
            result.append(LoopReduction(number, name[row] or "", op_name[row] or "", turns or 0))
    return result
