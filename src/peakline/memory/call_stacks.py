"""The call stacks of allocations, frame by frame."""

from __future__ import annotations

import numpy as np

from peakline.arrays import AnyArray
from peakline.tables.columns import Columns

Frame = tuple[str, str, int]
"""Function, file and line; empty and 0 where they are not known."""


def frames_of(stacks: Columns, wanted: AnyArray) -> dict[int, list[Frame]]:
    """The frames of each of the stacks ``wanted`` of the table ``stacks``, the outermost first."""
    rows = np.flatnonzero(np.isin(stacks.array("stack_id"), wanted))
    table = stacks.take(rows[np.argsort(-stacks.array("depth")[rows], kind="stable")])
    found: dict[int, list[Frame]] = {}
    for one in table.to_pylist():
        frame = one["function"] or "", one["file"] or "", one["line"] or 0
        found.setdefault(one["stack_id"], []).append(frame)
    return found
