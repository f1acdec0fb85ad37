"""What an optimizer's step makes for all weights at once, and frees before it ends.

The foreach implementation of PyTorch's optimizers, their default on GPUs, "uses ~ sizeof(params)
more peak memory than the for-loop version due to the intermediates being a tensorlist vs just one
tensor" (pytorch.org/docs/stable/generated/torch.optim.Adam.html: ``foreach``). Its functions are
``_multi_tensor_adam`` and the like (torch/optim), its ops ``_foreach_mul`` and the like.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array, IntpArray
from peakline.kernels.memory_layout import ALLOCATION
from peakline.memory.at_peak import AtPeak
from peakline.memory.op_events import OpEvents
from peakline.memory.origins import NOTHING, Origins, Stack
from peakline.memory.signatures import History
from peakline.memory.stack_marks import Mark, marks_of
from peakline.tables.joins import summed

_SMALL = 1e-3
"""Buffers of less than this share of the peak are no evidence."""
_MANY, _SIZES = 4, 2
"""So many buffers of so many sizes are of several weights; what one weight needs has its size."""
_FOREACH = re.compile(r"^_multi_tensor_|(?:^|::)_foreach_")


@dataclass(frozen=True, eq=False)
class OptimizerTemporaries:
    """``rows`` are their allocations that live at the peak, ``bytes`` what they hold; ``stack`` is
    what made most of it, ``peak_after`` the peak that is left without those of all steps.
    """

    rows: IntpArray
    bytes: int
    peak_after: int
    stack: Stack


def optimizer_temporaries(
    history: History, found: AtPeak, origins: Origins | None, ops: OpEvents | None
) -> OptimizerTemporaries | None:
    """The temporaries of an optimizer's step at the peak, where they are of several weights.

    A run of such a step is all that is allocated from the first allocation inside of it to the next
    outside; its temporaries end within the run. State of the optimizer lives on, and is none.
    """
    if not found.has_ends or not _inside(history, np.array([found.row]), origins, ops).any():
        return None
    own = history.rows_of(found.allocator)
    made = own[(history.lifetimes.kind[own] == ALLOCATION) & ~history.was_there[own]]
    passing = _passing(history, made, _inside(history, made, origins, ops))
    ends = history.lifetimes.end[passing].astype(np.int64)
    rows = passing[(passing <= found.row) & (ends > found.row)]
    stacks = [NOTHING] * rows.size if origins is None else origins.of(rows)
    if not _is_of_several(history, rows, stacks, found.peak):
        return None
    sizes = history.allocated[rows]
    change = np.zeros(history.rows, np.int64)
    change[passing] = history.allocated[passing]
    change[ends] -= history.allocated[passing]
    left = history.used[own] - np.cumsum(change[own])
    after = int(left[history.measured[own]].max(initial=0))
    return OptimizerTemporaries(rows, int(sizes.sum()), after, _most(stacks, sizes))


def _inside(
    history: History, rows: IntpArray, origins: Origins | None, ops: OpEvents | None
) -> BoolArray:
    """Which of some records an optimizer's step made: by its mark, else by their stacks."""
    found = np.zeros(rows.size, np.bool_) if ops is None else ops.is_optimizer[rows]
    if origins is None:
        return found
    events = history.events
    ids = np.where(events.is_valid("stack_id")[rows], events.array("stack_id")[rows], -1)
    by_stack: BoolArray = (marks_of(origins.stacks, ids) & int(Mark.OPTIMIZER)) != 0
    return found | by_stack


def _passing(history: History, made: IntpArray, inside: BoolArray) -> IntpArray:
    """Of the allocations ``made`` those ``inside`` that end before the next that is not."""
    others = np.append(made[~inside], history.rows)
    bound = others[np.searchsorted(others, made)]
    ends = history.lifetimes.end[made].astype(np.int64)
    return made[inside & (ends >= 0) & (ends < bound)]


def _is_of_several(history: History, rows: IntpArray, stacks: list[Stack], peak: int) -> bool:
    """Whether some buffers are of several weights: a function of the foreach implementation made
    two or more, or there are many, of distinct sizes.
    """
    large = history.allocated[rows] >= max(_SMALL * peak, 1)
    count = int(np.count_nonzero(large))
    if count >= _MANY and np.unique(history.requested[rows[large]]).size >= _SIZES:
        return True
    return count > 1 and all(
        _is_foreach(one) for one, is_large in zip(stacks, large.tolist(), strict=True) if is_large
    )


def _is_foreach(stack: Stack) -> bool:
    library = "" if stack.library is None else stack.library.function
    return any(_FOREACH.search(one) for one in (library, *stack.ops, *stack.types))


def _most(stacks: list[Stack], sizes: Int64Array) -> Stack:
    """The stack of most bytes, by the function of the framework that made them."""
    keys = [(stack.program, stack.library) for stack in stacks]
    number = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    place = np.array([number[key] for key in keys], np.int64)
    return stacks[int(place.tolist().index(int(summed(place, sizes, len(number)).argmax())))]
