"""Gradients that are reduced over all processes in each of several backward passes, where the
optimizer runs once after them.

``torch.nn.parallel.DistributedDataParallel`` starts the reduction of a bucket from the hook of the
node that accumulates its last gradient (torch/csrc/distributed/c10d/reducer.cpp), unless the pass
runs within ``no_sync()``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.memory.origins.op_events import OPTIMIZER_STEP
from peakline.tables import Profile
from peakline.timing.ops.in_steps import StepOps
from peakline.trace.autograd import NODE, autograd_of
from peakline.trace.events import nesting_of
from peakline.trace.intervals import covered, union

_REDUCES = re.compile(r"c10d::_?(?:allreduce|reduce_scatter|all_reduce)\w*$")
_RUNS = re.compile(
    r"(?:gloo|nccl|mpi|ucc|xccl|hccl|rccl):(?:all_reduce|reduce_scatter)|ncclDevKernel"
)
_COPIES = re.compile(r"torch[:.]+distributed[:.].*reducer")
_ACCUMULATES = f"{NODE}: torch::autograd::AccumulateGrad"


@dataclass(frozen=True, eq=False)
class GradientSync:
    """``passes`` per optimizer step, all of which reduce: by ``op``, so many ``times`` in a step;
    ``event`` are those calls. ``least_ps`` and ``most_ps`` are what the superfluous ones take.
    """

    op: str
    passes: float
    times: float
    event: Int64Array
    least_ps: int
    most_ps: int


def gradient_sync_of(profile: Profile, ops: StepOps) -> GradientSync | None:
    """None where a pass is for one step of the optimizer, or not all passes reduce."""
    trace = ops.trace
    if not any(map(_REDUCES.search, trace.name.values)):
        return None
    reduces, autograd = trace.name.per_row(_REDUCES.search, np.bool_), autograd_of(profile)
    if not (reduces.any() and autograd.is_node.any()):
        return None
    adds = trace.name.codes == trace.name.code_of(_ACCUMULATES)
    calls = np.flatnonzero(reduces & _in(ops, trace.start))
    calls = calls[nesting_of(profile).around(calls, adds) >= 0]
    steps = trace.name.per_row(lambda name: name.startswith(OPTIMIZER_STEP), np.bool_)
    updates = np.flatnonzero(steps & _in(ops, trace.start))
    if not (calls.size and updates.size):
        return None
    begins = _passes(autograd.is_node, autograd.forward_events, updates, trace.start)
    begins = begins[(begins >= ops.begin[0]) & (begins < ops.end[-1])]
    of_call = np.searchsorted(begins, trace.start[calls], "right") - 1
    per_update = begins.size / updates.size
    reducing = np.unique(of_call[of_call >= 0]).size
    if per_update < 2 or reducing < 0.9 * begins.size:
        return None
    times = calls.size / ops.steps
    spare = 1 - 1 / per_update
    waits = union(trace.start[calls], trace.end[calls])
    runs = np.flatnonzero(
        trace.name.per_row(lambda name: _RUNS.search(name) or _COPIES.search(name), np.bool_)
    )
    every = np.concatenate([runs, calls])
    most = covered(union(trace.start[every], trace.end[every]), ops.begin, ops.end)
    least = covered(waits, ops.begin, ops.end)
    most_ps = int(most.sum())
    if any(name.startswith("gloo:") for name in trace.name.values):
        # On a CPU a reduction takes processors from the ops beside it.
        most_ps = ops.wall_ps
    codes = trace.name.codes[calls]
    name = trace.name.values[int(np.bincount(codes).argmax())]
    return GradientSync(
        name, per_update, times, calls,
        round(spare * int(least.sum())), round(spare * most_ps),
    )  # fmt: skip


def _in(ops: StepOps, start: Int64Array) -> BoolArray:
    """Which times lie in the steps."""
    at = np.searchsorted(ops.begin, start, "right") - 1
    result: BoolArray = (at >= 0) & (start < ops.end[np.maximum(at, 0)])
    return result


def _passes(
    is_node: BoolArray, forward: Int64Array, updates: AnyArray, start: Int64Array
) -> Int64Array:
    """When backward passes begin: with a node after an op of a forward pass or an update."""
    nodes = np.sort(start[np.flatnonzero(is_node)])
    others = np.sort(np.concatenate([start[forward], start[updates]]))
    turn = np.searchsorted(others, nodes)
    result: Int64Array = nodes[np.unique(turn, return_index=True)[1]]
    return result
