"""What one step made that lives on into the next, until its successors are made.

A variable of the loop (``outputs``, ``tape``) holds the objects of a step until it is overwritten,
which happens when the next call returns: both are in memory by then. Python frees what nothing
refers to at once (docs.python.org/3/c-api/refcounting.html), so all of it goes together.
"""

from __future__ import annotations

import re

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.memory.at_peak import AtPeak
from peakline.memory.signatures import History
from peakline.memory.variables import updates_variables

MADE_BY = 0.5
"""Outputs and activations are of the forward pass, in the first half of a step's records; what an
optimizer puts in the place of a weight is made after the gradients."""
RELEASE = 3.0
"""They are freed with at most so many other records between two of them."""
FEWEST = 3
"""An output with what it was computed from is so many buffers; one alone may be state that the next
step reads."""
_MADE = frozenset(("activation", "temporary"))
"""Categories (`peakline.memory.categories`) of what a forward pass makes."""
_INPUT = re.compile(r"Iterator|Dataset|(?:^|/)(?:infeed|copy_from_host|h2d)", re.IGNORECASE)
"""Ops that hand out a batch (tensorflow/core/kernels/data): the next one is made in advance."""


def held_outputs(history: History, found: AtPeak) -> BoolArray:
    """Which buffers at the peak are of the forward pass of the step before, and no longer needed.

    They end together in the step of the peak, by which successors of the same op and shape are
    there. Weights, an optimizer's state and batches are replaced too, but are needed: they are
    known by their category or op, and by being made in the second half of a step.
    """
    chosen = np.zeros(found.rows.size, np.bool_)
    if not found.starts.size or found.own_step < 1 or not found.has_ends:
        return chosen
    older = (found.step == found.own_step - 1) & found.is_freed & ~found.has_finding
    older &= ~history.was_there[found.rows]
    if not older.any():
        return chosen
    older &= _is_made(history, found)
    newer = np.unique(found.codes[(found.step == found.own_step) & (found.codes >= 0)])
    older &= np.isin(found.codes, newer) & _is_early(history, found)
    older &= _ends_in_own_step(history, found)
    places = np.flatnonzero(older)
    chosen[places[_go_together(history, found, places)]] = True
    return chosen


def _is_made(history: History, found: AtPeak) -> BoolArray:
    """Which are made by a forward pass, by their category where that is known, else by their op."""
    signatures = history.signatures
    computes = np.array(
        [
            bool(op) and not updates_variables(op) and _INPUT.search(op) is None
            for op in signatures.ops
        ],
        np.bool_,
    )
    named: BoolArray = computes[signatures.op[found.codes]] & (found.codes >= 0)
    if history.descriptions is None:
        return named
    codes, categories = history.descriptions.of(found.rows)[0]
    known = np.array([not one or one in _MADE for one in categories], np.bool_)
    return named & known[codes]


def _is_early(history: History, found: AtPeak) -> BoolArray:
    """Which were made in the first part of their step, by the allocator's own records."""
    own = history.rows_of(found.allocator)
    begin = np.searchsorted(own, found.starts[found.own_step - 1])
    end = np.searchsorted(own, found.starts[found.own_step])
    early: BoolArray = np.searchsorted(own, found.rows) - begin <= MADE_BY * (end - begin)
    return early


def _ends_in_own_step(history: History, found: AtPeak) -> BoolArray:
    """Which are freed before the step of the peak ends, as far as that is on record."""
    after = found.own_step + 1
    end = int(found.starts[after]) if after < found.starts.size else history.rows
    ends: BoolArray = history.lifetimes.end[found.rows] < end
    return ends


def _go_together(history: History, found: AtPeak, places: Int64Array) -> BoolArray:
    """Which of the buffers are freed with most of the others, a few records apart."""
    if not places.size:
        return np.zeros(0, np.bool_)
    own = history.rows_of(found.allocator)
    at = np.searchsorted(own, history.lifetimes.end[found.rows[places]])
    order = np.argsort(at, kind="stable")
    burst = np.cumsum(np.diff(at[order], prepend=at[order[0]]) > RELEASE)
    sizes = np.bincount(burst, found.bytes[places][order])
    together = np.zeros(places.size, np.bool_)
    most = int(sizes.argmax())
    is_whole = 2 * sizes[most] >= sizes.sum() and np.count_nonzero(burst == most) >= FEWEST
    together[order[burst == most]] = bool(is_whole)
    return together
