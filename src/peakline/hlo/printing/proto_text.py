"""A message as protobuf's text format, as C++ writes it (``TextFormat::Printer``).

The writer of protobuf's Python runtime writes floats otherwise, and the whole text at once.
Fields that the schema does not know are left out.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from google.protobuf.descriptor import FieldDescriptor as Field

from peakline import schema
from peakline.hlo.messages import BYTES, LARGE, WireField, fields, messages_below
from peakline.hlo.printing.quoting import quoted
from peakline.wire import Buffer, as_buffer

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.message import Message

_SINGLE = struct.Struct("<f")


def stored_text(data: bytes | Buffer, kind: str, without: str = "") -> Iterator[str]:
    """The text of a serialized message by its full name; of a large one there are only parts at a
    time. ``without`` is the full name of a field that is left out.

    Raises DecodeError where the bytes are none.
    """
    yield from _stored(as_buffer(data).data, schema.descriptor(kind), "", without)


def _stored(data: memoryview, kind: Descriptor, indent: str, without: str) -> Iterator[str]:
    made = schema.message(kind.full_name)
    if len(data) <= LARGE:
        yield from proto_text(made.FromString(data.tobytes()), indent, without)
        return
    below, result = messages_below(kind), dict[int, list[WireField]]()
    for one in fields(data):
        result.setdefault(one.number, []).append(one)
    for number, listed in sorted(result.items()):
        if number not in below:
            rest = b"".join(data[one.begin : one.end] for one in listed)
            yield from proto_text(made.FromString(rest), indent, without)
            continue
        field = kind.fields_by_number[number]
        parts = [data[one.start : one.end] for one in listed if one.wire == BYTES]
        if len(parts) > 1 and not _is_repeated(field):
            parts = [memoryview(b"".join(parts))]
        for part in parts if field.full_name != without else ():
            yield f"{indent}{field.name} {{\n"
            yield from _stored(part, below[number], f"{indent}  ", without)
            yield f"{indent}}}\n"


def proto_text(message: Message, indent: str = "", without: str = "") -> Iterator[str]:
    """Lines of ``name: value``; ``without`` is the full name of a field that is left out."""
    for field, value in message.ListFields():
        kind = field.message_type
        if field.full_name == without:
            continue
        if kind is not None and kind.GetOptions().map_entry:
            yield from _map(field, value, indent)
        elif kind is not None:
            for item in value if _is_repeated(field) else (value,):
                yield f"{indent}{field.name} {{\n"
                yield from proto_text(item, f"{indent}  ", without)
                yield f"{indent}}}\n"
        else:
            text, name = _writer(field), f"{indent}{field.name}: "
            if _is_repeated(field):
                yield from (f"{name}{text(item)}\n" for item in value)
            else:
                yield f"{name}{text(value)}\n"


def _is_repeated(field: Any) -> bool:
    # Runtimes before 6 have only the label, those after 7 only the property.
    result = getattr(field, "is_repeated", None)
    return bool(result) if result is not None else field.label == field.LABEL_REPEATED


def _map(field: Any, value: Any, indent: str) -> Iterator[str]:
    keys, values = (field.message_type.fields_by_name[name] for name in ("key", "value"))
    key_text = _writer(keys)
    for key in sorted(value):
        yield f"{indent}{field.name} {{\n{indent}  key: {key_text(key)}\n"
        if values.message_type is not None:
            yield f"{indent}  value {{\n"
            yield from proto_text(value[key], f"{indent}    ")
            yield f"{indent}  }}\n"
        else:
            yield f"{indent}  value: {_writer(values)(value[key])}\n"
        yield f"{indent}}}\n"


def _writer(field: Any) -> Callable[[Any], str]:
    kind = field.cpp_type
    if kind == Field.CPPTYPE_STRING:
        return quoted
    if kind == Field.CPPTYPE_BOOL:
        return lambda value: "true" if value else "false"
    if kind == Field.CPPTYPE_ENUM:
        names = {number: one.name for number, one in field.enum_type.values_by_number.items()}
        return lambda value: names.get(value, str(value))
    if kind == Field.CPPTYPE_FLOAT:
        return _single
    return _double if kind == Field.CPPTYPE_DOUBLE else str


def _single(value: float) -> str:
    text = f"{value:.6g}"
    if math.isfinite(value):
        # What is beyond the range of 32 bits is no such value either.
        try:
            is_exact = _SINGLE.pack(float(text)) == _SINGLE.pack(value)
        except OverflowError:
            is_exact = False
        return text if is_exact else f"{value:.9g}"
    return text


def _double(value: float) -> str:
    text = f"{value:.15g}"
    return text if not math.isfinite(value) or float(text) == value else f"{value:.17g}"
