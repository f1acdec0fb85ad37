"""What decoding must give, the slow and obvious way: protobuf's own message objects.

A projection is turned into a schema of its own that has just the fields the paths ask for, typed
so that nothing is lost on the way: floating point as its bits, strings and messages wanted as
spans as bytes, enums as numbers, map entries as the repeated messages they are on the wire, every
singular field with presence. What upb parses with that schema is the expected answer.

Expected and decoded tables are compared as trees of `Row`, because the numbering of rows of
recursive messages follows the wire, which message objects do not remember.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np
from google.protobuf.descriptor import Descriptor, FieldDescriptor, OneofDescriptor
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
)
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from tests.wire.nodes import Node, is_repeated, is_span, parse_paths
from tests.wire.wirebytes import read_fields

from peakline.wire import Spans, Union, WireTable

_RETYPED = {
    FieldDescriptor.TYPE_DOUBLE: FieldDescriptor.TYPE_FIXED64,
    FieldDescriptor.TYPE_FLOAT: FieldDescriptor.TYPE_FIXED32,
    FieldDescriptor.TYPE_ENUM: FieldDescriptor.TYPE_INT32,
    FieldDescriptor.TYPE_STRING: FieldDescriptor.TYPE_BYTES,
    FieldDescriptor.TYPE_MESSAGE: FieldDescriptor.TYPE_BYTES,
}


@dataclass
class Row:
    """One row with all that hangs on it: values by column, rows below by table."""

    columns: dict[str, Any] = field(default_factory=dict)
    below: dict[str, list[Row]] = field(default_factory=dict)


class Projection:
    """The tables that ``paths`` ask of ``message``, and how protobuf itself would fill them."""

    def __init__(self, message: Descriptor, paths: Iterable[str]) -> None:
        self.root = parse_paths(message, paths)

    @cached_property
    def nodes(self) -> dict[str, Node]:
        """Message tables by path."""
        return {node.path: node for node in self.root.walk()}

    @cached_property
    def tables(self) -> dict[str, Node]:
        """The node whose frame a table belongs to, by table path (value tables too)."""
        result = dict(self.nodes)
        for node in self.nodes.values():
            result |= {node.join(name): node for name in node.values}
        return result

    def frames(self) -> list[Node]:
        """Nodes that may be containers or have a filter, the root first."""
        return [node for node in self.nodes.values() if node.is_frame]

    def parent_path(self, path: str) -> str:
        """The table that a table's parent rows are in, where the message does not recur."""
        return path.rpartition(".")[0]

    # What protobuf says.

    @cached_property
    def message_class(self) -> Any:
        """The class of the projection's own schema."""
        file = FileDescriptorProto(name="projection.proto", package="projection", syntax="proto2")
        names = {node: f"T{i}" for i, node in enumerate(self.nodes.values())}
        for node, name in names.items():
            _describe(file.message_type.add(name=name), node, names)
        pool = DescriptorPool()
        pool.AddSerializedFile(file.SerializeToString())
        return GetMessageClass(pool.FindMessageTypeByName("projection.T0"))

    def expected(
        self,
        data: bytes,
        spans: Sequence[tuple[int, int]] | None = None,
        keep: Mapping[str, Iterable[int]] | None = None,
    ) -> list[Row]:
        """One tree per root. Raises protobuf's DecodeError where it cannot read the bytes."""
        filters = {column: sorted(set(ids)) for column, ids in (keep or {}).items()}
        result = []
        for start, length in [(0, len(data))] if spans is None else spans:
            piece = data[start : start + length]
            row = _row(self.root, self.message_class.FromString(piece), [piece], filters)
            assert row is not None
            result.append(row)
        self._put_in_order(result)
        return result

    # What was decoded.

    def observed(
        self,
        tables: Mapping[str, WireTable],
        buffer: Any,
        keep: Iterable[str] = (),
        *,
        streamed: bool = False,
    ) -> list[Row]:
        """The same trees from decoded tables. Fails where a parent or a span is out of range.

        In ``streamed`` tables a replaced oneof message of a container has the parent -1; it is
        left out with all that hangs on it.
        """
        assert set(tables) == set(self.tables)
        paths = list(tables)
        rows = {path: self._rows(path, tables[path], buffer, set(keep)) for path in paths}
        roots = tables[""].parent.tolist()
        assert roots == list(range(len(roots)))
        for path in paths:
            if not path:
                continue
            table, own = tables[path], rows[path]
            above = self._parents(path, table, paths)
            parents = table.parent.tolist()
            may_be_replaced = streamed and path in self.nodes and not self.nodes[path].is_frame
            in_order = [at for at in parents if at >= 0 or not may_be_replaced]
            if len(set(above)) <= 1 and not self._is_recursive(path):
                assert in_order == sorted(in_order), f"{path}: parents out of order"
            for row, where, at in zip(own, above, parents, strict=True):
                if at == -1 and may_be_replaced:
                    continue
                assert 0 <= at < len(rows[where]), f"{path}: parent {at} of {where}"
                rows[where][at].below.setdefault(path, []).append(row)
        self._put_in_order(rows[""])
        return rows[""]

    def _put_in_order(self, rows: list[Row], path: str = "") -> list[str]:
        """Sort what is below ``rows`` of a table where it comes from several fields.

        Gives the text of each row, which is the same however the row was put together.
        """
        texts = []
        for row in rows:
            text = repr(sorted(row.columns.items()))
            for name in sorted(row.below):
                below = self._put_in_order(row.below[name], name)
                if self.nodes[path].is_mixed(name):
                    pairs = sorted(zip(below, row.below[name], strict=True), key=itemgetter(0))
                    below, row.below[name] = ([pair[n] for pair in pairs] for n in range(2))
                text += f"{name}: {below}"
            texts.append(text)
        return texts

    def _is_recursive(self, path: str) -> bool:
        node: Node | None = self.tables[path]
        while node is not None:
            if node.recurs:
                return True
            node = node.above
        return False

    def _parents(self, path: str, table: WireTable, paths: list[str]) -> list[str]:
        if "@parent_table" in table.columns:
            return [paths[index] for index in table.array("@parent_table").tolist()]
        return [self.parent_path(path)] * table.rows

    def _rows(self, path: str, table: WireTable, buffer: Any, keep: set[str]) -> list[Row]:
        """The rows of one table, their columns as plain Python values."""
        node = self.tables[path]
        columns: dict[str, list[Any]] = {}
        for name, column in table.columns.items():
            if isinstance(column, Spans):
                columns[name] = _texts(column, buffer)
            elif isinstance(column, Union):
                columns[name] = _members(node.message.oneofs_by_name[name], column, buffer)
            elif name != "@parent_table":
                columns[name] = _plain(column, filtered=f"{path}.{name}" in keep)
        if node.path == path:
            self._check_columns(node, columns)
        assert len(table.parent) == table.rows
        assert all(len(values) == table.rows for values in columns.values())
        return [
            Row({name: values[i] for name, values in columns.items()}) for i in range(table.rows)
        ]

    @staticmethod
    def _check_columns(node: Node, columns: dict[str, list[Any]]) -> None:
        expected = {*node.leaves, *node.unions, *(f"{c.name}.case" for c in node.cases())}
        expected |= {f"{name}?" for name, presence in node.leaves.items() if presence}
        expected |= {"@span"} if node.own_span else set()
        assert set(columns) == expected, node.path


