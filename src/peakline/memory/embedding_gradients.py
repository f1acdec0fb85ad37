"""Gradients of embeddings that are as large as the whole table, of which a step uses few rows.

``torch.nn.Embedding`` without ``sparse=True`` makes such a gradient for its weight
(``embedding_dense_backward``, aten/src/ATen/native/Embedding.cpp): zeros, to which the gradients
of the rows that were looked up are added. It lives until ``zero_grad``, mostly in the next step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array
from peakline.memory.at_peak import AtPeak
from peakline.memory.op_events import OpEvents
from peakline.memory.peak_without import peak_without
from peakline.memory.signatures import History

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


def dense_gradients(history: History, found: AtPeak, ops: OpEvents) -> DenseGradients | None:
    """Those at the peak, None without any; only where shapes of inputs are recorded."""
    if DENSE_OP not in ops.names or not ops.inputs.is_recorded:
        return None
    within = ops.is_within(DENSE_OP)
    codes = history.signatures.codes
    mine: list[int] = []
    used: dict[int, int] = {}
    for row in found.rows[within[found.rows]].tolist():
        needed = _WIDTH * ops.elements_read(row)
        if needed and history.allocated[row] >= SPARSE * needed:
            mine.append(row)
            used[int(codes[row])] = max(needed, used.get(int(codes[row]), 0))
    if not mine:
        return None
    rows = np.array(mine, np.int64)
    own = history.rows_of(found.allocator)
    # Those of other steps are of the same op and size.
    every = own[within[own] & np.isin(codes[own], list(used)) & (history.allocated[own] > 0)]
    goes = history.allocated[every] - np.array([used[code] for code in codes[every].tolist()])
    total = int(history.allocated[rows].sum())
    return DenseGradients(rows, total, peak_without(history, found.allocator, every, goes))
