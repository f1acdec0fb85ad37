"""Compiled programs as graphs; the computations of each but for its entry are functions.

So what shows a graph of ops shows a program too: an instruction is a node whose op is its opcode,
an operand an edge.
"""

from __future__ import annotations

import numpy as np

from peakline.arrays import Int64Array
from peakline.tables import Columns, Names, Profile
from peakline.tables.tables import columns_of_rows

KIND = "hlo"
"""What the table ``graphs`` calls a compiled program."""


def labels_of(profile: Profile) -> list[str]:
    """What the graph of each program is called: its name, with the id in parentheses."""
    programs = profile.programs()
    return [] if programs is None else [programs.label(one) for one in range(len(programs))]


def columns_of(profile: Profile) -> Columns:
    """The table ``graphs`` of the profile's programs.

    Raises InputError when the profile cannot be read.
    """
    modules = profile.columns("hlo_modules", frozenset(("module_id",)))
    computations = profile.columns("hlo_computations")
    entry = computations.array("is_entry")
    of = computations.array("module_id")
    sizes = computations.array("instructions")
    functions = np.bincount(of[~entry], minlength=modules.rows)
    nodes = np.zeros(modules.rows, np.int64)
    np.add.at(nodes, of[entry], sizes[entry])
    return columns_of_rows(
        "graphs",
        [
            (label, KIND, "", 0, 0, "", 0, count, inside)
            for label, count, inside in zip(
                labels_of(profile), nodes.tolist(), functions.tolist(), strict=True
            )
        ],
    )


def function_of(profile: Profile, computation: Int64Array) -> Names:
    """The function in whose body each computation's instructions stand; null for an entry."""
    computations = profile.columns("hlo_computations")
    names = computations.names("name").take(computation)
    entry = computations.array("is_entry")[computation]
    return Names(np.where(entry, np.int32(-1), names.codes), names.values)
