"""The same small ops run over and over within a step: a loop over single items."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.timing.ops.in_steps import StepOps
from peakline.timing.ops.loops import Loop, loops_of
from peakline.trace.intervals import covered, union

OFTEN = 100
"""An op repeats when a step runs it so often, ..."""
SHORT_PS = 30 * 10**6
"""... and the median run is no longer than this: about what it takes to run an op at all."""
LONGEST_TURN, TURNS = 8, 16
"""Few ops that follow each other in one order so many times are a loop over single items, ..."""
SMALL_PS = 100 * 10**6
"""... where the median one takes no longer than this. Layers of a model are of more ops."""
APART_PS = 50 * 10**6
"""What lies between two of them, up to this long, is a part of the loop."""


@dataclass(frozen=True)
class TinyOps:
    """``per_step`` runs of ``ops`` (name and times a step, most first), ``events`` in the trace.

    ``loop_ps`` is the time of the loops that they make, ``median_ps`` that of one run. ``loop`` is
    the loop of a graph that most of them are of, None without one.
    """

    per_step: float
    ops: tuple[tuple[str, float], ...]
    loop_ps: int
    median_ps: int
    events: Int64Array
    loop: Loop | None = None


def tiny_ops_of(
    ops: StepOps, is_optimizer: BoolArray, cells: BoolArray | None = None
) -> TinyOps | None:
    """The ops that repeat, None where none does; those of an optimizer, which go from tensor to
    tensor, are not looked at. ``cells`` marks those of a loop over recurrent cells.
    """
    loops, in_loops = loops_of(ops)
    # Other loops of a graph, of recurrent nets or of whole steps, take turns for a reason.
    loop = np.full(ops.event.size, -1, np.int64)
    for number, one in enumerate(loops):
        loop[one.events] = number
    outer = np.flatnonzero(ops.is_outermost & ~is_optimizer & (~in_loops | (loop >= 0)))
    outer = outer[
        np.lexsort((ops.trace.start[ops.event[outer]], ops.trace.lines_of(ops.event[outer])))
    ]
    took = (ops.trace.end[ops.event] - ops.trace.start[ops.event])[outer]
    op = ops.op[outer]
    count = np.bincount(op, minlength=len(ops.keys)) / ops.steps / ops.lanes
    often = np.flatnonzero(count >= OFTEN)
    tiny = [one for one in often.tolist() if float(np.median(took[op == one])) <= SHORT_PS]
    chosen = np.isin(op, tiny)
    line = ops.trace.lines_of(ops.event[outer])
    step = np.searchsorted(ops.begin, ops.trace.start[ops.event[outer]], "right")
    turns = _in_turns(op, line * (ops.steps + 1) + step)
    if cells is not None:
        turns |= cells[outer]
    if turns.any() and float(np.median(took[turns])) <= SMALL_PS:
        chosen |= turns
    chosen |= loop[outer] >= 0
    if not chosen.any():
        return None
    mine = np.zeros(ops.event.size, np.bool_)
    mine[outer[chosen]] = True
    each = np.bincount(op[chosen], minlength=len(ops.keys)) / ops.steps / ops.lanes
    most = [one for one in np.argsort(-each, kind="stable").tolist() if each[one]]
    return TinyOps(
        float(each.sum()),
        tuple((ops.keys[one][0], float(each[one])) for one in most),
        _loops_ps(ops, mine, loop),
        round(float(np.median(took[chosen]))),
        ops.event[mine],
        next((one for one in loops if 2 * one.events[outer].sum() > chosen.sum()), None),
    )


def _in_turns(op: AnyArray, part: AnyArray) -> BoolArray:
    """Which of the ops, in order of time, are in a sequence that repeats within a ``part``: a step
    on a line.
    """
    found = np.zeros(op.size, np.bool_)
    for turn in range(1, LONGEST_TURN + 1):
        same = (op[turn:] == op[:-turn]) & (part[turn:] == part[:-turn])
        edges = np.flatnonzero(np.diff(np.concatenate([[False], same, [False]]).astype(np.int8)))
        for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            if last - first >= (TURNS - 1) * turn:
                found[first : last + turn] = True
    return found


def _loops_ps(ops: StepOps, chosen: BoolArray, loop: Int64Array) -> int:
    """How long the loops last, per lane: short gaps between two runs count in, and between two of
    one loop of a graph any in which no other op runs.
    """
    whole = 0
    for lane in range(ops.lanes):
        mine = ops.lane == lane
        event = ops.event[chosen & mine]
        begin, end = union(ops.trace.start[event], ops.trace.end[event])
        if begin.size:
            near = np.where(begin[1:] - end[:-1] <= APART_PS, begin[1:], end[:-1])
            more = _in_a_row(ops, mine, loop)
            begin, end = union(np.append(begin, more[0]), np.concatenate([near, end[-1:], more[1]]))
        whole += int(covered((begin, end), ops.begin, ops.end).sum())
    return whole // ops.lanes


def _in_a_row(ops: StepOps, mine: BoolArray, loop: Int64Array) -> tuple[Int64Array, Int64Array]:
    """From the begin of an op of a loop to that of the next one, where that is of the same loop
    and step and no other op begins between them.
    """
    if not (loop >= 0).any():
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    at = np.flatnonzero(mine)
    start = ops.trace.start[ops.event[at]]
    order = np.argsort(start, kind="stable")
    start, one = start[order], loop[at[order]]
    step = np.searchsorted(ops.begin, start, "right")
    follows = (one[1:] == one[:-1]) & (one[1:] >= 0) & (step[1:] == step[:-1])
    return start[:-1][follows], start[1:][follows]
