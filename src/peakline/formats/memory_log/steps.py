"""The steps of a memory log."""

from __future__ import annotations

import numpy as np

from peakline.arrays import Int64Array
from peakline.formats.memory_log.records import Records
from peakline.kernels.memory_log_layout import STEP, TENSOR_DEALLOCATION
from peakline.tables.columns import Columns, Names
from peakline.tables.tables import empty_columns

UNKNOWN_STEP = -6

SPECIAL_STEPS = {
    -1: "constant folding",
    -2: "op kernel construction",
    -3: "external tensor allocation",
    -4: "network buffer",
    -5: "proto from GPU memory",
    UNKNOWN_STEP: "unknown",
}
"""Step ids that stand for work outside any step (log_memory.h). Every other id is a step's own."""

_FUNCTION_RUN = -(1 << 32)
"""Ids below are those of runs of functions: random 64-bit ones, negative since no session counts
so. A constant that later releases may add is not so far from 0."""


def steps_of(records: Records, time_ps: Int64Array) -> Columns:
    """One row per step, in the order in which they begin.

    A step lasts from the first to the last record that names it; a second MemoryLogStep with
    the same id begins another. Its name is the handle of its MemoryLogStep, else what the
    special id stands for, ``run 3`` for the third run of a function, else the id.
    """
    rows = np.flatnonzero(records.kind != TENSOR_DEALLOCATION)
    if not rows.size:
        return empty_columns("steps")
    ids, which = np.unique(records.step[rows], return_inverse=True)
    # By step, in file order within it.
    order = np.argsort(which, kind="stable")
    rows, which = rows[order], which[order]
    begins = np.ones(rows.size, np.bool_)
    begins[1:] = which[1:] != which[:-1]
    told = records.kind[rows] == STEP
    count = np.cumsum(told)
    own = count - (count - told)[np.flatnonzero(begins)][np.cumsum(begins) - 1]
    begins |= told & (own > 1)

    first = np.flatnonzero(begins)
    last = np.append(first[1:], rows.size) - 1
    number = ids[which[first]]
    handle = np.full(first.size, -1, np.int64)
    told_rows = np.flatnonzero(told)
    handle[np.searchsorted(first, told_rows, side="right") - 1] = records.op[rows[told_rows]]
    by_start = np.argsort(rows[first], kind="stable")
    number, handle = number[by_start], handle[by_start]
    run = np.cumsum(number < _FUNCTION_RUN).tolist()
    names = [
        (records.texts[text] if text >= 0 else "")
        or (f"run {order}" if step < _FUNCTION_RUN else SPECIAL_STEPS.get(step, str(step)))
        for step, text, order in zip(number.tolist(), handle.tolist(), run, strict=True)
    ]
    return Columns(
        {
            "step_id": number.astype(np.int64),
            "name": Names.encode(names),
            "start_ps": time_ps[rows[first]][by_start],
            "end_ps": time_ps[rows[last]][by_start],
        }
    )
