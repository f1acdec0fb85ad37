"""Tables for the text scanner, made from shapes of messages: fields, names, what bytes mean.

Names of fields and of enum values are found through one hash table with open addressing, keyed by
the *owner* (a message or an enum) and the name. The grammar
is https://protobuf.dev/reference/protobuf/textformat-spec/.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array, UInt8Array
from peakline.kernels import text_layout as L
from peakline.schema.shapes import EnumShape, FieldShape, MessageShape
from peakline.wire.tables import varint

I64 = Int64Array


def _classes(blanks: bytes) -> UInt8Array:
    classes = np.zeros(256, np.uint8)
    for byte in range(256):
        character = chr(byte)
        letter = character.isascii() and (character.isalpha() or character == "_")
        digit = character.isascii() and character.isdigit()
        classes[byte] = (
            L.BLANK * (byte in blanks)
            | L.IDENTIFIER_START * letter
            | L.IDENTIFIER * (letter or digit)
            | L.DIGIT * digit
            | L.NUMBER * (letter or digit or character in ".+-")
            | L.COMMENT * (character == "#")
        )
    return classes


BYTE_CLASSES = _classes(b" \t\n\v\f\r")
LINE_CLASSES = _classes(b" \t\v\f\r")
"""For text that ends with its line."""

_KINDS = {
    11: (L.MESSAGE, 2),
    9: (L.STRING, 2),
    12: (L.STRING, 2),  # bytes
    8: (L.BOOL, 0),
    14: (L.ENUM, 0),
    2: (L.FLOAT, 5),
    1: (L.DOUBLE, 1),
    5: (L.INT32, 0),
    3: (L.INT64, 0),
    13: (L.UINT32, 0),
    4: (L.UINT64, 0),
    17: (L.SINT32, 0),
    18: (L.SINT64, 0),
    7: (L.FIXED32, 5),
    6: (L.FIXED64, 1),
    15: (L.SFIXED32, 5),
    16: (L.SFIXED64, 1),
}
"""Kind and wire type by field type (google/protobuf/descriptor.proto)."""


@dataclass(frozen=True, eq=False)
class TextTables:
    """What the scanner has to know of a message and all below it.

    ``fields`` has F_WIDTH numbers per field, ``hashes`` H_WIDTH per slot (a power of two of
    slots), ``names`` the bytes of all names, ``words`` the 64-bit words of a message's presence
    bits. The root is owner 0.
    """

    fields: I64
    hashes: I64
    names: UInt8Array
    words: int


def name_hash(owner: int, length: int, first: int, middle: int, last: int) -> int:
    """Where to look for a name; `peakline.kernels.text_scan` computes the same."""
    mixed = owner * 0x9E3779B1 + length * 0x85EBCA6B + first * 0xC2B2AE35
    mixed += middle * 0x27D4EB2F + last * 0x165667B1
    return mixed ^ (mixed >> 17)


def make_tables(
    root: MessageShape, aliases: Mapping[str, Mapping[str, str]] | None = None
) -> TextTables:
    """The tables for ``root`` and every message that it may hold.

    ``aliases`` maps the full name of a message to further names of its fields: ``{alias: name}``.
    Raises ValueError for an alias that is a field itself or that names none, and for groups.
    """
    aliases = aliases or {}
    messages, enums = _reachable(root)
    every = [*(message.full_name for message in messages), *(enum.full_name for enum in enums)]
    owners = {name: number for number, name in enumerate(every)}
    fields: list[list[int]] = []
    entries: list[tuple[int, str, int]] = []
    words = 1
    for message in messages:
        owner, slots = owners[message.full_name], _Slots()
        index = {}
        for field in message.fields:
            index[field.name] = len(fields)
            fields.append(_field_row(field, owners, slots))
        for alias, name in aliases.get(message.full_name, {}).items():
            if alias in index or name not in index:
                raise ValueError(f"{message.full_name}: {alias!r} cannot stand for {name!r}")
            index[alias] = index[name]
        entries += [(owner, name, field) for name, field in index.items()]
        words = max(words, -(-slots.used // 64))
    for enum in enums:
        entries += [(owners[enum.full_name], v.name, v.number) for v in enum.values]
    hashes, names = _hash_table(entries)
    return TextTables(np.array(fields or [[0] * L.F_WIDTH], np.int64).ravel(), hashes, names, words)


class _Slots:
    """Presence bits of one message: one per singular field, one per oneof."""

    def __init__(self) -> None:
        self.used = 0
        self._oneofs: dict[str, int] = {}

    def of(self, field: FieldShape) -> int:
        if field.is_repeated:
            return -1
        if field.containing_oneof is not None:
            name = field.containing_oneof.name
            if name in self._oneofs:
                return self._oneofs[name]
            self._oneofs[name] = self.used
        self.used += 1
        return self.used - 1


def _reachable(root: MessageShape) -> tuple[list[MessageShape], list[EnumShape]]:
    messages, enums = {root.full_name: root}, {}
    waiting = [root]
    while waiting:
        for field in waiting.pop().fields:
            if field.message_type is not None and field.message_type.full_name not in messages:
                messages[field.message_type.full_name] = field.message_type
                waiting.append(field.message_type)
            if field.enum_type is not None:
                enums[field.enum_type.full_name] = field.enum_type
    return list(messages.values()), list(enums.values())


def _field_row(field: FieldShape, owners: Mapping[str, int], slots: _Slots) -> list[int]:
    if field.type not in _KINDS:
        raise ValueError(f"{field.name}: groups are not supported")
    kind, wire = _KINDS[field.type]
    tag = varint(field.number << 3 | wire)
    child: MessageShape | EnumShape | None = field.message_type or field.enum_type
    return [
        int.from_bytes(tag, "little"),
        len(tag),
        kind,
        -1 if child is None else owners[child.full_name],
        int(field.is_repeated),
        slots.of(field),
        int(not field.is_repeated and not field.has_presence),
        int(field.enum_type is not None and field.enum_type.is_closed),
    ]


def _hash_table(entries: list[tuple[int, str, int]]) -> tuple[I64, UInt8Array]:
    size = 16
    while size < 3 * len(entries):
        size *= 2
    table = np.full((size, L.H_WIDTH), -1, np.int64)
    names = bytearray()
    for owner, text, value in entries:
        name = text.encode()
        slot = name_hash(owner, len(name), name[0], name[len(name) >> 1], name[-1]) & (size - 1)
        while table[slot, L.H_OWNER] >= 0:
            slot = (slot + 1) & (size - 1)
        table[slot] = owner, len(names), len(name), value
        names += name
    return table.ravel(), np.frombuffer(bytes(names) or b"\0", np.uint8)
