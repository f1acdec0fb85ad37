"""What values of a compiled program are for that have no op of their own.

XLA makes instructions without metadata: copies before what is computed in place, broadcasts of
zeros that a scatter begins with. Their op is that of what reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from peakline.arrays import Int64Array
    from peakline.tables import Columns, Profile
    from peakline.timing.program_answer import LiveBuffer

_STEPS = 4
"""At most so many instructions lie between a value and the op that it is for."""
_ORIGIN = {"name", "op_name", "source_file", "source_line"}


def with_readers(
    profile: Profile, number: int, values: Sequence[LiveBuffer]
) -> tuple[LiveBuffer, ...]:
    """``values`` of the program ``number`` with the op and line of the first instruction with an op
    that reads them, if need be through others; unchanged where none does.
    """
    programs = profile.programs()
    if programs is None:
        return tuple(values)
    listed = programs.read(number, "hlo_instructions", _ORIGIN)
    operands = programs.read(number, "hlo_operands")
    names = listed.names("name")
    places = {name: row for row, name in enumerate(names.to_list())}
    return tuple(
        _with_reader(value, listed, operands, places.get(value.instruction.partition("{")[0]))
        for value in values
    )


def _with_reader(
    value: LiveBuffer, listed: Columns, operands: Columns, row: int | None
) -> LiveBuffer:
    reader = None if row is None else _reader(listed, operands, row)
    if reader is None:
        return value
    (said,) = listed.take(np.array([reader])).to_pylist()
    return replace(
        value,
        op_name=said["op_name"],
        source_file=said["source_file"] or "",
        source_line=said["source_line"],
    )


def _reader(listed: Columns, operands: Columns, row: int) -> int | None:
    has_op = listed.names("op_name").codes >= 0
    reads, read = operands.array("instruction_id"), operands.array("operand_id")
    data = ~operands.array("is_control").astype(np.bool_)
    frontier: Int64Array = np.array([row])
    for _ in range(_STEPS):
        frontier = np.unique(reads[np.isin(read, frontier) & data])
        named = frontier[has_op[frontier]]
        if named.size:
            return int(named[0])
    return None