# From nodes to a schema.


def _describe(message: DescriptorProto, node: Node, names: dict[Node, str]) -> None:
    oneofs = {oneof.name: i for i, oneof in enumerate(node.cases())}
    for name in oneofs:
        message.oneof_decl.add(name=name)
    wanted = {*node.leaves, *node.values, *node.children}
    wanted |= {member.name for oneof in node.cases() for member in oneof.fields}
    for fd in node.message.fields:
        if fd.name not in wanted:
            continue
        made = message.field.add(name=fd.name, number=fd.number)
        made.label = (
            FieldDescriptorProto.LABEL_REPEATED
            if is_repeated(fd)
            else FieldDescriptorProto.LABEL_OPTIONAL
        )
        child = node.children.get(fd.name)
        if child is None:
            made.type = _RETYPED.get(fd.type, fd.type)  # type: ignore[assignment]
        else:
            made.type = FieldDescriptorProto.TYPE_MESSAGE
            made.type_name = f".projection.{names[child]}"
        if fd.containing_oneof is not None and fd.containing_oneof.name in oneofs:
            made.oneof_index = oneofs[fd.containing_oneof.name]


# From protobuf's objects to rows.


def _row(node: Node, message: Any, raw: list[bytes], filters: dict[str, list[int]]) -> Row | None:
    """The tree of one message, or None where a filter rejects it."""
    row = Row()
    for name, presence in node.leaves.items():
        row.columns[name] = _value(getattr(message, name))
        if presence:
            row.columns[f"{name}?"] = int(message.HasField(name))
        ids = filters.get(node.join(name))
        if ids is not None:
            if row.columns[name] not in ids:
                return None
            row.columns[name] = ids.index(row.columns[name])
    for oneof in node.cases():
        member = message.WhichOneof(oneof.name)
        fd = node.message.fields_by_name[member] if member else None
        if oneof.name in node.unions:
            value = (0, 0) if fd is None else (fd.number, _bits(fd, getattr(message, fd.name)))
            row.columns[oneof.name] = value
        row.columns[f"{oneof.name}.case"] = 0 if fd is None else fd.number
    if node.own_span:
        row.columns["@span"] = raw[-1]
    for name in node.values:
        if len(getattr(message, name)):
            row.below[node.join(name)] = [Row({"value": _value(v)}) for v in getattr(message, name)]
    for name, child in node.children.items():
        fd = node.message.fields_by_name[name]
        rows: list[Row | None] = []
        if is_repeated(fd):
            pairs = zip(getattr(message, name), _occurrences(fd, raw), strict=True)
            rows = [_row(child, part, [piece], filters) for part, piece in pairs]
        elif message.HasField(name):
            rows = [_row(child, getattr(message, name), _occurrences(fd, raw), filters)]
        chosen = [made for made in rows if made is not None]
        if chosen:
            row.below[child.path] = row.below.get(child.path, []) + chosen
    return row


