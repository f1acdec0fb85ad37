"""Nesting and self time of events, with as much room as they turn out to need."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from peakline.kernels import trace_nesting
from peakline.kernels.trace_layout import MOST_ROWS

__all__ = ["nest_lines", "own_times"]

_Array = npt.NDArray[Any]
_OPEN = 256
"""So many open events have room at first."""


def nest_lines(
    start: _Array,
    end: _Array,
    first: _Array,
    nests: _Array,
    parent: _Array,
    row: _Array,
    own: _Array,
) -> None:
    """Write ``parent``, ``row`` and ``own``, as `peakline.kernels.trace_nesting.nest` does."""
    room, row_end = _OPEN, np.empty(MOST_ROWS, np.int64)
    while not trace_nesting.nest(
        start, end, first, nests, parent, row, own, row_end, np.empty((2, room), np.int64)
    ):
        room *= 4


def own_times(
    start: _Array,
    end: _Array,
    event: _Array,
    first: _Array,
    nests: _Array,
    total: _Array,
    own: _Array,
) -> None:
    """Write ``total`` and ``own``, as `peakline.kernels.trace_nesting.self_times` does."""
    room = _OPEN
    while not trace_nesting.self_times(
        start, end, event, first, nests, total, own, np.empty((3, room), np.int64)
    ):
        room *= 4
