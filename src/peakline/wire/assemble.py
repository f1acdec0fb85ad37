"""Assembling what the kernel stored into tables, in types no wider than needed."""

from __future__ import annotations

from typing import Any

import numpy as np

from peakline.arrays import AnyArray, BoolArray
from peakline.kernels import layout as L
from peakline.wire.plan import Plan
from peakline.wire.tables import Spans, Union, WireColumn, WireTable
from peakline.wire.walker import I64, Store


def narrow_dtypes(plan: Plan, low: I64, high: I64) -> list[np.dtype[Any]]:
    """The narrowest useful type of every column, given the values that occur."""
    dtypes: list[np.dtype[Any]] = []
    info = np.iinfo(np.int32)
    for index, table in enumerate(plan.tables):
        for c, column in enumerate(table.columns):
            dtype = np.dtype(column.dtype)
            lo, hi = (
                int(low[plan.arrays.column_of[index] + c]),
                int(high[plan.arrays.column_of[index] + c]),
            )
            empty = lo > hi
            if column.role == "case":
                dtype = np.dtype(np.uint8 if empty or hi < 256 else np.int32)
            elif dtype == np.int64 and (empty or (lo >= info.min and hi <= info.max)):
                dtype = np.dtype(np.int32)
            elif dtype == np.uint64 and (empty or (lo >= 0 and hi < 1 << 32)):
                dtype = np.dtype(np.uint32)
            dtypes.append(dtype)
    return dtypes


def stream_dtypes(plan: Plan) -> list[np.dtype[Any]]:
    """Types that hold whatever atoms of less than 2 GiB, and containers of any size, contain."""
    dtypes: list[np.dtype[Any]] = []
    for index, table in enumerate(plan.tables):
        kept = plan.arrays.filter_column(index)
        for c, column in enumerate(table.columns):
            dtype = np.dtype(column.dtype)
            if c == 0 or (column.role == "length" and plan.arrays.nodes[index, L.N_PHASE] == 1):
                dtype = np.dtype(np.int32)
            elif column.role == "case":
                dtype = np.dtype(np.uint8 if plan.arrays.fields <= 256 else np.int32)
            elif c == kept[0] and kept[1] <= 256:
                dtype = np.dtype(np.uint8)
            dtypes.append(dtype)
    return dtypes


def assemble(
    plan: Plan,
    stores: list[Store],
    rows: I64,
    dtypes: list[np.dtype[Any]],
    *,
    whole: bool = True,
) -> dict[str, WireTable]:
    """Tables from the filled stores (one per phase).

    Rows of oneof messages that a later member replaced are dropped. While the containers are not
    ``whole`` theirs stay, with parent -1, so that rows keep their numbers from part to part.
    """
    tables: dict[str, WireTable] = {}
    for index, table in enumerate(plan.tables):
        store = stores[int(plan.arrays.nodes[index, L.N_PHASE])]
        count = slice(0, int(rows[index]))

        def get(c: int, index: int = index, store: Store = store, count: slice = count) -> Any:
            column = plan.arrays.column_of[index] + c
            return store.column(column, count, dtypes[column])

        columns: dict[str, WireColumn] = {}
        for c, column in enumerate(table.columns[1:], start=1):
            if column.role == "value":
                columns[column.name] = get(c)
            elif column.role == "start":
                columns[column.name] = Spans(get(c), get(c + 1))
            elif column.role == "case":
                columns.setdefault(f"{column.name}.case", get(c))
            elif column.role == "bits":
                case = table.find(column.name, "case")
                columns[column.name] = Union(get(case), get(c), get(c + 1))
        tables[table.path] = WireTable(table.path, count.stop, get(0), columns)
    return _without_dead(plan, tables, whole=whole)


def _without_dead(plan: Plan, tables: dict[str, WireTable], *, whole: bool) -> dict[str, WireTable]:
    """Drop rows of oneof messages that a later member replaced, and all that hangs on them."""
    alive: dict[int, BoolArray] = {}
    for index, table in enumerate(plan.tables):
        got = tables[table.path]
        if not whole and plan.arrays.nodes[index, L.N_PHASE] == 0:
            continue
        if table.frame != index and table.message is not None and (got.parent < 0).any():
            alive[index] = got.parent >= 0
    if not alive:
        return tables
    position = {path: i for i, path in enumerate(tables)}
    changed = True
    while changed:
        changed = False
        for index, table in enumerate(plan.tables):
            got = tables[table.path]
            mask = alive[index].copy() if index in alive else np.ones(got.rows, np.bool_)
            parents = _parent_tables(plan, index, got)
            for above in np.unique(parents):
                if int(above) in alive:
                    at = np.flatnonzero((parents == above) & mask)
                    mask[at] = alive[int(above)][got.parent[at]]
            if not mask.all() and (index not in alive or mask.sum() < alive[index].sum()):
                alive[index], changed = mask, True
    renumber = {index: np.cumsum(mask) - 1 for index, mask in alive.items()}
    result: dict[str, WireTable] = {}
    for path, got in tables.items():
        index = position[path]
        parents, parent = _parent_tables(plan, index, got), got.parent.copy()
        for above in np.unique(parents):
            if int(above) in renumber:
                at = np.flatnonzero((parents == above) & (parent >= 0))
                parent[at] = renumber[int(above)][parent[at]]
        mask = alive.get(index, np.ones(got.rows, np.bool_))
        columns: dict[str, WireColumn] = {
            name: c[mask] if isinstance(c, np.ndarray) else c.take(mask)
            for name, c in got.columns.items()
        }
        result[path] = WireTable(path, int(mask.sum()), parent[mask], columns)
    return result


def _parent_tables(plan: Plan, index: int, table: WireTable) -> AnyArray:
    recursion = table.columns.get("@parent_table")
    if isinstance(recursion, np.ndarray):
        return recursion
    return np.full(table.rows, plan.tables[index].parent)
