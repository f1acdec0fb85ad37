"""The order in which the instructions of a program run, its loops and calls included."""

from __future__ import annotations

import numpy as np

from peakline.arrays import Int64Array
from peakline.tables.columns import Columns

_CONTROL_FLOW = frozenset(("while", "call", "conditional", "async-start", "async-update"))
"""Opcodes whose called computations run as part of the program; others apply them to elements,
or are fused."""


def program_order(computations: Columns, instructions: Columns, calls: Columns) -> Int64Array:
    """Per instruction its place in the order of the whole program, -1 for what is fused or applied.

    The instructions of a loop's condition and body come before the loop itself, once each
    (``FlattenSchedule`` in ``xla/hlo/utils/hlo_live_range.cc``). A computation without a schedule
    runs in the order of the file. ``instructions`` needs ``computation_id``, ``opcode`` and
    ``schedule_index``; all three tables are those of one program.
    """
    of = instructions.array("computation_id")
    entry = np.flatnonzero(computations.array("is_entry"))
    place = np.full(of.size, -1, np.int64)
    if not entry.size:
        return place
    order = np.lexsort((instructions.array("schedule_index"), of))
    bounds = np.searchsorted(of[order], np.arange(computations.rows + 1))
    runs = instructions.names("opcode").per_row(_CONTROL_FLOW.__contains__, np.bool_)
    is_loop = instructions.names("opcode").per_row("while".__eq__, np.bool_)
    caller, called = calls.array("instruction_id"), calls.array("computation_id")
    first_call = np.searchsorted(caller, np.arange(of.size + 1))
    rows: list[Int64Array] = []
    seen: set[int] = set()
    # What is still to do: computations to begin, and of those that have begun the instructions, the
    # calls among them, and from where on.
    waiting: list[int | tuple[Int64Array, Int64Array, int, int]] = [int(entry[0])]
    while waiting:
        one = waiting.pop()
        if isinstance(one, int):
            if one in seen:
                continue
            seen.add(one)
            listed = order[bounds[one] : bounds[one + 1]]
            one = listed, np.flatnonzero(runs[listed]), 0, 0
        listed, stops, done, at = one
        if at == stops.size:
            rows.append(listed[done:])
            continue
        stop = int(stops[at])
        rows.append(listed[done:stop])
        waiting.append((listed, stops, stop, at + 1))
        row = int(listed[stop])
        inside = called[first_call[row] : first_call[row + 1]].tolist()
        # A loop's condition, listed behind its body, runs first.
        waiting += inside if is_loop[row] else inside[::-1]
    every = np.concatenate(rows)
    place[every] = np.arange(every.size)
    return place
