"""Ops whose first allocation comes late: what a wait for memory looks like in a trace alone.

Apart from what the records of memory say of it (`waits`), which most profiles need not be read for.
"""

from __future__ import annotations

import numpy as np

from peakline.arrays import AnyArray, Int64Array
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.trace.events import Trace, nesting_of, trace_of

LATE_PS = 5 * 10**9
"""A thread that does nothing in an op for longer than this before its first allocation may have
waited.
"""
_EVENT = "MemoryAllocation"
_MOST = 10_000


@once
def late_allocations(profile: Profile) -> list[tuple[int, int, int]]:
    """Line, time and begin of the wait, of first allocations that come late.

    Raises InputError when the profile cannot be read.
    """
    trace = trace_of(profile)
    if trace.source != "events" or _EVENT not in trace.name.values:
        return []
    event = np.flatnonzero(trace.name.codes == trace.name.code_of(_EVENT))
    parent = nesting_of(profile).parent[event]
    inside = parent >= 0
    event, parent = event[inside], parent[inside]
    _, first = np.unique(parent, return_index=True)
    event, parent = event[first], parent[first]
    is_late = trace.start[event] - trace.start[parent] > LATE_PS
    event, parent = event[is_late], parent[is_late]
    begin = _idle_since(trace, nesting_of(profile).parent, event, parent)
    is_late = trace.start[event] - begin > LATE_PS
    event, begin = event[is_late], begin[is_late]
    line_ids = [trace.lines[place].line_id for place in trace.lines_of(event).tolist()]
    return list(zip(line_ids, trace.start[event].tolist(), begin.tolist(), strict=True))[:_MOST]


def _idle_since(trace: Trace, parents: AnyArray, event: AnyArray, parent: AnyArray) -> Int64Array:
    """Since when nothing ran in ``parent`` before each ``event`` in it: the end of the child before
    it, or the begin of the parent.
    """
    # The events of a line are in order of time: the one before is the parent, or in that child.
    before = event - 1
    while (deeper := parents[before] > parent).any():
        before[deeper] = parents[before[deeper]]
    is_child = parents[before] == parent
    return np.where(is_child, trace.end[before], trace.start[parent])
