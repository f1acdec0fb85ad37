"""Instructions of compiled programs as the nodes of graphs."""

from __future__ import annotations

import numpy as np

from peakline.hlo.graphs import function_of, labels_of
from peakline.tables import Columns, Names, Profile

_WANTED = frozenset(("module_id", "computation_id", "name", "opcode"))


def columns_of(profile: Profile) -> Columns:
    """The table ``nodes`` of the profile's programs, a row per instruction in their order.

    Raises InputError when the profile cannot be read.
    """
    table = profile.columns("hlo_instructions", _WANTED)
    graphs = Names.encode(labels_of(profile))
    none = Names.constant(None, table.rows)
    return Columns(
        {
            "graph": graphs.take(table.array("module_id")),
            "name": table.names("name"),
            "op": table.names("opcode"),
            "device": Names(np.zeros(table.rows, np.int32), [""]),
            "function": function_of(profile, table.array("computation_id")),
            "original_nodes": none,
            "original_functions": none,
            "full_type": none,
        }
    )
