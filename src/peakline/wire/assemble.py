"""Assembling what the kernel stored into tables, in types no wider than needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from peakline.arrays import AnyArray, BoolArray
from peakline.kernels import layout as L
from peakline.wire.plan import Plan
from peakline.wire.tables import Spans, Union, WireColumn, WireTable
from peakline.wire.walker import I64


class Stored(Protocol):
    """What holds columns: a `Store`."""

    def column(self, column: int, rows: slice, dtype: np.dtype[Any]) -> AnyArray:
        """Rows of one column as ``dtype``."""


def assemble(
    plan: Plan,
    stores: Sequence[Stored],
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

        def get(c: int, index: int = index, store: Stored = store, count: slice = count) -> Any:
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
