"""The kind of work that an instruction is, in XLA's words.

``HloInstruction::ToCategory`` in ``xla/hlo/ir/hlo_instruction.cc``; XProf shows the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int32Array
from peakline.tables.columns import Names

_UNARY = (
    "abs acos acosh asin asinh atanh bitcast-convert cbrt ceil convert copy cosh cosine "
    "count-leading-zeros erf exponential exponential-minus-one floor imag is-finite log "
    "log-plus-one logistic negate not popcnt real reduce-precision round-nearest-afz "
    "round-nearest-even rsqrt sign sine sinh sqrt tan tanh"
)
_MORE = (
    "add and atan2 compare complex divide maximum minimum mulhi multiply or power remainder "
    "shift-left shift-right-arithmetic shift-right-logical stochastic-convert subtract xor "
    "clamp select map rng"
)
ELEMENTWISE = frozenset(f"{_UNARY} {_MORE}".split())
"""Opcodes that compute each element of the result from one element of every operand, but for
``bitcast-convert`` between types of different widths.
"""
_FORMATTING = frozenset(("transpose", "copy", "reshape", "dynamic-reshape"))
_FUSIONS = {"kLoop": "loop", "kInput": "input", "kOutput": "output", "kCustom": "custom"}


def category_of(
    opcode: str,
    fusion_kind: str = "",
    *,
    is_base_dilated: bool = False,
    is_window_dilated: bool = False,
    changes_rank: bool = False,
) -> str:
    """The kind of work. ``changes_rank`` is of a ``bitcast-convert`` whose result has more or fewer
    dimensions than its operand.
    """
    if opcode == "fusion":
        kind = _FUSIONS.get(fusion_kind)
        return f"{kind} fusion" if kind else "fusion"
    if opcode == "convolution":
        base = " base-dilated" if is_base_dilated else ""
        return f"convolution{base}{' window-dilated' if is_window_dilated else ''}"
    if opcode in _FORMATTING:
        return "data formatting"
    if opcode == "constant" or (opcode in ELEMENTWISE and not changes_rank):
        return "non-fusion elementwise"
    return opcode


def categories_of(
    opcodes: Names, fusion_kinds: Names, base: BoolArray, window: BoolArray, rank: BoolArray
) -> Names:
    """The categories of many instructions: ``base`` and ``window`` mark those with dilated windows,
    ``rank`` those whose result has another number of dimensions than their first operand.
    """
    flags = base.astype(np.int64) + 2 * window + 4 * rank
    kinds: Sequence[AnyArray] = (opcodes.codes, fusion_kinds.codes, flags)
    key = (kinds[0].astype(np.int64) * (len(fusion_kinds.values) + 1) + kinds[1] + 1) * 8 + kinds[2]
    _, first, code = np.unique(key, return_index=True, return_inverse=True)
    texts = [
        category_of(
            opcodes[row] or "",
            fusion_kinds[row] or "",
            is_base_dilated=bool(base[row]),
            is_window_dilated=bool(window[row]),
            changes_rank=bool(rank[row]),
        )
        for row in first.tolist()
    ]
    result = Names.encode(texts)
    codes: Int32Array = result.codes[code]
    return Names(codes, result.values)
