"""Values written as protobuf messages, by the names of their fields; without protobuf's runtime."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cache

from peakline import schema
from peakline.schema.shapes import FieldShape
from peakline.wire.tables import varint

_DOUBLE, _FLOAT, _STRING, _MESSAGE, _BYTES = 1, 2, 9, 11, 12
"""Types of fields (google/protobuf/descriptor.proto); all others here are varints."""

_MOST = 2**63

_NUMBERS = [varint(number) for number in range(1 << 14)]
"""Numbers of at most two bytes: nearly all lengths."""

Value = int | float | bytes | str | list["Value"] | Mapping[str, "Value"]
"""A number, a text or the name of an enum's value, a message (its fields, or its bytes), or a list
of these."""


def pack(full_name: str, values: Mapping[str, Value]) -> bytes:
    """The message ``full_name`` with these fields, in their order. Zeros, empty texts and empty
    lists are left out, messages are not.

    Raises ValueError for a number of more than 64 bits and for the name of no value of an enum.
    """
    fields = schema.shape(full_name).fields_by_name
    return b"".join(_field(fields[name], value) for name, value in values.items())


def tag(full_name: str, field: str) -> bytes:
    """What a field of the message begins with."""
    result = schema.shape(full_name).fields_by_name[field]
    wire = 2 if result.is_repeated or result.type in {_STRING, _MESSAGE, _BYTES} else 0
    return varint(result.number << 3 | wire)


def frame(start: bytes, content: bytes) -> bytes:
    """A field of texts, messages or packed numbers, whose `tag` is ``start``."""
    size = len(content)
    return start + (_NUMBERS[size] if size < 1 << 14 else varint(size)) + content


def message(number: int, content: bytes) -> bytes:
    """Field ``number`` with a text, a message or packed numbers."""
    return frame(_NUMBERS[number << 3 | 2], content)


@cache
def enum_numbers(full_name: str, field: str) -> Mapping[str, int]:
    """The values of the enum that a field is of."""
    enum = schema.shape(full_name).fields_by_name[field].enum_type
    return {} if enum is None else {value.name: value.number for value in enum.values}


def utf8(text: bytes) -> bytes:
    """The text, with what is no UTF-8 replaced: protobuf refuses a message with such a string."""
    if text.isascii():
        return text
    return text.decode("utf-8", "replace").encode()


def _field(field: FieldShape, value: Value) -> bytes:
    kind, number = field.type, field.number
    if isinstance(value, list):
        if kind in {_STRING, _MESSAGE, _BYTES}:
            return b"".join(message(number, _content(field, one)) for one in value)
        return message(number, b"".join(_number(field, one) for one in value)) if value else b""
    if kind == _MESSAGE:
        return message(number, _content(field, value))
    if kind in {_STRING, _BYTES}:
        return message(number, _content(field, value)) if value else b""
    packed = _number(field, value)
    wire = {_DOUBLE: 1, _FLOAT: 5}.get(kind, 0)
    return b"" if packed.strip(b"\0") == b"" else varint(number << 3 | wire) + packed


def _content(field: FieldShape, value: Value) -> bytes:
    if isinstance(value, Mapping):
        inner = field.message_type
        assert inner is not None, field.name  # noqa: S101 (of this package's own calls)
        return pack(inner.full_name, value)
    if isinstance(value, str):
        value = value.encode("utf-8", "replace")
    assert isinstance(value, bytes), field.name  # noqa: S101
    return utf8(value) if field.type == _STRING else value


def _number(field: FieldShape, value: Value) -> bytes:
    if field.type in {_DOUBLE, _FLOAT}:
        assert isinstance(value, int | float), field.name  # noqa: S101
        return struct.pack("<d" if field.type == _DOUBLE else "<f", value)
    if isinstance(value, str):
        enum = field.enum_type
        result = [one.number for one in enum.values if one.name == value] if enum else []
        if not result:
            raise ValueError(value)
        value = result[0]
    assert isinstance(value, int), field.name  # noqa: S101
    if not -_MOST <= value < 2 * _MOST:
        raise ValueError(value)
    return varint(value)
