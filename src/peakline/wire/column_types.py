"""The types of a plan's columns: what the message says, and what mostly is enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from peakline.arrays import AnyArray, Int8Array
from peakline.kernels import layout as L
from peakline.wire.arrays import PlanArrays, PlanTable

DType = np.dtype[Any]
_HALF = {np.dtype(np.int64): np.dtype(np.int32), np.dtype(np.uint64): np.dtype(np.uint32)}
_CASES = 256


@dataclass(frozen=True, eq=False)
class ColumnTypes:
    """The types of every column of a plan.

    ``exact`` hold all that a field can; ``narrow`` are half as wide where that can be too little.
    ``piece`` hold what pieces of less than 2 GiB of atoms, and containers of any size, contain,
    rows numbered within the piece; ``piece_widths`` are their bytes. ``is_start`` marks offsets.
    """

    exact: list[DType]
    narrow: list[DType]
    piece: list[DType]
    piece_widths: Int8Array
    is_start: list[bool]

    @classmethod
    def of(cls, tables: Sequence[PlanTable], arrays: PlanArrays) -> ColumnTypes:
        """Those of some tables."""
        exact: list[DType] = []
        narrow: list[DType] = []
        piece: list[DType] = []
        for index, table in enumerate(tables):
            is_atom = arrays.nodes[index, L.N_PHASE] == 1
            filtered, ids = arrays.filter_column(index)
            for c, column in enumerate(table.columns):
                dtype = np.dtype(column.dtype)
                exact.append(dtype)
                if column.role == "case":
                    narrow.append(np.dtype(np.uint8))
                    dtype = np.dtype(np.uint8 if arrays.fields <= _CASES else np.int32)
                else:
                    narrow.append(_HALF.get(dtype, dtype))
                    if c == 0 or (column.role == "length" and is_atom):
                        dtype = np.dtype(np.int32)
                    elif c == filtered and ids <= _CASES:
                        dtype = np.dtype(np.uint8)
                piece.append(dtype)
        widths = np.array([dtype.itemsize for dtype in piece], np.int8)
        starts = [column.role == "start" for table in tables for column in table.columns]
        return cls(exact, narrow, piece, widths, starts)


def fits(values: AnyArray, dtype: DType) -> bool:
    """Whether a type of integers holds all values."""
    if not values.size:
        return True
    info = np.iinfo(dtype)
    return bool(values.min() >= info.min and values.max() <= info.max)
