"""What the buffers of a PyTorch job are for: parameters, gradients, activations and the like.

The categories are those of PyTorch's own memory timeline (``torch/profiler/_memory_profiler.py``:
``Category``), without its detail of autograd. That follows every version of every tensor through
the ops, which needs what only a profiler in the process has. A file has when a buffer was allocated
and freed, inside of what, and when passes began and ended (`Passes`), and so

* what an optimizer's step allocates is *optimizer state* where it is live when the next pass begins
  (``torch/optim``: state is made in the first step and stays),
* what a backward pass allocates is a *gradient* where it is live when the optimizer runs (gradients
  go with ``zero_grad``, after the step),
* what is allocated from the begin of a step to that of its backward pass, and live when that
  begins, is an *activation* (autograd's saved tensors go while the backward pass uses them) unless
  gradients were off,
* what comes from a loader, is copied to a device, or was allocated before the first module of a
  step ran and is live after its backward pass is *input*,
* what a module's constructor or its ``to`` and ``cuda`` allocate, and what stays, is a *parameter*
  (``torch/nn/modules/module.py``: ``_apply``), and
* what is freed before that, in the same pass or step, is *temporary*.

Where nothing says it, a buffer has none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array, IntpArray, UInt8Array
from peakline.kernels.memory_layout import ALLOCATION
from peakline.memory.origins.op_events import OPTIMIZER_STEP, OpEvents
from peakline.memory.origins.stacks import Mark, marks_of
from peakline.memory.signatures import History
from peakline.tables.columns import Columns
from peakline.trace.autograd import NODE
from peakline.trace.steps import Steps

FORWARD, BACKWARD, OPTIMIZER = range(3)
LATEST = np.int64(2**63 - 1)
"""A time that never comes."""


@dataclass(frozen=True, eq=False)
class Passes:
    """Passes in order of time, in ps: ``kind`` is FORWARD, BACKWARD or OPTIMIZER. ``begin`` is that
    of their first mark, ``end`` that of their last, which another thread's next may overlap.

    They are known by the executions that PyTorch marks itself and by the call stacks of records: a
    run of marks of one kind, without one of another between them, is one pass.
    """

    kind: UInt8Array
    begin: Int64Array
    end: Int64Array

    def has(self, kind: int) -> bool:
        """Whether there is one of a kind."""
        return bool((self.kind == kind).any())

    def at(self, times: Int64Array) -> Int64Array:
        """The last pass that began by each time; -1 before the first."""
        return np.searchsorted(self.begin, times, "right") - 1

    def begin_of_next(self, kind: int, times: Int64Array) -> Int64Array:
        """When the first pass of a kind begins after each time; LATEST for never."""
        begins = np.append(self.begin[self.kind == kind], LATEST)
        return begins[np.searchsorted(begins[:-1], times, "right")]

    def end_of_next(self, kind: int, times: Int64Array) -> Int64Array:
        """When the first pass of a kind that begins after each time ends; LATEST for never."""
        mine = self.kind == kind
        ends = np.append(self.end[mine], LATEST)
        return ends[np.searchsorted(self.begin[mine], times, "right")]

    def begin_of_last_other(self, kind: int, times: Int64Array) -> Int64Array:
        """When the last pass of another kind before each time began; -LATEST without any."""
        begins = np.append(-LATEST, self.begin[self.kind != kind])
        return begins[np.searchsorted(begins, times, "right") - 1]

    def begin_after(self, passes: Int64Array) -> Int64Array:
        """When the pass after each begins; LATEST for never."""
        return np.append(self.begin, LATEST)[passes + 1]

    @cached_property
    def step_begins(self) -> Int64Array:
        """When steps begin: with a forward pass after the optimizer's step, or, without optimizer,
        after a backward pass.
        """
        closes = OPTIMIZER if self.has(OPTIMIZER) else BACKWARD
        before = np.append(np.uint8(closes), self.kind[:-1])
        if not self.kind.size:
            return self.begin
        # A forward pass may follow a backward one that accumulates.
        begins: Int64Array = self.begin[(self.kind == FORWARD) & (before == closes)]
        return begins

    def begin_of_next_step(self, times: Int64Array) -> Int64Array:
        """When the step after each time begins; LATEST for never."""
        begins = np.append(self.step_begins, LATEST)
        return begins[np.searchsorted(begins[:-1], times, "right")]


def passes_of(
    times: Int64Array,
    is_forward: BoolArray,
    is_backward: BoolArray,
    is_optimizer: BoolArray,
    runs: OpEvents | None,
) -> Passes:
    """The passes by the marks of records at ``times`` (ascending) and of executions of ops."""
    begin = [times[is_forward], times[is_backward], times[is_optimizer]]
    end = list(begin)
    if runs is not None:
        starts = {BACKWARD: NODE, OPTIMIZER: OPTIMIZER_STEP}
        for kind, word in starts.items():
            wanted = np.array([*(name.startswith(word) for name in runs.names), False], np.bool_)
            events = np.flatnonzero(wanted[runs.code])
            begin[kind] = np.concatenate([begin[kind], runs.autograd.trace.start[events]])
            end[kind] = np.concatenate([end[kind], runs.autograd.trace.end[events]])
    return _joined(begin, end)


def _joined(begins: list[Int64Array], ends: list[Int64Array]) -> Passes:
    kind = np.repeat(np.arange(len(begins), dtype=np.uint8), [one.size for one in begins])
    begin: AnyArray = np.concatenate(begins)
    end: AnyArray = np.concatenate(ends)
    order = np.lexsort((-kind.astype(np.int64), begin))
    kind, begin, end = kind[order], begin[order], end[order]
    first = np.flatnonzero(np.diff(kind, prepend=np.uint8(255)))
    if not first.size:
        return Passes(kind, begin, end)
    return Passes(kind[first], begin[first], np.maximum.reduceat(end, first))


CATEGORIES = ("", "parameter", "optimizer state", "gradient", "activation", "input", "temporary")
_NONE, _PARAMETER, _STATE, _GRADIENT, _ACTIVATION, _INPUT, _TEMPORARY = range(len(CATEGORIES))


@dataclass(frozen=True, eq=False)
class _Buffers:
    """The buffers of a profile, one each: when allocated and freed (LATEST: never), in ps, and of
    what they are a part.
    """

    begin: Int64Array
    end: Int64Array
    marks: UInt8Array
    is_backward: BoolArray
    is_optimizer: BoolArray
    is_differentiated: BoolArray | None
    is_move: BoolArray

    def has(self, mark: Mark) -> BoolArray:
        """Which have a mark, outside of backward passes and steps of an optimizer."""
        marked: BoolArray = (self.marks & int(mark)) != 0
        return marked & ~self.is_backward & ~self.is_optimizer


@dataclass(frozen=True, eq=False)
class MarkedRecords:
    """Per record what its stack and the ops around it say: ``marks``, and of which pass it is."""

    marks: UInt8Array
    is_forward: BoolArray
    is_backward: BoolArray
    is_optimizer: BoolArray

    def passes(
        self, times: Int64Array, runs: OpEvents | None, rows: IntpArray | slice = slice(None)
    ) -> Passes:
        """The passes by ``rows``, which are at ``times``, and by executions of ops."""
        of_kinds = self.is_forward[rows], self.is_backward[rows], self.is_optimizer[rows]
        return passes_of(times, *of_kinds, runs)


def marked_records(history: History, stacks: Columns, runs: OpEvents | None) -> MarkedRecords:
    """Those of a PyTorch profile; the arguments are those of `categories_of`."""
    events = history.events
    known = events.is_valid("stack_id")
    marks = marks_of(stacks, np.where(known, events.array("stack_id"), -1))
    is_optimizer = (marks & int(Mark.OPTIMIZER)) != 0
    is_backward = (marks & int(Mark.BACKWARD)) != 0
    is_forward = (marks & int(Mark.MODULE)) != 0
    if runs is not None:
        is_optimizer |= runs.is_optimizer
        is_backward |= runs.is_backward
        is_forward |= runs.is_differentiated
    # A record from before the first says where memory was, not when it was allocated.
    is_there = history.was_there
    is_backward &= ~is_optimizer & ~is_there
    is_forward &= ~is_optimizer & ~is_backward & ~is_there
    is_optimizer &= ~is_there
    if runs is None:
        # Of records in one microsecond the order says which is first.
        order = np.arange(history.rows)
        passes = passes_of(order, is_forward, is_backward, is_optimizer, None)
        # The threads of autograd's engine have no frames of Python: what no function allocates
        # after a call of `backward` and before another pass is of the backward pass.
        last = np.append(passes.kind, np.uint8(FORWARD))[passes.at(order)]
        silent = ~known & (last == BACKWARD) & (history.lifetimes.kind == ALLOCATION) & ~is_there
        is_backward |= silent
    return MarkedRecords(marks, is_forward, is_backward, is_optimizer)


def categories_of(
    history: History, stacks: Columns, runs: OpEvents | None, steps: Steps | None = None
) -> UInt8Array:
    """Per record of a PyTorch profile the place in `CATEGORIES` of the buffer that it begins; 0
    for one that begins none, and where nothing says it.

    ``stacks`` is the table of that name, ``runs`` are the executions of ops around the records,
    where the format has them, ``steps`` the steps that are marked.
    """
    time = history.events.array("time_ps")
    marked = marked_records(history, stacks, runs)
    passes = marked.passes(time, runs)
    rows = np.flatnonzero((history.lifetimes.kind == ALLOCATION) & ~history.was_there)
    end = history.lifetimes.end[rows]
    autograd = None
    if runs is not None and runs.autograd.has_numbers:
        autograd = runs.is_differentiated[rows]
    buffers = _Buffers(
        time[rows],
        np.where(end >= 0, time[np.maximum(end, 0)], LATEST),
        marked.marks[rows],
        marked.is_backward[rows],
        marked.is_optimizer[rows],
        autograd,
        np.zeros(rows.size, np.bool_) if runs is None else runs.is_move[rows],
    )
    result = np.zeros(history.rows, np.uint8)
    result[rows] = _sorted(buffers, passes, steps)
    return result


def _sorted(buffers: _Buffers, passes: Passes, steps: Steps | None) -> UInt8Array:
    begin, end = buffers.begin, buffers.end
    result = np.where(_is_freed_in_step(buffers, passes, steps), _TEMPORARY, _NONE).astype(np.uint8)
    is_free = ~buffers.is_backward & ~buffers.is_optimizer
    _sort_forward(buffers, passes, result, is_free)
    result[buffers.is_backward] = _TEMPORARY
    result[buffers.is_backward & _outlives_backward(buffers, passes)] = _GRADIENT
    following = passes.begin_after(passes.at(begin))
    result[buffers.is_optimizer] = _TEMPORARY
    result[buffers.is_optimizer & ((end > following) | (end == LATEST))] = _STATE
    loads = buffers.has(Mark.INPUT) | (buffers.has(Mark.MOVE) & ~buffers.has(Mark.MODULE))
    result[loads & ~buffers.has(Mark.MAKING)] = _INPUT
    makes = buffers.has(Mark.MAKING)
    stays = (end == LATEST) | (end > passes.end_of_next(BACKWARD, begin))
    result[makes & stays] = _PARAMETER
    result[makes & ~stays] = _TEMPORARY
    return result


def _sort_forward(
    buffers: _Buffers, passes: Passes, result: UInt8Array, is_free: BoolArray
) -> None:
    """What is allocated between the begin of a step and its backward pass."""
    begin, end = buffers.begin, buffers.end
    at = passes.at(begin)
    kinds = np.append(passes.kind, np.uint8(FORWARD))
    last = kinds[at]  # before the first pass: that of the place behind them all
    inside = (at >= 0) & (begin <= np.append(passes.end, -1)[at])
    following = kinds[at + 1]
    # Between the passes: before a forward pass, or between one and its backward pass.
    between = ~inside & ((last == FORWARD) | (following == FORWARD)) & (following != OPTIMIZER)
    forward = is_free & ((inside & (last == FORWARD)) | between)
    backward = passes.begin_of_next(BACKWARD, begin)
    lives = forward & (backward < LATEST) & (end > backward)
    stays = end > passes.end_of_next(BACKWARD, begin)
    saved, enters = lives, lives & stays
    if buffers.is_differentiated is not None:
        # What autograd did not record, and only its pass frees, is saved by what it recorded.
        saved, enters = lives & (buffers.is_differentiated | ~stays), lives
    if passes.has(BACKWARD):
        result[forward & (end < backward)] = _TEMPORARY
    result[saved] = _ACTIVATION
    # What stays for ever, while other steps follow, is no batch.
    is_batch = (end < LATEST) | (passes.begin_of_next_step(backward) == LATEST)
    result[enters & is_batch & _is_before_modules(buffers, passes)] = _INPUT


def _is_before_modules(buffers: _Buffers, passes: Passes) -> BoolArray:
    """Which were allocated before the first module of their forward pass ran, or the first op that
    autograd recorded; of copies between devices where neither is known, before anything else.
    """
    first = buffers.has(Mark.MODULE)
    before: BoolArray = np.ones(first.size, np.bool_)
    if buffers.is_differentiated is not None:
        first |= buffers.is_differentiated & ~buffers.is_move
    if not first.any():
        before = buffers.is_move & ~buffers.is_backward & ~buffers.is_optimizer
        first = ~before
    firsts = np.append(-LATEST, buffers.begin[first])
    ran = firsts[np.searchsorted(firsts, buffers.begin, "right") - 1]
    # Since the last pass of another kind: with accumulation a step has several forward passes.
    return before & ~first & (ran <= passes.begin_of_last_other(FORWARD, buffers.begin))


def _outlives_backward(buffers: _Buffers, passes: Passes) -> BoolArray:
    """Which of those of a backward pass are live when the optimizer runs or the next step begins;
    where no optimizer's step is recorded, after the pass.
    """
    at = passes.at(buffers.begin)
    end = np.append(passes.end, LATEST)[at]
    bound = end
    if passes.has(OPTIMIZER):
        optimizer = passes.begin_of_next(OPTIMIZER, buffers.begin)
        bound = np.minimum(optimizer, passes.begin_of_next(FORWARD, end))
        bound = np.where(bound == LATEST, end, bound)
    outlives: BoolArray = (buffers.end > bound) | (buffers.end == LATEST)
    return outlives


def _is_freed_in_step(buffers: _Buffers, passes: Passes, steps: Steps | None) -> BoolArray:
    """Which are freed before the next step begins."""
    if passes.step_begins.size and passes.has(BACKWARD):
        limit = passes.begin_of_next_step(buffers.begin)
        return (buffers.end <= limit) & (buffers.end < LATEST)
    freed: BoolArray = np.zeros(buffers.begin.size, np.bool_)
    if steps is None or not steps.size:
        return freed
    order = np.argsort(steps.begin, kind="stable")
    at = np.searchsorted(steps.begin[order], buffers.begin, "right") - 1
    return (at >= 0) & (buffers.end <= steps.end[order][np.maximum(at, 0)])
