"""Gradients that are set to zero in place of being given back, so that they live through the
forward pass beside the activations (``zero_grad(set_to_none=False)``).

Since PyTorch 2.0 ``Optimizer.zero_grad`` gives them back (torch/optim/optimizer.py). What is set to
zero (``aten::zero_``, ``aten::_foreach_zero_``) outside of the passes and the optimizer's step, and
added to in the next backward pass (``torch::autograd::AccumulateGrad``), need not be there between.

A memory snapshot has no ops, and to set to zero in place allocates nothing. There, what a backward
pass allocates and an optimizer's step and whole later backward passes leave live is such a gradient
where each of these passes makes as many buffers of its size, and frees them again: they are added
to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array, IntpArray
from peakline.kernels.memory_layout import ALLOCATION
from peakline.memory.origins.categories import BACKWARD, LATEST, OPTIMIZER, Passes, marked_records
from peakline.memory.origins.op_events import OpEvents
from peakline.memory.origins.stacks import Origins
from peakline.memory.peak.buffers import AtPeak
from peakline.memory.signatures import History
from peakline.trace.autograd import NODE
from peakline.trace.frames import Frame

_ZEROS = ("aten::zero_", "aten::_foreach_zero_")
_MOST_ADDS = 2
"""A pass adds at most so many times to each gradient that is set to zero."""
_LEAST_PASSES = 2
"""In a snapshot so many later backward passes add to a gradient: one may be another model's."""
_ADDS = f"{NODE}: torch::autograd::AccumulateGrad"


@dataclass(frozen=True, eq=False)
class ZeroedGradients:
    """``rows`` are the allocations of gradients that live at the peak since an earlier step,
    ``bytes`` in all; ``peak_after`` is the peak without them from when they are set to zero until
    the backward pass makes them anew. ``op`` sets them to zero, in ``function`` where a frame says
    it. Of gradients from before the recording there are no ``rows``, and ``bytes`` are not known.
    Without ops ``op`` is empty, and ``function`` is that of the optimizer's step.
    """

    rows: IntpArray
    bytes: int
    peak_after: int
    op: str
    function: Frame | None


def zeroed_gradients(history: History, at_peak: AtPeak, runs: OpEvents) -> ZeroedGradients | None:
    """Those of an allocator; None where none are set to zero, or none is live before its pass."""
    if history.descriptions is None:
        return None
    codes, categories = history.descriptions.of(at_peak.rows)[0]
    gradient_code = categories.index("gradient")
    gradient = codes == gradient_code
    time = history.events.array("time_ps")
    zeros, adds = runs.alone(_ZEROS), runs.with_name(_ADDS)
    if not zeros.size or not adds.size:
        return None
    start = runs.autograd.trace.start
    peak_ps = int(time[at_peak.row])
    cleared = start[zeros]
    last = int(np.searchsorted(cleared, peak_ps, "right")) - 1
    before = cleared[last] if last >= 0 else -1
    rows = np.sort(at_peak.rows[gradient & (time[at_peak.rows] < before)])
    zero = int(zeros[-1])
    op = [name for name in runs.names_around(zero) if name in _ZEROS][-1]
    function = runs.function_around(zero)
    if not rows.size:
        # As many as there are gradients are set to zero, and none of them is on record.
        is_each = op != _ZEROS[0] or _MOST_ADDS * zeros.size >= adds.size
        none_made = not (history.descriptions.of(_made(history))[0][0] == gradient_code).any()
        if not (is_each and none_made):
            return None
        return ZeroedGradients(rows, 0, at_peak.peak, op, function)
    absent = _absent(history, rows, cleared, runs.autograd.trace.end[adds])
    own = history.rows_of(at_peak.allocator)
    left = int((history.used[own] - absent[own])[history.measured[own]].max(initial=0))
    return ZeroedGradients(rows, int(history.allocated[rows].sum()), left, op, function)


def _made(history: History) -> IntpArray:
    """The records that allocate."""
    return np.flatnonzero((history.lifetimes.kind == ALLOCATION) & ~history.was_there)


def _absent(
    history: History, rows: IntpArray, cleared: Int64Array, added: Int64Array
) -> Int64Array:
    """Per record how many bytes of ``rows`` would not be there: from when they are set to zero
    until the nodes of the next backward pass have added to them, in the order of their making.
    """
    time = history.events.array("time_ps")
    change = np.zeros(history.rows + 1, np.int64)
    sizes = history.allocated[rows]
    added = np.sort(added)
    # The first of each run of zeros without a backward pass between is when all may go.
    turn = np.searchsorted(added, cleared)
    _, first = np.unique(turn, return_index=True)
    bounds = np.append(turn[first], added.size)
    for number, place in enumerate(first.tolist()):
        gone = int(np.searchsorted(time, cleared[place]))
        mine = added[bounds[number] : bounds[number + 1]]
        lives = np.flatnonzero(time[rows] < cleared[place])
        if not lives.size:
            continue
        change[gone] -= int(sizes[lives].sum())
        if mine.size:
            # Nodes add in the same order in every pass; of accumulation the first ones count.
            at = np.minimum(np.arange(lives.size), mine.size - 1)
            again = np.searchsorted(time, mine[at])
            np.add.at(change, np.minimum(again, history.rows), sizes[lives])
    absent: Int64Array = -np.cumsum(change)[:-1]
    return absent


