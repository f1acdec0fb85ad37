"""Gradients of single examples that a step holds together: batch times parameters.

A loop calls ``torch.autograd.grad`` or ``backward`` for each example and collects what it gives, or
``torch.func.vmap(torch.func.grad(loss))`` makes all of them at once (torch/_functorch). What a
backward pass makes and leaves is a gradient; where each of many passes of one step has left some by
the peak, they are those of single examples.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.kernels.memory_layout import ALLOCATION
from peakline.memory.origins.op_events import OpEvents
from peakline.memory.peak.buffers import AtPeak, peak_without
from peakline.memory.signatures import History
from peakline.trace.frames import Frame

FEWEST = 8
"""So many passes of a step leave gradients, at least: a few tasks may each have theirs."""
_ALIKE = 0.8
"""So many of the passes leave as many buffers as the others."""
_LARGE = 0.05
"""Of all gradients, those of one weight: what is as large as smaller ones may be something else."""
_COPIES = ("aten::clone", "aten::cat", "aten::_to_copy", "aten::copy_")
"""Ops by which a program holds a gradient that is written to later."""
_UPDATES = ("aten::sub_", "aten::sub", "aten::add_", "aten::add", "aten::addcdiv_")
"""Ops that take a gradient from a weight, both of one shape."""
_VMAP, _GRAD, _TRANSFORMS = "_functorch/vmap.py(", "grad_and_value_impl", "_functorch/"
_ITEMS = (2, 4, 8)
"""Bytes of a number of floating point."""


@dataclass(frozen=True, eq=False)
class PerExample:
    """``rows`` are the allocations of such gradients that live at the peak, ``bytes`` in all, of
    ``examples`` (0: not recorded); ``more_bytes`` are in buffers made of all of them. Without them
    the peak would be ``least_after`` to ``most_after``, as one gradient is needed.
    """

    rows: Int64Array
    bytes: int
    examples: int
    more_bytes: int
    least_after: int
    most_after: int
    is_vmap: bool
    op: str
    function: Frame | None


def per_example_gradients(history: History, at_peak: AtPeak, runs: OpEvents) -> PerExample | None:
    """Those of an allocator; None where a step holds none at its peak."""
    mine = (at_peak.step == at_peak.own_step) & ~history.was_there[at_peak.rows]
    rows = np.sort(at_peak.rows[mine])
    made = rows[runs.is_backward[rows]]
    if not made.size:
        return None
    is_vmap = False
    examples, held = _of_passes(history, runs, rows)
    if not held.size:
        is_vmap, (examples, held) = True, _of_vmap(history, runs, made)
    if not held.size:
        return None
    sizes = np.unique(history.requested[held])
    whole = sizes if is_vmap else sizes * examples
    whole = whole[whole >= _LARGE * int(history.requested[held].sum())]
    codes = history.signatures.codes
    made = np.flatnonzero((history.lifetimes.kind == ALLOCATION) & ~history.was_there)
    is_every = np.isin(codes[made], codes[held])
    every = made[is_every]
    others = made[~is_every & np.isin(history.requested[made], whole)]
    gone = np.concatenate([every, others])
    one = 1 / max(examples, 2)
    goes = np.round(history.allocated[every] * (1 - one)).astype(np.int64)
    event = int(runs.event[held[int(history.allocated[held].argmax())]])
    around = [name for name in runs.names_around(event) if name.startswith("aten::")]
    return PerExample(
        held,
        int(history.allocated[held].sum()),
        examples,
        int(history.allocated[others[np.isin(others, rows)]].sum()),
        peak_without(history, at_peak.allocator, gone, history.allocated[gone]),
        peak_without(history, at_peak.allocator, every, goes),
        is_vmap,
        around[0] if around else "",
        runs.function_around(event),
    )


def is_held_by_recorder(history: History, codes: Int64Array, runs: OpEvents) -> bool:
    """Whether what some signatures leave in memory is the recorder's: with ``record_shapes`` it
    holds the tensors of transforms of functions (``torch.func``) until it ends.
    """
    rows = np.flatnonzero(np.isin(history.signatures.codes, codes))
    rows = rows[(history.lifetimes.kind[rows] == ALLOCATION) & (runs.event[rows] >= 0)]
    if not rows.size or not runs.inputs.is_recorded:
        return False
    lives = rows[history.lifetimes.end[rows] < 0]
    inside = _within(runs, lives, _TRANSFORMS)
    return bool(lives.size) and bool(inside.all())


def passes_per_event(runs: OpEvents) -> tuple[Int64Array, Int64Array]:
    """When each backward pass begins, and when its last node ends.

    Within a pass the nodes come in descending order of their numbers, and each forward pass goes
    on counting: a number as large as any before begins a pass.
    """
    autograd = runs.autograd
    node = np.flatnonzero(autograd.is_node & (autograd.number >= 0))
    node = node[np.argsort(autograd.trace.start[node], kind="stable")]
    number, start, end = autograd.number[node], autograd.trace.start[node], autograd.trace.end[node]
    before = np.concatenate([[-1], np.maximum.accumulate(number)[:-1]]) if node.size else number
    first = np.flatnonzero(number >= before)
    if not first.size:
        return start, end
    return start[first], np.maximum.reduceat(end, first)


def _of_passes(history: History, runs: OpEvents, rows: Int64Array) -> tuple[int, Int64Array]:
    """Of how many passes the buffers ``rows`` hold gradients, and which do."""
    none = 0, rows[:0]
    begins, ends = passes_per_event(runs)
    time = history.events.array("time_ps")
    if begins.size < FEWEST:
        return none
    is_made = runs.is_backward & (history.lifetimes.kind == ALLOCATION) & (runs.event >= 0)
    # What autograd records in a pass is part of a graph of higher order.
    is_made &= runs.autograd.number[runs.event] < 0
    made = np.flatnonzero(is_made)
    made = made[time[made] >= begins[0]]
    of_pass = np.searchsorted(begins, time[made], "right") - 1
    freed = history.lifetimes.end[made]
    stays = (freed < 0) | (time[np.maximum(freed, 0)] > ends[of_pass])
    left = made[stays]
    sizes = np.unique(history.requested[left])
    together = np.bincount(of_pass[stays], history.requested[left], begins.size)
    whole = np.unique(together[together > 0].astype(np.int64))
    names = history.signatures.ops
    copies = np.array([*(name in _COPIES for name in names), False], np.bool_)
    op = np.append(history.signatures.op, len(names))[history.signatures.codes[rows]]
    is_copy = copies[op] & ~runs.is_backward[rows] & (time[rows] >= begins[0])
    is_copy &= np.isin(history.requested[rows], np.concatenate([sizes, whole]))
    # What nodes add to weights (`autograd.grad` runs none) stays there: each of several models,
    # or heads, has its own.
    adds = runs.autograd.trace.start[runs.with_name("torch::autograd::AccumulateGrad")]
    has_adds = np.isin(np.arange(begins.size), np.searchsorted(begins, adds, "right") - 1)
    alone = left[~has_adds[of_pass[stays]]]
    held = rows[np.isin(rows, alone) | is_copy]
    each = Counter((np.searchsorted(begins, time[held], "right") - 1).tolist())
    if len(each) < FEWEST:
        return none
    usual, count = Counter(each.values()).most_common(1)[0]
    return (len(each), held) if usual and count >= _ALIKE * len(each) else none


def _of_vmap(history: History, runs: OpEvents, made: Int64Array) -> tuple[int, Int64Array]:
    """How many examples `vmap` of `grad` went over (0: not recorded), and the gradients."""
    none = 0, made[:0]
    inside = _within(runs, made, _VMAP) & _within(runs, made, _GRAD)
    held = made[inside]
    if not held.size:
        return none
    time, trace = history.events.array("time_ps"), runs.autograd.trace
    code = np.array([*(_GRAD in name for name in runs.names), False], np.bool_)
    until = np.zeros(held.size, np.int64)
    at = runs.event[held]
    while (at >= 0).any():
        is_one = (at >= 0) & code[runs.code[np.maximum(at, 0)]]
        until[is_one] = trace.end[at[is_one]]
        at = np.where(at >= 0, runs.parent[np.maximum(at, 0)], -1)
    freed = history.lifetimes.end[held]
    held = held[(freed < 0) | (time[np.maximum(freed, 0)] > until)]
    first = [
        int(text[1:].split(",")[0].rstrip("]"))
        for text in runs.input_shapes(held)
        if text[1:2].isdigit()
    ]
    examples = Counter(first).most_common(1)[0][0] if first else 0
    if not held.size or _are_updates(history, runs, held):
        return none
    return (examples if examples > 1 else 0), held


def _are_updates(history: History, runs: OpEvents, held: Int64Array) -> bool:
    """Whether the largest is taken from a weight of its size: each of several models has its own
    gradient.
    """
    largest = int(history.requested[held].max())
    events = np.concatenate([runs.alone((name,)) for name in _UPDATES])
    shapes = np.unique(runs.inputs.dims(events)) if events.size else events
    for code in shapes.tolist():
        sides = [int(one) for one in runs.inputs.dims_text(code).strip("[]").split(",") if one]
        elements = int(np.prod(sides, dtype=np.int64)) if sides else 0
        if largest in {elements * size for size in _ITEMS}:
            return True
    return False


def _within(runs: OpEvents, rows: Int64Array, word: str) -> BoolArray:
    """Which records lie in a call whose name has ``word``."""
    wanted = np.array([*(word in name for name in runs.names), False], np.bool_)
    result = np.zeros(rows.size, np.bool_)
    at = runs.event[rows]
    while (at >= 0).any():
        here = np.maximum(at, 0)
        result |= (at >= 0) & wanted[runs.code[here]]
        at = np.where(at >= 0, runs.parent[here], -1)
    return result
