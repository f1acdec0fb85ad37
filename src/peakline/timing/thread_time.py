"""What each thread of a host did: the ``thread_time`` table.

A thread is busy while any event of its line runs, and waits while one does that only waits: for a
device, another thread, or input (see `peakline.trace.activity_names`). The self time of an
event is its duration without what the events inside it cover.
"""

from __future__ import annotations

import numpy as np

from peakline.arrays import AnyArray
from peakline.tables import Columns, Names, Profile
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity
from peakline.trace.events import HOST, Trace, nesting_of, trace_of
from peakline.trace.intervals import total, union

_WAITS = (Activity.WAIT, Activity.INPUT_WAIT)


def columns_of(profile: Profile) -> Columns:
    """The ``thread_time`` table: a row per line of a host that has events, in the file's order."""
    trace = trace_of(profile)
    lines = list(trace.lines_on(HOST))
    nesting = nesting_of(profile)
    activity = activity_of(profile)
    count = len(lines)
    numbers = {
        name: np.zeros(count, np.int64)
        for name in ("events", "busy_ps", "idle_ps", "wait_ps", "longest_op_ps")
    }
    longest = np.full(count, -1, np.int32)
    for at, line in enumerate(lines):
        here = line.events
        begin, end, code = trace.start[here], trace.end[here], trace.name.codes[here]
        # What lies in another event adds nothing to the time that is covered.
        outer = nesting.parent[here] < 0
        covered = union(begin[outer], end[outer])
        busy = total(covered)
        waits = np.isin(activity[here], _WAITS)
        own, own_ps = _longest(code, nesting.own_ps[here], trace)
        numbers["events"][at] = line.last - line.first
        numbers["busy_ps"][at] = busy
        numbers["idle_ps"][at] = int(end.max()) - int(begin[0]) - busy
        numbers["wait_ps"][at] = total(union(begin[waits], end[waits])) if waits.any() else 0
        longest[at], numbers["longest_op_ps"][at] = own, own_ps
    return Columns(
        {
            "line_id": np.array([line.line_id for line in lines], np.int64),
            "plane_id": np.array([trace.planes[line.plane].plane_id for line in lines], np.int64),
            "thread": Names.encode([line.name for line in lines]),
            **numbers,
            "longest_op": Names(longest, trace.name.values),
        }
    )


def _longest(code: AnyArray, own: AnyArray, trace: Trace) -> tuple[int, int]:
    """The name with the most self time, the first of equals, and that time."""
    known = code >= 0
    if not known.all():
        code, own = code[known], own[known]
    if not code.size:
        return -1, 0
    names = len(trace.name.values)
    if code.size * 8 < names:
        used, code = np.unique(code, return_inverse=True)
    else:
        used = np.arange(names)
    # Sums in two halves: whole numbers up to 2^53 are exact in what bincount adds with.
    high = np.bincount(code, own >> 32, used.size).astype(np.int64)
    low = np.bincount(code, own & 0xFFFFFFFF, used.size).astype(np.int64)
    sums = (high << 32) + low
    first = int(sums.argmax())
    return int(used[first]), int(sums[first])