@dataclass(frozen=True, eq=False)
class _Made:
    """What backward passes of an allocator allocate: ``rows``, ascending, the records at which they
    end (`LATEST`: never), what was requested for each, and the pass of each in ``passes``, whose
    times are records.
    """

    rows: Int64Array
    end: Int64Array
    size: Int64Array
    at: Int64Array
    passes: Passes

    def later_passes(self, chosen: BoolArray) -> Int64Array:
        """The backward passes that begin after a step of the optimizer after the ``chosen``."""
        stepped = self.passes.begin_of_next(OPTIMIZER, self.rows[chosen]).max(initial=-1)
        later: Int64Array = np.flatnonzero(
            (self.passes.kind == BACKWARD) & (self.passes.begin > stepped)
        )
        return later


def lasting_gradients(
    history: History, at_peak: AtPeak, origins: Origins
) -> ZeroedGradients | None:
    """Those of an allocator whose records have stacks and no ops around them; None where steps of
    an optimizer do not show, or gradients do not outlive them.
    """
    own = history.rows_of(at_peak.allocator)
    marked = marked_records(history, origins.stacks, None)
    passes = marked.passes(own.astype(np.int64), None, own)
    if not passes.has(OPTIMIZER) or not passes.has(BACKWARD):
        return None
    begins = (history.lifetimes.kind == ALLOCATION) & ~history.was_there & marked.is_backward
    rows = own[begins[own]].astype(np.int64)
    end = history.lifetimes.end[rows]
    made = _Made(
        rows, np.where(end >= 0, end, LATEST), history.requested[rows], passes.at(rows), passes
    )
    lasting = _outlives_steps(made)
    stepped = passes.begin_of_next(OPTIMIZER, rows)
    chosen = lasting & (stepped < at_peak.row) & (made.end > at_peak.row)
    if not chosen.any():
        return None
    absent = _absent_between(history, made, chosen)
    left = int((history.used[own] - absent[own])[history.measured[own]].max(initial=0))
    step = np.flatnonzero(marked.is_optimizer[own])[:1]
    function = origins.of(own[step])[0].program
    total = int(history.allocated[rows[chosen]].sum())
    return ZeroedGradients(rows[chosen], total, left, "", function)


def _outlives_steps(made: _Made) -> BoolArray:
    """Which are live after a step of the optimizer and the backward passes that follow, each of
    which makes as many of their size and frees them again.
    """
    passes = made.passes
    stepped = passes.begin_of_next(OPTIMIZER, made.rows)
    following = passes.begin_of_next(BACKWARD, stepped)
    lives = (following < LATEST) & (made.end >= passes.begin_after(passes.at(following)))
    result: BoolArray = np.zeros(made.rows.size, np.bool_)
    for size in np.unique(made.size[lives]).tolist():
        alike = made.size == size
        lasting = lives & alike
        later = made.later_passes(lasting)
        outlives = alike & (made.end > passes.begin_after(made.at))
        count = np.bincount(made.at[alike], minlength=passes.kind.size)[later]
        staying = np.bincount(made.at[outlives], minlength=passes.kind.size)[later]
        enough = later.size >= _LEAST_PASSES and bool((count >= lasting.sum()).all())
        result |= lasting & (enough and not staying.any())
    return result


def _step_ends(made: _Made, chosen: BoolArray) -> list[tuple[int, int]]:
    """The passes that end a step, and the record from which gradients need not be there."""
    passes = made.passes
    is_optimizer, is_backward = passes.kind == OPTIMIZER, passes.kind == BACKWARD
    following = passes.begin_of_next(BACKWARD, passes.begin)
    is_last = passes.begin_of_next(OPTIMIZER, passes.begin) >= following
    result = [
        (step, int(passes.end[step]) + 1)
        for step in np.flatnonzero(is_optimizer & is_last).tolist()
    ]
    first = int(made.at[chosen].min())
    stepped = first + int(is_optimizer[first:].argmax())
    if int(is_backward[first:stepped].sum()) == 1:
        # Nothing accumulates. Most optimizers allocate in their first step only: the others' ends
        # are before the next forward pass.
        silent = is_backward & is_last & (passes.begin_after(np.arange(following.size)) < LATEST)
        silent[:stepped] = False
        result += [(step, int(passes.begin[step + 1])) for step in np.flatnonzero(silent).tolist()]
    return result


def _absent_between(history: History, made: _Made, chosen: BoolArray) -> Int64Array:
    """Per record how many bytes of the ``chosen`` would not be there: from the end of a
    step until the next backward pass has made what it adds to each.
    """
    passes = made.passes
    change = np.zeros(history.rows + 1, np.int64)
    rows, ends, sizes = made.rows[chosen], made.end[chosen], made.size[chosen]
    allocated = history.allocated[rows]
    following = passes.begin_of_next(BACKWARD, passes.begin)
    for step, gone in _step_ends(made, chosen):
        lives = (rows < gone) & (ends > gone)
        change[gone] -= int(allocated[lives].sum())
        if following[step] == LATEST:
            continue
        backward = int(passes.at(following[step : step + 1])[0])
        inside = slice(*np.searchsorted(made.at, [backward, backward + 1]))
        again, of_size = made.end[inside], made.size[inside]
        for size in np.unique(sizes[lives]).tolist():
            mine = allocated[lives & (sizes == size)]
            # The first to go are the earliest that the mended program may hold as its gradients.
            first = np.minimum(np.sort(again[of_size == size])[: mine.size], history.rows)
            np.add.at(change, first, mine[: first.size])
    absent: Int64Array = -np.cumsum(change)[:-1]
    return absent
