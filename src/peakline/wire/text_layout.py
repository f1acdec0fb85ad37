"""Tables for the text scanner, made from descriptors: fields, names, and what bytes mean.

Names of fields and of enum values are found through one hash table with open addressing, keyed by
the *owner* (a message or an enum) and the name. The numbers here are shared by the builder and by
the scanner; the grammar is https://protobuf.dev/reference/protobuf/textformat-spec/.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

__all__ = ["BYTE_CLASSES", "LINE_CLASSES", "TextTables", "make_tables", "name_hash"]

I64 = npt.NDArray[np.int64]

# What a byte can be.
BLANK = 1
IDENTIFIER_START = 2
IDENTIFIER = 4
DIGIT = 8
NUMBER = 16  # what may stand in a number, and therefore not right behind one
COMMENT = 32

# How a field's value is written and encoded.
(
    MESSAGE,
    STRING,
    BOOL,
    ENUM,
    FLOAT,
    DOUBLE,
    INT32,
    INT64,
    UINT32,
    UINT64,
    SINT32,
    SINT64,
    FIXED32,
    FIXED64,
    SFIXED32,
    SFIXED64,
) = range(16)

# Columns of the field table.
(
    F_TAG,  # the bytes of the tag, the first one lowest
    F_TAG_BYTES,
    F_KIND,
    F_CHILD,  # owner number of the message or the enum, -1 for other kinds
    F_REPEATED,
    F_SLOT,  # bit that tells that the field, or its oneof, was given; -1 for repeated fields
    F_IMPLICIT,  # 1: zero is the same as absent, and so it is left out
    F_CLOSED,  # 1: an enum that takes known numbers only
    F_WIDTH,
) = range(9)

# Columns of the hash table: a free slot has owner -1.
H_OWNER, H_START, H_LENGTH, H_VALUE, H_WIDTH = range(5)

# Entries of the state vector.
(
    S_POSITION,  # in the text
    S_OUT,  # bytes written
    S_DEPTH,
    S_LIST,  # field of the list that is open, NO_LIST, or SKIPPED_LIST
    S_UNKNOWN,  # unknown fields and values
    S_UNKNOWN_AT,  # where the first one's name lies
    S_UNKNOWN_LENGTH,
    S_REDACTED,
    S_FIXES,  # entries in the list of numbers to be fixed
    S_ERROR_AT,
    S_WIDTH,
) = range(11)

# Columns of the stack, one row per open message.
K_OWNER, K_CLOSE, K_AT, K_LIST, K_WIDTH = range(5)

NO_LIST = -1
SKIPPED_LIST = -2
SKIPPED = -1  # the owner inside an unknown field
NO_CLOSE = 256  # of the root, when it ends with the text

# Columns of a number that Python has to convert: where it goes, its text, its bytes and sign.
X_OUT, X_START, X_LENGTH, X_SIZE, X_NEGATIVE, X_WIDTH = range(6)

# How a scan ends.
(
    DONE,
    NEED_ROOM,
    NEED_FIXES,
    NO_NAME,
    NO_COLON,
    NO_OPENING,
    WRONG_END,
    NOT_ENDED,
    TOO_DEEP,
    TWICE,
    NO_STRING,
    OPEN_STRING,
    BAD_ESCAPE,
    NO_INTEGER,
    OUT_OF_RANGE,
    NO_NUMBER,
    NO_BOOL,
    NO_ENUM,
    NO_VALUE,
    NO_SEPARATOR,
    NOT_REPEATED,
) = range(21)

MAX_DEPTH = 101
"""Open messages, the root included: what parsers of the wire format accept."""


def _classes(blanks: bytes) -> npt.NDArray[np.uint8]:
    classes = np.zeros(256, np.uint8)
    for byte in range(256):
        character = chr(byte)
        letter = character.isascii() and (character.isalpha() or character == "_")
        digit = character.isascii() and character.isdigit()
        classes[byte] = (
            BLANK * (byte in blanks)
            | IDENTIFIER_START * letter
            | IDENTIFIER * (letter or digit)
            | DIGIT * digit
            | NUMBER * (letter or digit or character in ".+-")
            | COMMENT * (character == "#")
        )
    return classes


BYTE_CLASSES = _classes(b" \t\n\v\f\r")
LINE_CLASSES = _classes(b" \t\v\f\r")
"""For text that ends with its line."""

_KINDS = {
    FieldDescriptor.TYPE_MESSAGE: (MESSAGE, 2),
    FieldDescriptor.TYPE_STRING: (STRING, 2),
    FieldDescriptor.TYPE_BYTES: (STRING, 2),
    FieldDescriptor.TYPE_BOOL: (BOOL, 0),
    FieldDescriptor.TYPE_ENUM: (ENUM, 0),
    FieldDescriptor.TYPE_FLOAT: (FLOAT, 5),
    FieldDescriptor.TYPE_DOUBLE: (DOUBLE, 1),
    FieldDescriptor.TYPE_INT32: (INT32, 0),
    FieldDescriptor.TYPE_INT64: (INT64, 0),
    FieldDescriptor.TYPE_UINT32: (UINT32, 0),
    FieldDescriptor.TYPE_UINT64: (UINT64, 0),
    FieldDescriptor.TYPE_SINT32: (SINT32, 0),
    FieldDescriptor.TYPE_SINT64: (SINT64, 0),
    FieldDescriptor.TYPE_FIXED32: (FIXED32, 5),
    FieldDescriptor.TYPE_FIXED64: (FIXED64, 1),
    FieldDescriptor.TYPE_SFIXED32: (SFIXED32, 5),
    FieldDescriptor.TYPE_SFIXED64: (SFIXED64, 1),
}
"""Kind and wire type by field type."""


@dataclass(frozen=True, eq=False)
class TextTables:
    """What the scanner has to know of a message and all below it.

    ``fields`` has F_WIDTH numbers per field, ``hashes`` H_WIDTH per slot (a power of two of
    slots), ``names`` the bytes of all names, ``words`` the 64-bit words of a message's presence
    bits. The root is owner 0.
    """

    fields: I64
    hashes: I64
    names: npt.NDArray[np.uint8]
    words: int


def name_hash(owner: int, length: int, first: int, middle: int, last: int) -> int:
    """Where to look for a name; the scanner compiles the same function."""
    mixed = owner * 0x9E3779B1 + length * 0x85EBCA6B + first * 0xC2B2AE35
    mixed += middle * 0x27D4EB2F + last * 0x165667B1
    return mixed ^ (mixed >> 17)


def make_tables(
    root: Descriptor, aliases: Mapping[str, Mapping[str, str]] | None = None
) -> TextTables:
    """The tables for ``root`` and every message that it may hold.

    ``aliases`` maps the full name of a message to further names of its fields: ``{alias: name}``.
    Raises ValueError for an alias that is a field itself or that names none, and for groups.
    """
    aliases = aliases or {}
    messages, enums = _reachable(root)
    owners = {entry.full_name: n for n, entry in enumerate([*messages, *enums])}
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
    return TextTables(np.array(fields or [[0] * F_WIDTH], np.int64).ravel(), hashes, names, words)


class _Slots:
    """Presence bits of one message: one per singular field, one per oneof."""

    def __init__(self) -> None:
        self.used = 0
        self._oneofs: dict[str, int] = {}

    def of(self, field: FieldDescriptor) -> int:
        if field.is_repeated:
            return -1
        if field.containing_oneof is not None:
            name = field.containing_oneof.name
            if name in self._oneofs:
                return self._oneofs[name]
            self._oneofs[name] = self.used
        self.used += 1
        return self.used - 1


def _reachable(root: Descriptor) -> tuple[list[Descriptor], list[EnumDescriptor]]:
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


def _field_row(field: FieldDescriptor, owners: Mapping[str, int], slots: _Slots) -> list[int]:
    if field.type not in _KINDS:
        raise ValueError(f"{field.full_name}: groups are not supported")
    kind, wire = _KINDS[field.type]
    tag, key = bytearray(), field.number << 3 | wire
    while key > 0x7F:
        tag.append(key & 0x7F | 0x80)
        key >>= 7
    tag.append(key)
    child = field.message_type or field.enum_type
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


def _hash_table(entries: list[tuple[int, str, int]]) -> tuple[I64, npt.NDArray[np.uint8]]:
    size = 16
    while size < 3 * len(entries):
        size *= 2
    table = np.full((size, H_WIDTH), -1, np.int64)
    names = bytearray()
    for owner, text, value in entries:
        name = text.encode()
        slot = name_hash(owner, len(name), name[0], name[len(name) >> 1], name[-1]) & (size - 1)
        while table[slot, H_OWNER] >= 0:
            slot = (slot + 1) & (size - 1)
        table[slot] = owner, len(names), len(name), value
        names += name
    return table.ravel(), np.frombuffer(bytes(names) or b"\0", np.uint8)
