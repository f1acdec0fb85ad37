"""Chains of element-wise ops of one shape that run one by one, each over all of memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.tables import Profile
from peakline.timing.ops.in_steps import StepOps
from peakline.timing.steps.threads import step_threads_of
from peakline.trace.events import nesting_of
from peakline.trace.op_inputs import inputs_of
from peakline.trace.work_classes import Work

LEAST = 4
"""So many in a row are a chain: a bias and an activation are in every layer."""
LONG_PS = 10 * 10**6
"""... where the median one takes longer than this: of shorter ones the time goes to running ops at
all."""
_OPTIMIZER = "Optimizer.step#"


@dataclass(frozen=True)
class Chains:
    """Executions in chains: ``chosen`` among those of the steps, ``length`` of the median chain,
    ``shape`` the one that takes most (empty: not recorded), ``is_optimizer`` whether most of it is
    a framework's optimizer.
    """

    chosen: BoolArray
    length: int
    shape: str
    is_optimizer: bool


def chains_of(profile: Profile, ops: StepOps) -> Chains | None:
    """The chains of element-wise ops, None without any; those of compiled programs are none."""
    is_known = (ops.work != Work.OTHER) & (ops.work != Work.REDUCE)
    known = np.flatnonzero(is_known & ~ops.is_inner & ~ops.is_hlo)
    is_one = ops.work[known] == Work.ELEMENTWISE
    if np.count_nonzero(is_one) < LEAST:
        return None
    event = ops.event[known]
    order = np.lexsort((ops.trace.start[event], ops.trace.lines_of(event)))
    known, is_one, event = known[order], is_one[order], event[order]
    line, dims = ops.trace.lines_of(event), inputs_of(profile).dims(event)
    frame = _frames(profile, event)
    same = (line[1:] == line[:-1]) & is_one[1:] & is_one[:-1] & (dims[1:] == dims[:-1])
    same &= frame[1:] == frame[:-1]
    step = np.searchsorted(ops.begin, ops.trace.start[event], "right")
    same &= step[1:] == step[:-1]
    chain = np.cumsum(np.concatenate([[True], ~same]))
    sizes = np.bincount(chain)
    # One op over and over is no chain: it may be the fused one.
    op = ops.op[known]
    differs = np.bincount(chain[1:], same & (op[1:] != op[:-1]), sizes.size) > 0
    mine = is_one & (sizes[chain] >= LEAST) & differs[chain]
    took = (ops.trace.end[event] - ops.trace.start[event])[mine]
    if not mine.any() or float(np.median(took)) < LONG_PS:
        return None
    chosen = np.zeros(ops.event.size, np.bool_)
    chosen[known[mine]] = True
    shapes, place = np.unique(dims[mine], return_inverse=True)
    most = int(shapes[np.bincount(place, took).argmax()])
    lengths = sizes[np.unique(chain[mine])]
    return Chains(
        chosen,
        int(np.median(lengths)),
        inputs_of(profile).dims_text(most),
        2 * int(took[in_optimizer(profile, ops)[known[mine]]].sum()) > int(took.sum()),
    )


def _frames(profile: Profile, event: Int64Array) -> Int64Array:
    """The call of a function of the program around each event: a chain ends with it."""
    threads = step_threads_of(profile)
    if threads is None or not threads.event.size:
        return np.full(event.size, -1)
    place = np.minimum(np.searchsorted(threads.event, event), threads.event.size - 1)
    return np.where(threads.event[place] == event, threads.frame[place], -1)


def in_optimizer(profile: Profile, ops: StepOps) -> BoolArray:
    """Which executions lie in the step of one of PyTorch's optimizers, which marks it."""
    names = ops.trace.name
    marks = np.array([*(name.startswith(_OPTIMIZER) for name in names.values), False], np.bool_)
    inside = np.zeros(ops.event.size, np.bool_)
    if not marks.any():
        return inside
    parent = nesting_of(profile).parent
    above = parent[ops.event]
    while (above >= 0).any():
        inside |= (above >= 0) & marks[names.codes[np.maximum(above, 0)]]
        above = np.where(above >= 0, parent[np.maximum(above, 0)], -1)
    return inside
