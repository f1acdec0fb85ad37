"""Tensors that are repeated for each of many items, and then joined to them or computed with.

Framework functions that repeat write every copy out: ``tf.tile`` and ``tf.repeat``, ``jnp.tile``,
``torch.Tensor.repeat``, where ``expand`` makes a view (their pages of PyTorch's documentation). A
product with what is joined is the sum of a product with each part, so the part that is the same for
many items need not be repeated before it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from peakline.memory.at_peak import AtPeak
from peakline.memory.signatures import History, dimensions
from peakline.trace.work_classes import Work, work_of

REPEATS = frozenset((
    "tile", "repeat", "repeat_interleave", "broadcastto", "broadcast_to", "broadcast_in_dim",
    "expand", "expand_as",
))  # fmt: skip
"""Ops that write a tensor again and again."""
WRITTEN_OUT = frozenset(("tile", "repeat", "repeat_interleave"))
"""Those of them that never are views."""
_PART = 0.25
"""What is repeated is so much of what it is joined into, or more."""
_DEEP = 3
"""Items of several examples, each a vector, make so many dimensions."""
_COMBINES = frozenset(
    "gt ge lt le ne eq greaterequal lessequal notequal greater_equal less_equal "
    "not_equal where select selectv2 logaddexp logaddexp2 xlogy xdivy hypot exp2 remainder "
    "floormod floordiv floor_divide true_divide bitwise_and bitwise_or bitwise_xor "
    "bitwiseand bitwiseor bitwisexor logicaland logicalor logicalnot __and__ __or__ __xor__ "
    "isclose heaviside copysign fmax fmin complex polar mse_loss l1_loss smooth_l1_loss "
    "huber_loss kl_div cosine_similarity pairwise_distance".split()
)
"""Element-wise ops that `peakline.trace.work_classes` has no kind for, and functions of them."""
_ELEMENTWISE = frozenset((Work.ELEMENTWISE, Work.CAST, Work.LAYOUT))


def is_elementwise(op_type: str) -> bool:
    """Whether an op makes each number of its result of one of each of its inputs, which broadcast;
    copies of what is broadcast already count too. Products and recurrent layers make what they
    need.
    """
    is_known = op_type in _COMBINES or op_type.rstrip("_") in _COMBINES
    return is_known or work_of(f"aten::{op_type}", "") in _ELEMENTWISE


def joins_repeated(
    history: History, found: AtPeak, joined: int, type_of: Callable[[int], str]
) -> bool:
    """Whether an op joined what had been repeated to other tensors of as many items: the buffer of
    the record ``joined`` has three dimensions or more, and when it was made a buffer of the same
    step lived that an op that repeats had made, a part of it, with the same dimensions but one; as
    far as dimensions are recorded.
    """
    sides = _sides(history, joined)
    if 0 < len(sides) < _DEEP:
        return False
    own = history.rows_of(found.allocator)
    before = own[: int(np.searchsorted(own, joined))]
    if found.starts.size:
        step = int(np.searchsorted(found.starts, joined, "right"))
        before = before[np.searchsorted(found.starts, before, "right") == step]
    whole, end = int(history.requested[joined]), history.lifetimes.end[before]
    is_part = (history.requested[before] >= _PART * whole) & (history.requested[before] < whole)
    parts = before[is_part & ((end < 0) | (end > joined))]
    parts = parts[history.signatures.codes[parts] >= 0]
    first = np.unique(history.signatures.codes[parts], return_index=True)[1]
    return any(
        (not sides or _differ_in_one(sides, _sides(history, row))) and type_of(row) in REPEATS
        for row in parts[first].tolist()
    )


def _sides(history: History, row: int) -> tuple[int, ...]:
    return dimensions(history.signatures[int(history.signatures.codes[row])].shape) or ()


def _differ_in_one(joined: tuple[int, ...], part: tuple[int, ...]) -> bool:
    """Whether ``part`` is shorter in one dimension, and as long in the others."""
    differ = [a > b for a, b in zip(joined, part, strict=False) if a != b]
    return len(joined) == len(part) and differ == [True]
