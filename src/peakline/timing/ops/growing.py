"""Work that grows from step to step, or from turn to turn of a loop within a step.

A state that is carried on without ``detach`` makes each backward pass go through all steps before
it: each runs as many nodes more as one step has. A sequence that is generated without a cache of
keys and values is computed anew from its beginning for each new token: the same product takes one
row more each time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.tables import Profile
from peakline.tables.joins import summed
from peakline.timing.ops.host import host_executions
from peakline.timing.ops.in_steps import StepOps
from peakline.timing.steps.facts import StepFacts
from peakline.trace.autograd import NODE
from peakline.trace.events import Trace, trace_of
from peakline.trace.intervals import covered, union
from peakline.trace.op_inputs import all_dims_of

STEPS = 4
"""In so many steps in a row each runs more than the one before, ..."""
ALIKE = 0.25
"""... by numbers that differ from their median by at most this share, ..."""
MORE = 0.10
"""... and the last runs so much more than the first."""
TURNS = 8
"""So many turns of a loop each take more rows than the one before."""
_PRODUCTS = frozenset(
    ("aten::linear", "aten::addmm", "aten::mm", "aten::matmul", "aten::conv1d", "aten::convolution")
)
_FIRST = 3
"""What a turn takes at first is the median of so many."""


@dataclass(frozen=True, eq=False)
class GrowingSteps:
    """``counts`` are the ops of each step, ``more`` how many each runs beyond the one before.
    ``event`` are executions of the ops that grow, ``name`` the one of them that takes longest.
    ``least_ps`` and ``most_ps`` are what would go of the time of these steps.
    """

    counts: tuple[int, ...]
    more: int
    event: Int64Array
    name: str
    wall_ps: int
    least_ps: int
    most_ps: int


def growing_steps(profile: Profile, facts: StepFacts) -> GrowingSteps | None:
    """Of the ops of a host, in steps that no recording cuts off; None where they do not grow."""
    trace, runs = trace_of(profile), host_executions(profile)
    begin, order = np.unique(facts.part("start_ps"), return_index=True)
    end = facts.part("end_ps")[order]
    if begin.size < STEPS or not runs.event.size:
        return None
    start = np.sort(trace.start[runs.event])
    until = np.minimum(end, np.append(begin[1:], end[-1]))
    counts = np.searchsorted(start, until) - np.searchsorted(start, begin)
    more = np.diff(counts)
    usual = float(np.median(more))
    if (more <= 0).any() or counts[-1] < (1 + MORE) * counts[0]:
        return None
    if (np.abs(more - usual) > max(ALIKE * usual, 1)).any():
        return None
    start = trace.start[runs.event]
    step = np.searchsorted(begin, start, "right") - 1
    step = np.where((step >= 0) & (start < end[np.maximum(step, 0)]), step, -1)
    mine = np.flatnonzero(step >= 0)
    pairs = step[mine].astype(np.int64) * len(runs.keys) + runs.op[mine]
    table = np.bincount(pairs, minlength=begin.size * len(runs.keys))
    table = table.reshape(begin.size, len(runs.keys))
    grows = (np.diff(table, axis=0) >= 0).all(0) & (table[-1] > table[0])
    chosen = mine[grows[runs.op[mine]]]
    own = summed(runs.op[chosen], runs.own_ps[chosen], len(runs.keys))
    nodes = np.array([key.name.startswith(NODE) for key in runs.keys], np.bool_)
    named = np.where(nodes | ~grows, -1, own)
    name = runs.keys[int(named.argmax() if named.max() >= 0 else own.argmax())].name
    least, most = _excess(trace, runs.event[chosen], step[chosen], table[:, grows], begin, end)
    return GrowingSteps(
        tuple(counts.tolist()), round(usual), runs.event[chosen], name,
        int((end - begin).sum()), least, most,
    )  # fmt: skip


def _excess(
    trace: Trace, event: Int64Array, step: AnyArray, table: AnyArray, begin: AnyArray, end: AnyArray
) -> tuple[int, int]:
    """What the ops take beyond those of one step: by how many of them there are more than the
    steps add, and beyond all that the least of them needs.
    """
    spans = [
        union(trace.start[event[step == one]], trace.end[event[step == one]])
        for one in range(begin.size)
    ]
    took = np.array(
        [
            int(covered(span, begin[one : one + 1], end[one : one + 1]).sum())
            for one, span in enumerate(spans)
        ],
        np.int64,
    )
    each = np.median(np.diff(table, axis=0), axis=0)
    # Where no step added to what was there before, each kind of op runs as often as one adds.
    needed = each.sum() / np.maximum(table.sum(1), 1)
    excess = float((took * np.clip(1 - needed, 0, 1)).sum())
    whole = float((end - begin).sum() - begin.size * (end - begin).min() * needed.min())
    return round(excess), max(round(whole), round(excess))


@dataclass(frozen=True, eq=False)
class GrowingTurns:
    """``turns`` of a loop in a step, in which a product takes ``first`` rows, and ``last`` at the
    end; ``name`` is the op, ``event`` are its executions. ``excess_ps`` is what the turns take
    beyond the first ones, in all steps.
    """

    name: str
    turns: float
    first: int
    last: int
    event: Int64Array
    excess_ps: int


def growing_turns(profile: Profile, ops: StepOps) -> GrowingTurns | None:
    """The loop whose products of the same weights take more rows with each turn, by recorded
    shapes; None without one.
    """
    codes, texts = all_dims_of(profile)
    if not texts:
        return None
    is_product = np.array([name in _PRODUCTS for name, _ in ops.keys], np.bool_)
    at = np.flatnonzero(is_product[ops.op] & (codes[ops.event] >= 0))
    if at.size < TURNS:
        return None
    at = at[np.argsort(ops.trace.start[ops.event[at]], kind="stable")]
    event = ops.event[at]
    rows, weights = zip(*map(_rows, texts), strict=True)
    row = np.array(rows, np.int64)[codes[event]]
    known = {weight: number for number, weight in enumerate(dict.fromkeys(weights))}
    weight = np.array([known[one] for one in weights], np.int64)[codes[event]]
    group = weight * len(ops.keys) + ops.op[at]
    step = np.searchsorted(ops.begin, ops.trace.start[event], "right")
    best: GrowingTurns | None = None
    for number in np.unique(group[row > 0]).tolist():
        mine = np.flatnonzero((group == number) & (row > 0))
        result = _turns_of(ops, event[mine], row[mine], step[mine])
        if result is not None and (best is None or result.excess_ps > best.excess_ps):
            best = result
    return best


def _rows(text: str) -> tuple[int, str]:
    """How many rows the first input of a product has, and the shapes of the others."""
    first, _, others = text.partition("], ")
    sides = [int(side) for side in first.strip("[]").split(",") if side.strip().isdigit()]
    if len(sides) < 2 or not others:
        return -1, text
    return int(np.prod(sides[:-1], dtype=np.float64).clip(0, 2**62)), f"{sides[-1]}; {others}"


def _turns_of(
    ops: StepOps, event: Int64Array, row: Int64Array, step: Int64Array
) -> GrowingTurns | None:
    turns, excess, chosen = [], 0, []
    for one in np.unique(step).tolist():
        mine = np.flatnonzero(step == one)
        # Layers of equal shape take the same rows one after the other: the first of each turn.
        is_new = np.append(True, np.diff(row[mine]) != 0)
        first = mine[is_new]
        change = np.diff(row[first])
        grown: BoolArray = change > 0
        if first.size < TURNS or grown.mean() < 0.9 or (change[grown] != np.median(change)).any():
            continue
        begins = ops.trace.start[event[first]]
        took = np.diff(begins)[grown]
        excess += int(np.maximum(took - np.median(took[:_FIRST]), 0).sum())
        turns.append(first.size)
        chosen.append(mine)
    if not turns:
        return None
    mine = np.concatenate(chosen)
    name = ops.keys[int(ops.op[np.flatnonzero(ops.event == event[mine[0]])[0]])][0]
    return GrowingTurns(
        name, float(np.mean(turns)), int(row[mine].min()), int(row[mine].max()), event[mine], excess
    )
