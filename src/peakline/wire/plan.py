"""Plans: which fields of a message become which columns of which tables.

A plan is made from the shape of a message (or its descriptor) and field paths:

========================  ==================================================================
path                      gives
========================  ==================================================================
``planes.name``           a column of table ``planes`` (one row per element of ``planes``)
``a.b`` (``b`` repeated   a table ``a.b`` with columns ``@parent`` and ``value``
numbers or strings)
``a.data`` (a oneof)      one `Union` column for all members: case, bits, length
``a.child`` (a message)   where the message lies (a span), not its content
``a.field?``              also a column ``field?``: 1 where the field was present
``a.*``                   every number and string of ``a``
``a.**``                  everything below ``a``, recursion included
``a.@span``               where each ``a`` itself lies
``a.@``                   the rows of ``a``, without columns
========================  ==================================================================

Every table has ``@parent``: the row in the table of the enclosing message (the index of the
root's span for the root). A message type that recurs below itself in a ``**`` is one table whose
``@parent_table`` says which table the parent row is in. Singular recursion is left as a span.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from peakline.arrays import Int64Array
from peakline.kernels import layout as L
from peakline.schema.shapes import FieldShape, MessageShape, OneofShape
from peakline.wire.arrays import FieldSpec, PlanColumn, PlanTable, frame_order, lay_out
from peakline.wire.column_types import ColumnTypes

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

# type of a field (google/protobuf/descriptor.proto) -> (wire type, kind, dtype)
_TYPES: dict[int, tuple[int, int, str]] = {
    1: (_FIXED64, L.AS_IS, "float64"),
    2: (_FIXED32, L.INT32, "float32"),
    3: (_VARINT, L.AS_IS, "int64"),
    4: (_VARINT, L.AS_IS, "uint64"),
    5: (_VARINT, L.INT32, "int32"),
    6: (_FIXED64, L.AS_IS, "uint64"),
    7: (_FIXED32, L.UINT32, "uint32"),
    8: (_VARINT, L.BOOL, "bool"),
    13: (_VARINT, L.UINT32, "uint32"),
    14: (_VARINT, L.INT32, "int32"),  # an enum
    15: (_FIXED32, L.INT32, "int32"),
    16: (_FIXED64, L.AS_IS, "int64"),
    17: (_VARINT, L.ZIGZAG32, "int32"),
    18: (_VARINT, L.ZIGZAG64, "int64"),
}
_STRING, _MESSAGE, _BYTES_FIELD = 9, 11, 12
_SPANS = (_STRING, _BYTES_FIELD, _MESSAGE)


_MOST_TABLES = 8192


@dataclass
class _Request:
    """What the paths name of one message: columns, and children by field name."""

    names: list[str] = field(default_factory=list)
    children: dict[str, _Request] = field(default_factory=dict)
    everything: bool = False


class Plan:
    """Tables for the kernel, made once and used for any number of files.

    ``containers`` names tables (paths; ``""`` is the root) of large messages: damage inside one
    costs only what it hit, and its parts are decoded by several threads. ``keep`` maps
    ``table.column`` to the integers whose rows are wanted: other rows are dropped, with all that
    hangs on them, and the column holds the position in the sorted list instead of the value.

    Raises ValueError for a path that does not fit the message.
    """

    def __init__(
        self,
        message: MessageShape,
        paths: Iterable[str],
        *,
        containers: Sequence[str] = ("",),
        keep: Mapping[str, Iterable[int]] | None = None,
    ) -> None:
        self.message = message
        self.tables: list[PlanTable] = []
        self._specs: list[dict[int, FieldSpec]] = []
        self._everything: set[int] = set()
        self._deferred: list[tuple[int, _Request]] = []
        # The tree of tables, frame by frame so that a frame's tables are neighbours.
        self._new_table("", message, -1, -1)
        self._deferred.append((0, _parse(message, paths)))
        while self._deferred:
            self._fill(*self._deferred.pop(0))
        self.by_path = {table.path: index for index, table in enumerate(self.tables)}
        for path in containers:
            at = self.by_path.get(path, -1)
            if at < 0:
                raise ValueError(f"no such table: {path!r}")
            if self.tables[at].message is None or self.tables[at].frame != at:
                raise ValueError(f"{path!r} is no repeated message")
        if "" not in containers:
            raise ValueError("the root must be a container")
        self.containers = frozenset(self.by_path[path] for path in containers)
        for index in self.containers:
            above = self.tables[index].parent
            while above >= 0:
                if self.tables[above].frame not in self.containers:
                    raise ValueError(f"{self.tables[index].path!r} is below an atomic message")
                above = self.tables[above].parent
        wanted = {path: np.unique(np.fromiter(ids, np.int64)) for path, ids in (keep or {}).items()}
        self._lay_out(wanted)

    def _new_table(self, path: str, message: MessageShape | None, parent: int, frame: int) -> int:
        index = len(self.tables)
        if index >= _MOST_TABLES:
            raise ValueError(f"more than {_MOST_TABLES} tables below {path!r}: name paths instead")
        table = PlanTable(path, message, parent, index if frame < 0 else frame)
        table.columns.append(PlanColumn("@parent", "int64"))
        self.tables.append(table)
        self._specs.append({})
        return index

    def _fill(self, index: int, request: _Request) -> None:
        table = self.tables[index]
        message = table.message
        if message is None:
            raise TypeError(f"{table.path!r} is a table of values")
        if request.everything:
            self._everything.add(index)
            for fd in message.fields:
                if fd.message_type is not None:
                    request.children.setdefault(fd.name, _Request()).everything = True
                elif fd.name not in request.names:
                    request.names.append(fd.name)
        for name in request.names:
            if name == "@span":
                table.columns += _span_columns("@span")
            elif name in message.oneofs_by_name and name not in message.fields_by_name:
                self._union(index, message.oneofs_by_name[name])
            elif name != "@":
                self._leaf(
                    index,
                    message.fields_by_name[name.removesuffix("?")],
                    presence=name.endswith("?"),
                )
        for name, child in request.children.items():
            self._child(index, message.fields_by_name[name], child)

    def _join(self, index: int, name: str) -> str:
        path = self.tables[index].path
        return f"{path}.{name}" if path else name

    def _case(self, index: int, fd: FieldShape) -> int:
        """The case column of the oneof that ``fd`` belongs to, or -1."""
        oneof = fd.containing_oneof
        if oneof is None or len(oneof.fields) < 2:
            return -1
        table = self.tables[index]
        position = table.find(oneof.name, "case")
        if position < 0:
            position = _column_at(table, PlanColumn(oneof.name, "int32", "case"))
            for member in oneof.fields:
                wire = _BYTES if member.type in _SPANS else _TYPES[member.type][0]
                self._specs[index].setdefault(
                    member.number, FieldSpec(L.CASE, wire, case=position)
                ).case = position
        return position

    def _union(self, index: int, oneof: OneofShape) -> None:
        table = self.tables[index]
        case = _column_at(table, PlanColumn(oneof.name, "int32", "case"))
        bits = len(table.columns)
        table.columns.append(PlanColumn(oneof.name, "int64", "bits"))
        table.columns.append(PlanColumn(oneof.name, "int64", "length"))
        for member in oneof.fields:
            before = self._specs[index].get(member.number)
            if before is not None and before.action != L.CASE:
                self._twice(index, member)
            wire, kind, _ = _TYPES.get(member.type, (_BYTES, L.AS_IS, ""))
            self._specs[index][member.number] = FieldSpec(L.UNION, wire, kind, bits, case=case)

    def _leaf(self, index: int, fd: FieldShape, *, presence: bool) -> None:
        table, span = self.tables[index], fd.type in _SPANS
        wire, kind, dtype = _TYPES.get(fd.type, (_BYTES, L.AS_IS, "int64"))
        before = self._specs[index].get(fd.number)
        if fd.is_repeated:
            if presence:
                raise ValueError(f"{self._join(index, fd.name)!r} is repeated: it has no presence")
            if before is not None:
                self._twice(index, fd)
            child = self._new_table(self._join(index, fd.name), None, index, table.frame)
            columns = self.tables[child].columns
            if span:
                columns += _span_columns("value")
            else:
                columns.append(PlanColumn("value", dtype))
            action = L.SPANS if span else L.VALUES
            kind = L.MESSAGE if fd.type == _MESSAGE else kind
            self._specs[index][fd.number] = FieldSpec(action, wire, kind, child=child)
            return
        action = L.SPAN if span else L.SCALAR
        if before is None or before.action == L.CASE:
            column = len(table.columns)
            if span:
                table.columns += _span_columns(fd.name)
            else:
                table.columns.append(PlanColumn(fd.name, dtype))
            case = self._case(index, fd)
            before = FieldSpec(action, wire, kind, column, case=case)
            self._specs[index][fd.number] = before
        elif before.action != action:
            self._twice(index, fd)
        if presence and before.has < 0:
            before.has = len(table.columns)
            table.columns.append(PlanColumn(f"{fd.name}?", "bool"))

    def _twice(self, index: int, fd: FieldShape) -> None:
        raise ValueError(f"{self._join(index, fd.name)!r} named in two ways")

    def _child(self, index: int, fd: FieldShape, request: _Request) -> None:
        table, message = self.tables[index], fd.message_type
        before = self._specs[index].get(fd.number)
        if before is not None and before.action != L.CASE:
            self._twice(index, fd)
        if fd.is_repeated:
            above = self._open_frame(index, message) if request.everything else -1
            if above >= 0:
                _column_at(self.tables[above], PlanColumn("@parent_table", "int32"))
                self._specs[index][fd.number] = FieldSpec(L.FRAME, _BYTES, child=above)
                return
            child = self._new_table(self._join(index, fd.name), message, index, -1)
            self._specs[index][fd.number] = FieldSpec(L.FRAME, _BYTES, child=child)
            self._deferred.append((child, request))
            return
        above = index
        while request.everything and above >= 0 and self.tables[above].frame == table.frame:
            if self.tables[above].message is message:
                self._leaf(index, fd, presence=False)
                return
            above = self.tables[above].parent
        case = self._case(index, fd)
        child = self._new_table(self._join(index, fd.name), message, index, table.frame)
        self._specs[index][fd.number] = FieldSpec(L.INLINE, _BYTES, child=child, case=case)
        self._fill(child, request)

    def _open_frame(self, index: int, message: MessageShape | None) -> int:
        """The frame above ``index`` (not the root) that holds the same message type, or -1."""
        above = self.tables[index].frame
        while above > 0:
            if self.tables[above].message is message and above in self._everything:
                return above
            above = self.tables[self.tables[above].parent].frame
        return -1

    def _lay_out(self, keep: dict[str, Int64Array]) -> None:
        """Put the tables in the kernel's order and make its arrays."""
        order = frame_order(self.tables)
        self.tables = [self.tables[old] for old in order]
        new = {old: position for position, old in enumerate(order)}
        for table in self.tables:
            table.parent = new.get(table.parent, -1)
            table.frame = new[table.frame]
        self.by_path = {table.path: index for index, table in enumerate(self.tables)}
        self.containers = frozenset(new[index] for index in self.containers)
        specs = [self._specs[old] for old in order]
        for spec in specs:
            for field_spec in spec.values():
                field_spec.child = new.get(field_spec.child, -1)
        for index, spec in enumerate(specs):
            if self.tables[index].frame in self.containers:
                continue
            for field_spec in spec.values():
                if field_spec.child in self.containers:
                    path = self.tables[field_spec.child].path
                    raise ValueError(f"{path!r} recurs inside an atomic message")
        self.arrays = lay_out(self.tables, specs, self.containers, keep)
        self.types = ColumnTypes.of(self.tables, self.arrays)


