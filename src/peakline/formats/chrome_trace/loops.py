"""Turns of a training loop in PyTorch's traces: what marks them, and which are not whole."""

from __future__ import annotations

import re
from functools import reduce

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.formats.chrome_trace.trace import Trace
from peakline.formats.common.annotations import outermost, turns
from peakline.tables.columns import Names

_ANNOTATION = "user_annotation"
_OPERATORS = ("cpu_op", "Operator")
_NUMBER = re.compile(r"(?<![#\d])[#\d]++$")
_FEWEST = 2
"""Of so many steps of a name the last can be compared with others."""
_FRAMEWORK = re.compile(
    r"[^#]*#|(?:nccl|gloo|mpi|ucc|c10d|aten|torch|autograd|ProcessGroup|PyTorch|FSDP|inductor|triton"
    r"|DistributedDataParallel|Torch-Compiled|CompiledFunction|\[pl\])(?![a-z_])"
)
"""Annotations that PyTorch and its libraries make themselves."""


def annotated(trace: Trace) -> Int64Array:
    """The rows of the annotations that a program made once a turn of its loop.

    Those of one thread that lie in no other one, whose name comes twice or more and is neither the
    framework's nor that of a part of a turn; of several threads of a process the one with the
    longest time. What several threads do is no loop of one, but requests that they serve.
    """
    events, found = trace.events, trace.found
    code = found.categories.code_of(_ANNOTATION)
    rows = np.flatnonzero((events.category == code) & events.timed & (events.duration > 0))
    best: dict[int, tuple[int, AnyArray]] = {}
    values = found.names.values
    for line in np.unique(events.line[rows]).tolist():
        own = rows[events.line[rows] == line]
        own = outermost(own, events.start, events.duration)
        own = turns(own, Names(events.name[own], values), _FRAMEWORK.match)
        plane = int(trace.planes.plane_of_line[line])
        elsewhere = trace.planes.plane_of_line[events.line[rows]] == plane
        elsewhere &= events.line[rows] != line
        own = own[~np.isin(events.name[own], events.name[rows[elsewhere]])]
        length = int(events.duration[own].sum())
        if length > best.get(plane, (0, own))[0]:
            best[plane] = length, own
    return np.concatenate([np.zeros(0, np.int64), *(own for _, own in best.values())])


def cut_off(trace: Trace, rows: AnyArray) -> BoolArray:
    """Which of the steps ``rows``, in order of time, the record does not hold whole.

    One that begins and never ends; and the last of its thread and name if what it ran is only the
    begin of what every one before it ran, or lacks an operator that each of two or more before it
    has: a loop was left in the middle of it, or ended before the profiler's schedule did.
    """
    events = trace.events
    found: BoolArray = trace.is_open[rows]
    values = trace.found.names.values
    codes = [trace.found.categories.code_of(name) for name in _OPERATORS]
    # Before PyTorch 1.11 its own marks (``ProfilerStep#5``) have the category of operators.
    is_mark = np.array([*("#" in value for value in values), False], np.bool_)
    is_op = np.isin(events.category, codes) & events.timed & ~is_mark[events.name]
    like: dict[tuple[int, str], list[int]] = {}
    for place, row in enumerate(rows.tolist()):
        name = int(events.name[row])
        stem = _NUMBER.sub("", values[name]) if name >= 0 else ""
        like.setdefault((int(events.line[row]), stem), []).append(place)
    ops: dict[int, Int64Array] = {}
    for (line, _), places in like.items():
        if len(places) < _FEWEST:
            continue
        if line not in ops:
            own = np.flatnonzero(is_op & (events.line == line))
            ops[line] = outermost(own, events.start, events.duration)
        first, last = _bounds(trace, ops[line], rows[places])
        if int((last - first).sum()) > 2 * ops[line].size:
            continue  # They lie in each other: what each runs says nothing about the next.
        names = events.name[ops[line]]
        *before, ran = [names[a:b] for a, b in zip(first.tolist(), last.tolist(), strict=True)]
        begins_so = all(
            one.size > ran.size and np.array_equal(one[: ran.size], ran) for one in before
        )
        lacks = len(before) > 1 and np.setdiff1d(reduce(np.intersect1d, before), ran).size > 0
        found[places[-1]] |= begins_so or lacks
    return found


def _bounds(trace: Trace, ops: Int64Array, rows: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Of the outermost operators ``ops`` of a thread, in order: where those begin that each of the
    steps ``rows`` ran, and where they end.
    """
    events = trace.events
    start, begin = events.start[ops], events.start[rows]
    end = begin + events.duration[rows]
    return np.searchsorted(start, begin), np.searchsorted(start, end)
