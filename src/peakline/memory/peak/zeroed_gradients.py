"""Gradients that are set to zero in place of being given back, so that they live through the
forward pass beside the activations (``zero_grad(set_to_none=False)``).

Since PyTorch 2.0 ``Optimizer.zero_grad`` gives them back (torch/optim/optimizer.py). What is set to
zero (``aten::zero_``, ``aten::_foreach_zero_``) outside of the passes and the optimizer's step, and
added to in the next backward pass (``torch::autograd::AccumulateGrad``), need not be there between.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array, IntpArray
from peakline.kernels.memory_layout import ALLOCATION
from peakline.memory.origins.op_events import OpEvents
from peakline.memory.peak.buffers import AtPeak
from peakline.memory.signatures import History
from peakline.trace.autograd import NODE
from peakline.trace.frames import Frame

_ZEROS = ("aten::zero_", "aten::_foreach_zero_")
_MOST_ADDS = 2
"""A pass adds at most so many times to each gradient that is set to zero."""
_ADDS = f"{NODE}: torch::autograd::AccumulateGrad"


@dataclass(frozen=True, eq=False)
class ZeroedGradients:
    """``rows`` are the allocations of gradients that live at the peak since an earlier step,
    ``bytes`` in all; ``peak_after`` is the peak without them from when they are set to zero until
    the backward pass makes them anew. ``op`` sets them to zero, in ``function`` where a frame says
    it. Of gradients from before the recording there are no ``rows``, and ``bytes`` are not known.
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