def _column_at(table: PlanTable, column: PlanColumn) -> int:
    """The position of a column, which the table gets where it lacks it."""
    position = table.find(column.name, column.role)
    if position < 0:
        position = len(table.columns)
        table.columns.append(column)
    return position


def _span_columns(name: str) -> list[PlanColumn]:
    return [PlanColumn(name, "int64", "start"), PlanColumn(name, "int64", "length")]


def _parse(message: MessageShape, paths: Iterable[str]) -> _Request:
    root = _Request()
    for path in paths:
        request, descriptor = root, message
        *parents, last = path.split(".")
        for name in parents:
            fd = descriptor.fields_by_name.get(name)
            if fd is None or fd.message_type is None:
                raise ValueError(f"{path!r}: {descriptor.full_name} has no message {name!r}")
            request = request.children.setdefault(name, _Request())
            descriptor = fd.message_type
        _add(request, descriptor, last, path)
    return root


def _add(request: _Request, descriptor: MessageShape, last: str, path: str) -> None:
    if last == "**":
        request.everything = True
        return
    if last == "*":
        names = [f.name for f in descriptor.fields if f.message_type is None and not f.is_repeated]
    elif last in {"@", "@span", *descriptor.oneofs_by_name, *descriptor.fields_by_name} or (
        last.endswith("?") and last[:-1] in descriptor.fields_by_name
    ):
        names = [last]
    else:
        raise ValueError(f"{path!r}: {descriptor.full_name} has no field {last!r}")
    request.names += [name for name in names if name not in request.names]