def _occurrences(fd: FieldDescriptor, raw: list[bytes]) -> list[bytes]:
    """The bytes of every occurrence of a message field since its oneof was last switched."""
    result: list[bytes] = []
    others: dict[int, FieldDescriptor] = {}
    if fd.containing_oneof is not None:
        others = {other.number: other for other in fd.containing_oneof.fields if other is not fd}
    for data in raw:
        for number, wire, value in read_fields(data):
            if number == fd.number and wire == 2:
                assert isinstance(value, bytes)
                result.append(value)
            elif number in others and wire == _wire_type(others[number]):
                result.clear()
    return result


def _wire_type(fd: FieldDescriptor) -> int:
    if is_span(fd):
        return 2
    if fd.type in {fd.TYPE_FIXED64, fd.TYPE_SFIXED64, fd.TYPE_DOUBLE}:
        return 1
    return 5 if fd.type in {fd.TYPE_FIXED32, fd.TYPE_SFIXED32, fd.TYPE_FLOAT} else 0


def _value(value: Any) -> Any:
    return int(value) if isinstance(value, bool) else value


def _bits(fd: FieldDescriptor, value: Any) -> Any:
    """A oneof's number as the int64 that carries it; bytes as they are."""
    if isinstance(value, bytes):
        return value
    value = int(value)
    if fd.type == fd.TYPE_FLOAT:
        return (value + 2**31) % 2**32 - 2**31
    return (value + 2**63) % 2**64 - 2**63


# From columns to plain values.


def _plain(column: Any, *, filtered: bool) -> list[Any]:
    if column.dtype.kind == "f" and not filtered:
        column = column.view(np.uint64 if column.dtype.itemsize == 8 else np.uint32)
    return [int(value) for value in column.tolist()]


def _texts(spans: Spans, buffer: Any) -> list[bytes]:
    start, length = spans.start.astype(np.int64), spans.length.astype(np.int64)
    assert (start >= 0).all()
    assert (length >= 0).all()
    assert (start + length <= len(buffer)).all(), "a span outside the buffer"
    return [spans.bytes(buffer, row) for row in range(len(spans))]


def _members(oneof: OneofDescriptor, union: Union, buffer: Any) -> list[tuple[int, Any]]:
    members = {fd.number: fd for fd in oneof.fields}
    result: list[tuple[int, Any]] = []
    rows = zip(union.case.tolist(), union.bits.tolist(), union.length.tolist(), strict=True)
    for case, bits, length in rows:
        if case and is_span(members[case]):
            assert 0 <= bits <= bits + length <= len(buffer), "a span outside the buffer"
            result.append((case, buffer[bits : bits + length].tobytes()))
        else:
            assert length == 0
            result.append((case, bits))
    return result
