"""Operands of compiled programs as the edges of graphs."""

from __future__ import annotations

import numpy as np

from peakline.hlo.graphs import function_of, labels_of
from peakline.tables import Columns, Names, Profile

_WANTED = frozenset(("module_id", "computation_id", "name"))


def columns_of(profile: Profile) -> Columns:
    """The table ``edges`` of the profile's programs, a row per operand or instruction to wait for.

    Raises InputError when the profile cannot be read.
    """
    operands = profile.columns("hlo_operands")
    table = profile.columns("hlo_instructions", _WANTED)
    user, source = operands.array("instruction_id"), operands.array("operand_id")
    control = operands.array("is_control")
    names = table.names("name")
    graphs = Names.encode(labels_of(profile))
    function = function_of(profile, table.array("computation_id")[user])
    # What names no output of its source would be an argument of the function.
    output = Names(np.where(function.codes >= 0, np.int32(0), np.int32(-1)), [""])
    return Columns(
        {
            "graph": graphs.take(table.array("module_id")[user]),
            "source": names.take(source),
            "source_output": np.where(control, -1, 0),
            "target": names.take(user),
            "target_input": operands.array("place"),
            "is_control": control,
            "function": function,
            "source_argument": output,
            "input": Names.constant(None, operands.rows),
        }
    )
