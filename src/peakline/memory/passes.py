"""Forward passes, backward passes and steps of an optimizer in a PyTorch profile, in order of time.

They are known by the executions that PyTorch marks itself and by the call stacks of records: a run
of marks of one kind, without one of another between them, is one pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array, UInt8Array
from peakline.memory.op_events import OPTIMIZER_STEP, OpEvents
from peakline.trace.autograd import NODE

FORWARD, BACKWARD, OPTIMIZER = range(3)
LATEST = np.int64(2**63 - 1)
"""A time that never comes."""


@dataclass(frozen=True, eq=False)
class Passes:
    """Passes in order of time, in ps: ``kind`` is FORWARD, BACKWARD or OPTIMIZER. ``begin`` is that
    of their first mark, ``end`` that of their last, which another thread's next may overlap.
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
