"""State of TensorFlow's optimizers that no update needs: second slots for the same weights.

An update op says how many slots an optimizer has for each weight: of ``ResourceApplyAdam`` ``m``
and ``v`` (tensorflow/core/ops/training_ops.cc). They begin as zeros of the weight's shape.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.memory.at_peak import AtPeak
from peakline.memory.signatures import History, dimensions

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


def second_slots(history: History, found: AtPeak) -> SecondSlots | None:
    """Slots at the peak of which each weight has twice as many as its update reads, or more."""
    ops = history.signatures.ops
    named = {op: match[1] for op in ops if (match := _APPLY.search(op))}
    slots = {op: _SLOTS[kind] for op, kind in named.items() if kind in _SLOTS}
    if not slots:
        return None
    update = max(slots, key=lambda op: slots[op])
    is_zeros, is_weight = _of_kinds(history, found)
    shapes = history.signatures.shape[np.maximum(found.codes, 0)]
    rows: list[int] = []
    needed = saved = 0
    for shape in np.unique(shapes[is_zeros]).tolist():
        zeros = np.flatnonzero(is_zeros & (shapes == shape))
        weights = int((is_weight & (shapes == shape)).sum())
        most = slots[update] * weights
        if weights and zeros.size >= 2 * most:
            rows += found.rows[zeros].tolist()
            needed += most
            # Rounded sizes differ: what goes is a share of them all.
            saved += int(found.bytes[zeros].sum()) * (zeros.size - most) // zeros.size
    # An allocator with nothing at its peak has no share of it.
    if not rows or saved < _SHARE * found.peak:
        return None
    return SecondSlots(np.array(rows, np.int64), needed, saved, update)


def _of_kinds(history: History, found: AtPeak) -> tuple[BoolArray, BoolArray]:
    """Which buffers at the peak began as zeros, and which have other content; of those with a shape
    that were there before the step of the peak. An update may copy them, so that they end then.
    """
    signatures = history.signatures
    has_shape = np.array([bool(dimensions(text)) for text in signatures.shapes], np.bool_)
    zeros = np.array([_ZEROS.search(op) is not None for op in signatures.ops], np.bool_)
    codes = np.maximum(found.codes, 0)
    lasts = (found.codes >= 0) & has_shape[signatures.shape[codes]]
    lasts &= (found.step < found.own_step) | (found.starts.size == 0)
    is_zeros: BoolArray = zeros[signatures.op[codes]]
    return lasts & is_zeros, lasts & ~is_zeros
