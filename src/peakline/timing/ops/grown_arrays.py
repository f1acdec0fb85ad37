"""Arrays that are copied to add a little to them: caches of keys and values, buffers of replay.

``torch.cat([cache, new])`` copies all of the cache for each addition. It is one where the next such
call begins with what the last one made, or where what it begins with is the array of that size less
its oldest part (``cache[:, 1:]``), and no gradient flows through it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray
from peakline.tables import Profile
from peakline.timing.ops.in_steps import StepOps
from peakline.trace.autograd import autograd_of
from peakline.trace.op_inputs import DIMS, all_dims_of, texts_of

_JOINS = ("aten::cat", "aten::concat", "aten::concatenate")
_SLICES = ("aten::slice", "aten::narrow", "aten::as_strided")
_FEW = 0.25
"""What is added is so much of the array, at most."""
_MOST_OF = 0.5
"""Of the time of all joins, that of such ones."""
_FEWEST = 3
_BEFORE = 8
"""So many executions before a call its argument is cut."""


@dataclass(frozen=True)
class GrownArray:
    """``array`` is the largest that is copied, to add ``added``; both are shapes. ``is_shifted``:
    its oldest part goes, so that it stays as large.
    """

    array: tuple[int, ...]
    added: tuple[int, ...]
    is_shifted: bool


def grown_array(profile: Profile, ops: StepOps, chosen: BoolArray) -> GrownArray | None:
    """What most of the time of the ``chosen`` joins goes to; None where they join other things,
    and where no shapes were recorded.
    """
    names = [name for name, _ in ops.keys]
    joins = np.array([name in _JOINS for name in names], np.bool_)[ops.op] & chosen
    joins &= autograd_of(profile).number[ops.event] < 0
    if int(joins.sum()) < _FEWEST:
        return None
    codes, texts = texts_of(profile, DIMS)
    order = np.argsort(ops.trace.start[ops.event], kind="stable")
    known: set[tuple[int, ...]] = set()
    took, calls = 0, 0
    largest: GrownArray | None = None
    for place in np.flatnonzero(joins[order]).tolist():
        event = int(ops.event[order[place]])
        parts = _parts(texts[codes[event]]) if codes[event] >= 0 else None
        if parts is None:
            continue
        array, added, whole = parts
        is_shifted = _is_cut(profile, ops, names, order[max(place - _BEFORE, 0) : place], whole)
        if array in known or is_shifted:
            took += int(ops.trace.end[event] - ops.trace.start[event])
            calls += 1
            if largest is None or np.prod(array) > np.prod(largest.array):
                largest = GrownArray(array, added, is_shifted)
        known.add(whole)
    if calls < _FEWEST or took < _MOST_OF * ops.covered_ps(chosen) * ops.lanes:
        return None
    return largest


def _parts(dims: str) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
    """The large array that is joined with smaller ones along one axis, what they add, and the
    result; None where it is no such call.
    """
    try:
        shapes = json.loads(dims)[0]
    except (ValueError, RecursionError, LookupError, TypeError):
        return None
    if not isinstance(shapes, list) or len(shapes) < 2:
        return None
    if not all(
        isinstance(shape, list) and shape and all(isinstance(side, int) for side in shape)
        for shape in shapes
    ):
        return None
    table = [tuple(shape) for shape in shapes]
    large = max(table, key=lambda shape: int(np.prod(shape)))
    table.remove(large)
    if any(len(shape) != len(large) for shape in table):
        return None
    differs = {axis for shape in table for axis in range(len(large)) if shape[axis] != large[axis]}
    if len(differs) != 1:
        return None
    (axis,) = differs
    more = sum(shape[axis] for shape in table)
    if not 0 < more <= _FEW * large[axis]:
        return None
    added, whole = (
        (*large[:axis], size, *large[axis + 1 :]) for size in (more, large[axis] + more)
    )
    return large, added, whole


def _is_cut(
    profile: Profile, ops: StepOps, names: list[str], before: object, whole: tuple[int, ...]
) -> bool:
    """Whether the executions just ``before`` a join cut an array of the size of its result."""
    codes, texts = all_dims_of(profile)
    wanted = str(list(whole))
    for row in reversed(np.asarray(before, np.int64).tolist()):
        if names[int(ops.op[row])] not in _SLICES:
            return False
        code = int(codes[ops.event[row]])
        if names[int(ops.op[row])] != "aten::as_strided" and code >= 0 and texts[code] == wanted:
            return True
    return False
