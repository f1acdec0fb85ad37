"""What values of a compiled program are for that have no op of their own.

XLA makes instructions without metadata: copies before what is computed in place, broadcasts of
zeros that a scatter begins with. Their op is that of what reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from peakline.hlo.uses import Uses
    from peakline.tables import Profile
    from peakline.timing.program_answer import LiveBuffer, ProgramAnswer

_STEPS = 4
"""At most so many instructions lie between a value and the op that it is for."""


def with_readers(
    profile: Profile, program: ProgramAnswer, values: Sequence[LiveBuffer]
) -> tuple[LiveBuffer, ...]:
    """``values`` of a program with the op and line of the first instruction with an op that reads
    them, if need be through others; unchanged where none does.
    """
    from peakline.hlo.uses import Uses

    programs = profile.programs()
    if programs is None:
        return tuple(values)
    uses = Uses(programs, program.memory)
    names = uses.instructions.names("name").to_list()
    places = {name: row for row, name in enumerate(names)}
    return tuple(
        _with_reader(value, uses, places.get(value.instruction.partition("{")[0]))
        for value in values
    )


def _with_reader(value: LiveBuffer, uses: Uses, row: int | None) -> LiveBuffer:
    reader = None if row is None else _reader(uses, row)
    if reader is None:
        return value
    line = uses.instructions.array("source_line")[reader]
    return replace(
        value,
        op_name=uses.instructions.names("op_name")[reader] or "",
        source_file=uses.instructions.names("source_file")[reader] or "",
        source_line=int(line) if uses.instructions.is_valid("source_line")[reader] else None,
    )


def _reader(uses: Uses, row: int) -> int | None:
    has_op = uses.instructions.names("op_name").codes >= 0
    frontier = {row}
    for _ in range(_STEPS):
        frontier = {user for one in frontier for user in uses.users(one)} - frontier
        named = [user for user in frontier if has_op[user]]
        if named:
            return min(named)
    return None
