"""Reads of values in every step: those that wait for the device, with how long it is idle after
them, and those one by one (``float(tensor)``, ``tensor.item()``).

PyTorch computes the value of a tensor on the CPU in ``aten::item``, which waits for all that was
launched before (pytorch.org/docs/stable/generated/torch.Tensor.item.html). Between two of them only
the few ops run that make the next value, so nothing runs beside anything else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.tables import Profile
from peakline.timing.frame_work import FrameWork, Idle, callee_title
from peakline.timing.ops.in_steps import StepOps
from peakline.timing.steps.facts import steps_at
from peakline.trace.autograd import NODE
from peakline.trace.calls import Call
from peakline.trace.events import HOST
from peakline.trace.frames import Frame, frame_of
from peakline.trace.intervals import covered, union

_COPIES = re.compile(r"[HD]2[HD] Dispatch$|BufferFromHost|TransferLiteral(?:To|From)Device")
"""Names of xla/pjrt/cpu and of common_pjrt_client."""


@dataclass(frozen=True)
class Transfers:
    """How long such copies take of the steps (ps), what most of it is called, and how many a step
    has.
    """

    ps: int
    name: str
    per_step: float


def transfers_of(ops: StepOps) -> Transfers | None:
    """The copies in the steps, or in the whole profile; None without any."""
    trace = ops.trace
    wanted = [_COPIES.search(name) is not None for name in trace.name.values]
    mask = np.array([*wanted, False], np.bool_)
    events = np.flatnonzero(mask[trace.name.codes] & trace.within(trace.lines_on(HOST)))
    at = np.searchsorted(ops.begin, trace.start[events], "right") - 1
    inside = (at >= 0) & (trace.start[events] < ops.end[np.maximum(at, 0)])
    events = events[inside]
    if not events.size:
        return None
    spans = union(trace.start[events], trace.end[events])
    codes = trace.name.codes[events]
    most = int(np.bincount(codes, trace.end[events] - trace.start[events]).argmax())
    whole = int(covered(spans, ops.begin, ops.end).sum())
    return Transfers(whole, trace.name.values[most], events.size / ops.steps)


READS = frozenset(("aten::item", "aten::_local_scalar_dense", "aten::is_nonzero"))
MANY = 16
"""So many reads in a step are a loop over values; a loss, an accuracy and a check are few."""
LONGEST = 8
"""So many ops make one value, between two reads."""


@dataclass(frozen=True, eq=False)
class ValueReads:
    """``per_step`` reads, and ``loop_ps`` from one to the next where only ``ops`` (most often run
    first) lie between, per lane; ``events`` are the reads and those ops in the trace.
    """

    per_step: float
    loop_ps: int
    ops: tuple[tuple[str, float], ...]
    events: Int64Array


def value_reads_of(profile: Profile, ops: StepOps, is_optimizer: BoolArray) -> ValueReads | None:
    """The reads that follow each other in the steps; None where a step has few."""
    if not ops.has_steps:
        return None
    is_read = np.array([name in READS for name, _ in ops.keys], np.bool_)
    outer = np.flatnonzero(ops.is_outermost & ~is_optimizer)
    trace, event = ops.trace, ops.event[outer]
    line, start = trace.lines_of(event), trace.start[event]
    order = np.lexsort((start, line))
    outer, event, line, start = outer[order], event[order], line[order], start[order]
    step = steps_at(profile, start)
    reads = np.flatnonzero(is_read[ops.op[outer]])
    if reads.size < MANY * ops.steps * ops.lanes:
        return None
    before, after = reads[:-1], reads[1:]
    follows = (after - before <= LONGEST + 1) & (line[after] == line[before])
    follows &= (step[after] == step[before]) & ~_has_node(ops, outer, before, after)
    before, after = before[follows], after[follows]
    per_step = after.size / ops.steps / ops.lanes
    if per_step < MANY - 1:
        return None
    spans = union(trace.end[event[before]], trace.end[event[after]])
    lost = int(covered(spans, ops.begin, ops.end).sum()) // ops.lanes
    mine = _between(outer.size, before, after)
    each = np.bincount(ops.op[outer[mine]], minlength=len(ops.keys)) / ops.steps / ops.lanes
    most = [k for k in np.argsort(-each, kind="stable").tolist() if each[k]]
    named = tuple((ops.keys[k][0], float(each[k])) for k in most)
    return ValueReads(reads.size / ops.steps / ops.lanes, lost, named, np.sort(event[mine]))


def _has_node(ops: StepOps, outer: AnyArray, before: Int64Array, after: Int64Array) -> BoolArray:
    """Whether a backward pass lies between two reads."""
    names = np.array([name.startswith(NODE) for name, _ in ops.keys], np.bool_)
    count = np.concatenate([[0], np.cumsum(names[ops.op[outer]])])
    result: BoolArray = count[after] > count[before]
    return result


def _between(size: int, before: Int64Array, after: Int64Array) -> BoolArray:
    """Which ops lie after one read, up to the next."""
    change = np.zeros(size + 1, np.int64)
    np.add.at(change, before + 1, 1)
    np.add.at(change, after + 1, -1)
    result: BoolArray = np.cumsum(change)[:-1] > 0
    return result


LONG = 0.02
"""A read waits when it takes so much of a step."""


@dataclass(frozen=True, eq=False)
class Reads:
    """``callee`` is what reads, ``frame`` the function of the program that calls it (None where
    none is recorded), ``work`` what it does in the idle time then. ``in_steps`` is the share of
    steps with such a read, ``idle_ps`` how long nothing works outside of it in all steps.
    """

    callee: str
    frame: Frame | None
    work: FrameWork | None
    in_steps: float
    per_step: float
    idle_ps: int


def reads_of(idle: Idle) -> Reads | None:
    """The reads that wait, None without any."""
    threads, trace = idle.threads, idle.threads.trace
    source = idle.source
    outer = np.flatnonzero((source == np.arange(source.size)) & (idle.call == Call.READ))
    # Of a read within another the outer one is what the program calls.
    above = threads.parent[outer]
    outer = outer[(above < 0) | (idle.call[np.maximum(above, 0)] != Call.READ)]
    event = threads.event[outer]
    took = trace.end[event] - trace.start[event]
    wall = np.maximum(threads.end - threads.begin, 1)
    # What it waits for runs elsewhere: else it is the work itself.
    works = took - idle.within(outer)
    waits = (took >= LONG * wall[threads.step[outer]]) & (works >= 0.5 * took)
    outer, took = outer[waits], took[waits]
    if not outer.size:
        return None
    codes = threads.code[outer]
    most = int(np.bincount(codes, took).argmax())
    frames = threads.frame[outer[codes == most]]
    frame = None
    if (frames >= 0).any():
        first = int(frames[frames >= 0][0])
        frame = frame_of(threads.names.values[int(threads.code[first])])
    chosen = (idle.call != Call.READ) & idle.is_usual & ~idle.is_input
    result = idle.by_function(chosen)
    return Reads(
        callee_title(threads.names.values[most]),
        frame,
        result[0] if result else None,
        np.unique(threads.step[outer]).size / threads.steps,
        outer.size / threads.steps,
        idle.total(chosen),
    )
