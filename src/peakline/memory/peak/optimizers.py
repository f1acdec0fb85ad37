"""Memory that optimizers and their gradients need although no update does: temporaries of all
weights at once, second slots, and gradients as large as a table of embeddings.

The foreach implementation of PyTorch's optimizers, their default on GPUs, "uses ~ sizeof(params)
more peak memory than the for-loop version due to the intermediates being a tensorlist vs just one
tensor" (pytorch.org/docs/stable/generated/torch.optim.Adam.html: ``foreach``). Its functions are
``_multi_tensor_adam`` and the like (torch/optim), its ops ``_foreach_mul`` and the like.

An update op of TensorFlow says how many slots an optimizer has for each weight: of
``ResourceApplyAdam`` ``m`` and ``v`` (tensorflow/core/ops/training_ops.cc). They begin as zeros of
the weight's shape.

``torch.nn.Embedding`` without ``sparse=True`` makes a gradient for its whole weight
(``embedding_dense_backward``, aten/src/ATen/native/Embedding.cpp): zeros, to which the gradients
of the rows that were looked up are added. It lives until ``zero_grad``, mostly in the next step.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array, IntpArray
from peakline.kernels.memory_layout import ALLOCATION
from peakline.memory.origins.op_events import OpEvents
from peakline.memory.origins.stacks import NOTHING, Mark, Origins, Stack, marks_of
from peakline.memory.peak.buffers import AtPeak, peak_without
from peakline.memory.signatures import History, dimensions
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
    history: History, result: AtPeak, origins: Origins | None, ops: OpEvents | None
) -> OptimizerTemporaries | None:
    """The temporaries of an optimizer's step at the peak, where they are of several weights.

    A run of such a step is all that is allocated from the first allocation inside of it to the next
    outside; its temporaries end within the run. State of the optimizer lives on, and is none.
    """
    if not result.has_ends or not _inside(history, np.array([result.row]), origins, ops).any():
        return None
    own = history.rows_of(result.allocator)
    made = own[(history.lifetimes.kind[own] == ALLOCATION) & ~history.was_there[own]]
    passing = _passing(history, made, _inside(history, made, origins, ops))
    ends = history.lifetimes.end[passing].astype(np.int64)
    rows = passing[(passing <= result.row) & (ends > result.row)]
    stacks = [NOTHING] * rows.size if origins is None else origins.of(rows)
    if not _is_of_several(history, rows, stacks, result.peak):
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
    result = np.zeros(rows.size, np.bool_) if ops is None else ops.is_optimizer[rows]
    if origins is None:
        return result
    events = history.events
    ids = np.where(events.is_valid("stack_id")[rows], events.array("stack_id")[rows], -1)
    by_stack: BoolArray = (marks_of(origins.stacks, ids) & int(Mark.OPTIMIZER)) != 0
    return result | by_stack


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


_SLOTS = {
    "Adam": 2, "AdamWithAmsgrad": 3, "AdaMax": 2, "Adadelta": 2, "RMSProp": 2,
    "CenteredRMSProp": 3, "Ftrl": 2, "FtrlV2": 2, "AdagradDA": 2,
}  # fmt: skip
"""Slots of those with two or more: beside one, zeros of the same shape may be for a sum."""
_APPLY = re.compile(r"(?:^|/)(?:Resource)?(?:Sparse)?Apply([A-Z][A-Za-z0-9]*?)(?:_\d+)?$")
_ZEROS = re.compile(r"(?:^|/)(?:Fill|Zeros(?:Like)?|zeros(?:_like)?)(?:_\d+)?$")
_SHARE = 0.10
"""It counts from this share of the peak on."""


@dataclass(frozen=True, eq=False)
class SecondSlots:
    """``rows`` are the zeros at the peak, ``needed`` how many of them one optimizer has,
    ``saved_bytes`` what the others take; ``update`` is the op that says so.
    """

    rows: Int64Array
    needed: int
    saved_bytes: int
    update: str


def second_slots(history: History, result: AtPeak) -> SecondSlots | None:
    """Slots at the peak of which each weight has twice as many as its update reads, or more."""
    ops = history.signatures.ops
    named = {op: match[1] for op in ops if (match := _APPLY.search(op))}
    slots = {op: _SLOTS[kind] for op, kind in named.items() if kind in _SLOTS}
    if not slots:
        return None
    update = max(slots, key=lambda op: slots[op])
    is_zeros, is_weight = _of_kinds(history, result)
    shapes = history.signatures.shape[np.maximum(result.codes, 0)]
    rows: list[int] = []
    needed = saved = 0
    for shape in np.unique(shapes[is_zeros]).tolist():
        zeros = np.flatnonzero(is_zeros & (shapes == shape))
        weights = int((is_weight & (shapes == shape)).sum())
        most = slots[update] * weights
        if weights and zeros.size >= 2 * most:
            rows += result.rows[zeros].tolist()
            needed += most
            # Rounded sizes differ: what goes is a share of them all.
            saved += int(result.bytes[zeros].sum()) * (zeros.size - most) // zeros.size
    # An allocator with nothing at its peak has no share of it.
    if not rows or saved < _SHARE * result.peak:
        return None
    return SecondSlots(np.array(rows, np.int64), needed, saved, update)


def _of_kinds(history: History, result: AtPeak) -> tuple[BoolArray, BoolArray]:
    """Which buffers at the peak began as zeros, and which have other content; of those with a shape
    that were there before the step of the peak. An update may copy them, so that they end then.
    """
    signatures = history.signatures
    has_shape = np.array([bool(dimensions(text)) for text in signatures.shapes], np.bool_)
    zeros = np.array([_ZEROS.search(op) is not None for op in signatures.ops], np.bool_)
    codes = np.maximum(result.codes, 0)
    lasts = (result.codes >= 0) & has_shape[signatures.shape[codes]]
    lasts &= (result.step < result.own_step) | (result.starts.size == 0)
    is_zeros: BoolArray = zeros[signatures.op[codes]]
    return lasts & is_zeros, lasts & ~is_zeros


DENSE_OP = "aten::embedding_dense_backward"
SPARSE = 4.0
"""It is worth a sparse one when it is so many times as large as the gradients of the rows."""
_WIDTH = 4
"""Bytes of a number: the least that weights have where gradients are not scaled."""


@dataclass(frozen=True, eq=False)
class DenseGradients:
    """``rows`` are the allocations of those at the peak, ``peak_after`` what the peak would be
    without any at any time, but with the gradients of the rows that were used.
    """

    rows: Int64Array
    bytes: int
    peak_after: int


def dense_gradients(history: History, result: AtPeak, ops: OpEvents) -> DenseGradients | None:
    """Those at the peak, None without any; only where shapes of inputs are recorded."""
    if DENSE_OP not in ops.names or not ops.inputs.is_recorded:
        return None
    within = ops.is_within(DENSE_OP)
    codes = history.signatures.codes
    mine: list[int] = []
    used: dict[int, int] = {}
    for row in result.rows[within[result.rows]].tolist():
        needed = _WIDTH * ops.elements_read(row)
        if needed and history.allocated[row] >= SPARSE * needed:
            mine.append(row)
            used[int(codes[row])] = max(needed, used.get(int(codes[row]), 0))
    if not mine:
        return None
    rows = np.array(mine, np.int64)
    own = history.rows_of(result.allocator)
    # Those of other steps are of the same op and size.
    every = own[within[own] & np.isin(codes[own], list(used)) & (history.allocated[own] > 0)]
    goes = history.allocated[every] - np.array([used[code] for code in codes[every].tolist()])
    total = int(history.allocated[rows].sum())
    return DenseGradients(rows, total, peak_without(history, result.allocator, every, goes))
