"""The line of the program that instructions of compiled programs come from."""

from __future__ import annotations

import numpy as np

from peakline.arrays import BoolArray
from peakline.tables import Profile
from peakline.tables.joins import summed
from peakline.timing.op_stats_columns import op_stats_of
from peakline.timing.step_ops import StepOps

_LARGEST = 64 << 20
"""Bytes of programs that are looked through for lines."""


def source_of(profile: Profile, ops: StepOps, chosen: BoolArray) -> tuple[str, int]:
    """File and line that most of the time of the ``chosen`` executions comes from; empty and 0
    where they are no instructions, or nothing says it.

    Raises InputError when the profile cannot be read.
    """
    mine = np.flatnonzero(chosen & ops.is_hlo)
    programs = profile.programs()
    if not mine.size or programs is None:
        return "", 0
    if sum(len(programs.data(number)) for number in range(len(programs))) > _LARGEST:
        return "", 0
    event = ops.event[mine]
    program = op_stats_of(profile)["program_id"].integers_at(ops.trace.rows(event))
    pairs = np.stack([program, ops.trace.name.codes[event].astype(np.int64)])
    distinct, place = np.unique(pairs, axis=1, return_inverse=True)
    totals = summed(place.ravel(), ops.trace.end[event] - ops.trace.start[event], distinct.shape[1])
    number_of = {programs.program_id(number): number for number in range(len(programs))}
    columns = frozenset(("module_id", "name", "source_file", "source_line"))
    table = profile.columns("hlo_instructions", columns)
    names, files = table.names("name"), table.names("source_file")
    for best in np.argsort(-totals, kind="stable").tolist():
        identity, code = distinct[:, best].tolist()
        number = number_of.get(identity % 2**64)
        if number is None or code < 0:
            continue
        same = names.codes == names.code_of(ops.trace.name.values[code])
        rows = np.flatnonzero(same & (table.array("module_id") == number))
        for row in rows.tolist():
            if files[row]:
                return files[row] or "", int(table.array("source_line")[row])
    return "", 0
