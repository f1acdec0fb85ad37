"""Copies and collectives that run by themselves: from the begin of a start to the end of its done.

The instruction that ends one says in the program which one began it (its operand).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from peakline.tables import Profile
from peakline.timing.device_ops import device_executions
from peakline.timing.device_programs import Key, Programs
from peakline.timing.op_metrics import OpTable

_DONE = "-done"


def with_pairs(profile: Profile, table: OpTable, programs: Programs) -> OpTable:
    """The table with the bytes of such a pair at its end, over the time that both take."""
    pairs: dict[Key, Key] = {}
    for key, op in table.ops.items():
        made = programs.find(key[0], op.name)
        if made is None or not made.opcode.endswith(_DONE) or not made.operands:
            continue
        start = (key[0], made.operands[0])
        if start in table.ops:
            pairs[key] = start
    if not pairs:
        return table
    ops = dict(table.ops)
    spans = _spans(profile, pairs)
    for done, start in pairs.items():
        first, last = ops[start], ops[done]
        if spans.get(done):
            known = last if last.bytes_accessed else first
            ops[done] = replace(
                last, bytes_accessed=known.bytes_accessed, moved=known.moved, span_ps=spans[done]
            )
            ops[start] = replace(first, bytes_accessed=0, moved={})
    return replace(table, ops=ops)


def _spans(profile: Profile, pairs: dict[Key, Key]) -> dict[Key, int]:
    """How long the runs of each pair took together: every end with the last begin before it."""
    found = device_executions(profile)
    places: dict[Key, list[int]] = {}
    for number, op in enumerate(found.ops):
        places.setdefault(op.key, []).append(number)
    spans: dict[Key, int] = {}
    for done, start in pairs.items():
        ends = np.flatnonzero(np.isin(found.op, places.get(done, [])))
        begins = np.flatnonzero(np.isin(found.op, places.get(start, [])))
        for plane in np.unique(found.plane[ends]).tolist():
            own = ends[found.plane[ends] == plane]
            from_ = np.sort(found.start[begins[found.plane[begins] == plane]])
            before = np.searchsorted(from_, found.start[own], side="right") - 1
            known = before >= 0
            whole = found.end[own][known] - from_[before[known]]
            spans[done] = spans.get(done, 0) + int(whole.sum())
    return spans
