"""Turning a plan's tree of tables into the arrays that the kernel reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from peakline.arrays import Int32Array, Int64Array
from peakline.kernels import layout as L
from peakline.schema.shapes import MessageShape


@dataclass(frozen=True)
class PlanColumn:
    """One kernel column; ``role`` is value, start, length, case or bits of the column ``name``."""

    name: str
    dtype: str
    role: str = "value"


@dataclass
class PlanTable:
    """One table: its path, where it hangs, and its columns (``@parent`` first).

    ``message`` is None for a table of values. ``frame`` is the table of the message that the rows
    are stored with: itself, unless the message is singular.
    """

    path: str
    message: MessageShape | None
    parent: int
    frame: int
    columns: list[PlanColumn] = field(default_factory=list)

    def find(self, name: str, role: str = "value") -> int:
        """Position of a column, or -1."""
        for position, column in enumerate(self.columns):
            if column.name == name and column.role == role:
                return position
        return -1


@dataclass
class FieldSpec:
    """What the kernel does with one field; -1 where something does not apply."""

    action: int
    wire: int = 0
    kind: int = L.AS_IS
    column: int = -1
    child: int = -1
    case: int = -1
    has: int = -1

    @property
    def is_plain(self) -> bool:
        """Whether the field can be set without looking at any other."""
        if self.action in {L.SCALAR, L.SPAN}:
            return self.case < 0 and self.has < 0
        return self.action == L.UNION


_Specs = list[dict[int, FieldSpec]]


@dataclass(frozen=True, eq=False)
class PlanArrays:
    """The kernel's tables: see `peakline.kernels.layout` for their columns.

    ``column_of`` is the first global column of each table, ``columns`` how many there are;
    ``filters`` the ids that filters keep: a table for small ones, all of them, and where each
    filter's begin.
    """

    fields: int
    columns: int
    column_of: list[int]
    spec: Int32Array
    nodes: Int32Array
    descendants: Int32Array
    filters: tuple[Int32Array, Int64Array, Int64Array, Int64Array]

    def filter_column(self, table: int) -> tuple[int, int]:
        """The filtered column of a table and how many ids its filter keeps; (-1, 0) for none."""
        number = int(self.nodes[table, L.N_FILTER])
        if number < 0:
            return -1, 0
        at = self.filters[3]
        column = self.nodes[table, L.N_FILTER_CELL] - self.nodes[table, L.N_CELL]
        return int(column), int(at[number + 1] - at[number])


def frame_order(tables: list[PlanTable]) -> list[int]:
    """Frames in order, each followed by its inline messages, then all tables of values."""
    order: list[int] = []
    for frame, table in enumerate(tables):
        if table.frame == frame:
            order += [frame, *_inline_of(tables, frame)]
    return order + [i for i, table in enumerate(tables) if table.message is None]


def lay_out(
    tables: list[PlanTable],
    specs: _Specs,
    containers: frozenset[int],
    keep: Mapping[str, Int64Array],
) -> PlanArrays:
    """The arrays for tables in `frame_order`; ``keep`` maps ``table.column`` to sorted ids."""
    nodes = np.full((len(tables), L.N_WIDTH), -1, np.int32)
    column_of: list[int] = []
    columns = 0
    for index, table in enumerate(tables):
        column_of.append(columns)
        nodes[index, L.N_COLUMN], nodes[index, L.N_COLUMNS] = columns, len(table.columns)
        nodes[index, L.N_FRAME] = table.frame
        nodes[index, L.N_PHASE] = 0 if table.frame in containers else 1
        nodes[index, L.N_LEAF] = (
            table.frame == index
            and index > 0
            and index not in containers
            and table.message is not None
            and all(spec.is_plain for spec in specs[index].values())
        )
        columns += len(table.columns)
    _lay_out_cells(tables, nodes)
    edges = [{s.child for s in spec.values() if s.child >= 0} for spec in specs]
    descendants = _lay_out_descendants(tables, nodes, edges, containers)
    filters = _lay_out_filters(tables, nodes, containers, keep)
    fields = 1 + max((number for spec in specs for number in spec), default=0)
    if fields > 1 << 16:
        raise ValueError("field numbers above 65535 are not supported")
    spec = _lay_out_fields(tables, nodes, specs, fields)
    return PlanArrays(fields, columns, column_of, spec, nodes, descendants, filters)


def _lay_out_fields(
    tables: list[PlanTable], nodes: Int32Array, specs: _Specs, fields: int
) -> Int32Array:
    out = np.zeros((len(tables) * fields, L.F_WIDTH), np.int32)
    out[:, L.F_CASE_CELL] = out[:, L.F_HAS_CELL] = -1
    for index, by_number in enumerate(specs):
        first = nodes[index, L.N_CELL]
        for number, spec in by_number.items():
            line = out[index * fields + number]
            line[L.F_ACTION], line[L.F_WIRE], line[L.F_KIND] = spec.action, spec.wire, spec.kind
            line[L.F_CELL] = first + spec.column if spec.column >= 0 else 0
            line[L.F_CHILD] = max(spec.child, 0)
            if spec.action == L.INLINE:
                line[L.F_CELL] = _last_inline(tables, spec.child)
            line[L.F_CASE_CELL] = first + spec.case if spec.case >= 0 else -1
            line[L.F_HAS_CELL] = first + spec.has if spec.has >= 0 else -1
    return out


def _inline_of(tables: list[PlanTable], frame: int) -> list[int]:
    return [
        i
        for i, table in enumerate(tables)
        if table.frame == frame and i != frame and table.message is not None
    ]


def _last_inline(tables: list[PlanTable], index: int) -> int:
    """The last inline table below ``index`` (tables of a frame are in depth-first order)."""
    last = index
    for other in range(index + 1, len(tables)):
        above = other
        while above > index and tables[above].frame == tables[index].frame:
            above = tables[above].parent
        if above != index or tables[other].message is None:
            break
        last = other
    return last


def _lay_out_cells(tables: list[PlanTable], nodes: Int32Array) -> None:
    """Give every column a cell in its frame, and every inline message one for its row."""
    for frame, table in enumerate(tables):
        if table.message is None:
            nodes[frame, L.N_CELL], nodes[frame, L.N_LAST] = 0, frame
        if table.frame != frame or table.message is None:
            continue
        inline = _inline_of(tables, frame)
        cells = 0
        for index in [frame, *inline]:
            nodes[index, L.N_CELL] = cells
            cells += len(tables[index].columns)
        for index in inline:
            nodes[index, L.N_ROW_CELL] = cells
            cells += 1
        nodes[frame, L.N_CELLS] = cells
        nodes[frame, L.N_LAST] = inline[-1] if inline else frame
        for index in [frame, *inline]:
            member = tables[index]
            span, recursion = member.find("@span", "start"), member.find("@parent_table")
            if span >= 0:
                nodes[index, L.N_SPAN_CELL] = nodes[index, L.N_CELL] + span
            if recursion >= 0:
                nodes[index, L.N_PARENT_NODE_CELL] = nodes[index, L.N_CELL] + recursion


def _lay_out_descendants(
    tables: list[PlanTable], nodes: Int32Array, edges: list[set[int]], containers: frozenset[int]
) -> Int32Array:
    """Per atomic frame the tables to roll back when one of its rows is dropped."""
    flat: list[int] = []
    for index, table in enumerate(tables):
        nodes[index, L.N_DESCENDANTS] = len(flat)
        if table.frame == index and index not in containers:
            below: set[int] = set()
            queue = [index]
            while queue:
                result = edges[queue.pop()] - below
                below |= result
                queue += result
            flat += sorted(below - {index})
        nodes[index, L.N_DESCENDANTS_END] = len(flat)
    return np.array(flat, np.int32)


def _lay_out_filters(
    tables: list[PlanTable],
    nodes: Int32Array,
    containers: frozenset[int],
    keep: Mapping[str, Int64Array],
) -> tuple[Int32Array, Int64Array, Int64Array, Int64Array]:
    by_path = {table.path: index for index, table in enumerate(tables)}
    small_tables: list[Int32Array] = []
    for number, (path, ids) in enumerate(keep.items()):
        table, _, column = path.rpartition(".")
        index = by_path.get(table, -1)
        position = tables[index].find(column) if index >= 0 else -1
        if position < 0:
            raise ValueError(f"no such column: {path!r}")
        if tables[index].frame != index or index in containers:
            raise ValueError(f"{table!r} cannot be filtered")
        if tables[index].columns[position].dtype.startswith("float"):
            raise ValueError(f"{path!r} is no column of integers")
        # It will hold positions.
        tables[index].columns[position] = PlanColumn(column, "int64")
        nodes[index, L.N_FILTER] = number
        nodes[index, L.N_FILTER_CELL] = nodes[index, L.N_CELL] + position
        small = ids[(ids >= 0) & (ids < 1 << 16)]
        places = np.full(int(small[-1]) + 1 if small.size else 0, -1, np.int32)
        places[small] = np.searchsorted(ids, small)
        small_tables.append(places)
    return (
        np.concatenate([np.zeros(0, np.int32), *small_tables]),
        np.cumsum([0, *(places.size for places in small_tables)], dtype=np.int64),
        np.concatenate([np.zeros(0, np.int64), *keep.values()]),
        np.cumsum([0, *(ids.size for ids in keep.values())], dtype=np.int64),
    )
