"""Loops over the steps of a sequence, one recurrent cell at a time, where one op runs them all.

A cell (``torch.nn.LSTMCell``) is one step of a sequence by what it is; ``torch.nn.LSTM`` runs all
steps of one in an op (pytorch.org/docs/stable/generated/torch.nn.LSTMCell.html). What a backward
pass does for the ops of a turn is a part of it: autograd gives both the same number.
"""

from __future__ import annotations

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.tables import Profile
from peakline.timing.ops.in_steps import StepOps
from peakline.timing.steps.facts import steps_at
from peakline.trace.autograd import NODE, autograd_of
from peakline.trace.events import nesting_of

CELLS = frozenset(
    f"aten::{name}"
    for name in "lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell _thnn_fused_lstm_cell "
    "_thnn_fused_gru_cell".split()
)
TURNS = 8
"""So many cells in a step are a loop over a sequence: layers and directions are fewer."""
LONGEST_TURN = 8
"""So many ops of a turn lie between two cells."""


def in_cell_loops(profile: Profile, ops: StepOps) -> BoolArray | None:
    """Which executions are outermost ops of such loops, or of their backward pass; None without
    any.

    Raises InputError when the profile cannot be read.
    """
    is_cell = np.array([name in CELLS for name, _ in ops.keys], np.bool_)
    if not is_cell.any():
        return None
    outer = np.flatnonzero(ops.is_outermost)
    event = ops.event[outer]
    line = ops.trace.lines_of(event)
    outer = outer[np.lexsort((ops.trace.start[event], line))]
    cells = np.flatnonzero(is_cell[ops.op[outer]])
    if cells.size < TURNS * ops.steps * ops.lanes:
        return None
    line = ops.trace.lines_of(ops.event[outer])
    before, after = cells[:-1], cells[1:]
    step = steps_at(profile, ops.trace.start[ops.event[outer]])
    near = (after - before <= LONGEST_TURN) & (line[before] == line[after])
    near &= step[before] == step[after]
    turns = np.zeros(outer.size + 1, np.int64)
    np.add.at(turns, before[near], 1)
    np.add.at(turns, after[near] + 1, -1)
    found = np.zeros(ops.event.size, np.bool_)
    found[outer[np.cumsum(turns)[:-1] > 0]] = True
    found[_backward_of(profile, ops, found)] = True
    return found


def _backward_of(profile: Profile, ops: StepOps, chosen: BoolArray) -> Int64Array:
    """The nodes of a backward pass whose forward op lies in one of the ``chosen``."""
    names = np.array([name.startswith(NODE) for name, _ in ops.keys], np.bool_)
    nodes = np.flatnonzero(names[ops.op] & ops.is_outermost)
    forward = autograd_of(profile).forward_of(ops.event[nodes])
    is_one = np.zeros(ops.trace.size, np.bool_)
    is_one[ops.event[chosen]] = True
    parent: AnyArray = nesting_of(profile).parent
    inside = np.zeros(nodes.size, np.bool_)
    while (forward >= 0).any():
        inside |= (forward >= 0) & is_one[forward]
        forward = np.where(forward >= 0, parent[forward], -1)
    return nodes[inside]
