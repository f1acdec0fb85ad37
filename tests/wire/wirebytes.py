"""Protobuf wire bytes by hand: a small writer, a small reader, and a writer of arbitrary messages.

The encoding is that of https://protobuf.dev/programming-guides/encoding/.
"""

import struct
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, Protocol

from google.protobuf.descriptor import Descriptor, FieldDescriptor

_FD = FieldDescriptor
_FIXED64_TYPES = frozenset((_FD.TYPE_DOUBLE, _FD.TYPE_FIXED64, _FD.TYPE_SFIXED64))
_FIXED32_TYPES = frozenset((_FD.TYPE_FLOAT, _FD.TYPE_FIXED32, _FD.TYPE_SFIXED32))

_INTEGERS = (
    *(0, 1, 2, 3, 5, 127, 128, 255, 256, 300, 65535, 65536, 1 << 20),
    *(2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1),
    *(2**64 - 2**31, 2**64 - 2**31 - 1, 2**64 - 2, 2**64 - 3),
)
_DOUBLES = (
    *(0.0, -0.0, 1.5, float("inf"), float("-inf"), 5e-324, 1.7976931348623157e308),
    *(0x7FF8000000000000, 0xFFF8000000000001, 0x7FF0000000000001),
)
_FLOATS = (0.0, -0.0, 1.5, float("inf"), 1e-45, 0x7FC00000, 0xFFC00001, 0x7F800001)
_TEXTS = ("", "a", "MatMul", "é", "面", "\U0001f600", "\x00", "x" * 130)


def varint(value: int, size: int = 0) -> bytes:
    """``value`` (negative: as 64-bit two's complement) in at least ``size`` bytes."""
    value %= 1 << 64
    out = bytearray()
    while value > 0x7F or len(out) + 1 < size:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def tag(number: int, wire: int, size: int = 0) -> bytes:
    """The key of a field."""
    return varint(number << 3 | wire, size)


def varint_field(number: int, value: int) -> bytes:
    """A field of wire type 0."""
    return tag(number, 0) + varint(value)


def len_field(number: int, payload: bytes) -> bytes:
    """A field of wire type 2."""
    return tag(number, 2) + varint(len(payload)) + payload


def fixed32(number: int, value: int) -> bytes:
    """A field of wire type 5."""
    return tag(number, 5) + struct.pack("<I", value % (1 << 32))


def fixed64(number: int, value: int) -> bytes:
    """A field of wire type 1."""
    return tag(number, 1) + struct.pack("<Q", value % (1 << 64))


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """The value at ``at`` and the offset behind it. Raises ValueError when there is none."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value % (1 << 64), at
    raise ValueError("no varint")


def read_fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """Number, wire type and value of every field; a group's keys come without a value.

    Raises ValueError for bytes that are no message.
    """
    at = 0
    while at < len(data):
        key, at = read_varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            value, at = read_varint(data, at)
            yield number, wire, value
        elif wire in {1, 5}:
            size = 8 if wire == 1 else 4
            yield number, wire, int.from_bytes(data[at : at + size], "little")
            at += size
        elif wire == 2:
            size, at = read_varint(data, at)
            yield number, wire, data[at : at + size]
            at += size
        else:
            raise ValueError(f"wire type {wire}")


class Liked(Protocol):
    """Which fields of a message are to come more often, and the same for its messages."""

    @property
    def wanted(self) -> set[str]:
        """Names of fields and oneofs."""

    @property
    def children(self) -> Mapping[str, Any]:
        """By field name, what is liked below."""


class ArbitraryWriter:
    """Writes arbitrary legal bytes of a message type, in every way the encoding allows.

    Fields come in any order and any number of times: singular ones repeat (the last wins,
    messages merge), oneofs are switched, repeated numbers come packed or not, map entries lack
    a key or a value, unknown fields of every wire type stand between, varints are longer than
    they need be. ``rng`` may be plain or one of Hypothesis.
    """

    def __init__(self, rng: Random, fields: int = 120) -> None:
        self.rng = rng
        self.budget = fields

    def message(self, descriptor: Descriptor, liked: Liked | None = None, depth: int = 0) -> bytes:
        """One message, fields that are ``liked`` more often than others."""
        rng = self.rng
        fields, wanted = list(descriptor.fields), set[str]() if liked is None else liked.wanted
        better = [
            fd
            for fd in fields
            if fd.name in wanted or (fd.containing_oneof and fd.containing_oneof.name in wanted)
        ]
        out = bytearray()
        for _ in range(rng.choice((0, 1, 2, 3, 4, 6, 9) if depth else (1, 3, 6, 9, 14))):
            if self.budget <= 0:
                break
            self.budget -= 1
            if not fields or rng.random() < 0.06:
                out += self._unknown(descriptor)
                continue
            fd = rng.choice(better) if better and rng.random() < 0.85 else rng.choice(fields)
            out += self._field(fd, None if liked is None else liked.children.get(fd.name), depth)
        return bytes(out)

    def _field(self, fd: FieldDescriptor, liked: Liked | None, depth: int) -> bytes:
        rng = self.rng
        if rng.random() < 0.03:
            return self._other_wire_type(fd)
        if fd.message_type is not None:
            payload = self.message(fd.message_type, liked, depth + 1) if depth < 12 else b""
            return self._delimited(fd.number, payload)
        if fd.type in {_FD.TYPE_STRING, _FD.TYPE_BYTES}:
            text = rng.choice(_TEXTS).encode()
            if fd.type == _FD.TYPE_BYTES and rng.random() < 0.3:
                text = bytes(rng.randrange(256) for _ in range(rng.randrange(5)))
            return self._delimited(fd.number, text)
        if fd.is_repeated and rng.random() < 0.5:
            values = b"".join(self._number(fd) for _ in range(rng.choice((0, 1, 2, 5))))
            return self._delimited(fd.number, values)
        wire = 1 if fd.type in _FIXED64_TYPES else 5 if fd.type in _FIXED32_TYPES else 0
        return self._tag(fd.number, wire) + self._number(fd)

    def _number(self, fd: FieldDescriptor) -> bytes:
        rng = self.rng
        if fd.type in _FIXED64_TYPES:
            return self._fixed(_DOUBLES if fd.type == _FD.TYPE_DOUBLE else _INTEGERS, "<d", 8)
        if fd.type in _FIXED32_TYPES:
            return self._fixed(_FLOATS if fd.type == _FD.TYPE_FLOAT else _INTEGERS, "<f", 4)
        small = rng.random() < 0.6
        return varint(rng.randrange(6) if small else rng.choice(_INTEGERS), self._padding(10))

    def _fixed(self, pool: tuple[Any, ...], form: str, size: int) -> bytes:
        value = self.rng.choice(pool)
        if isinstance(value, float):
            return struct.pack(form, value)
        return int(value % (1 << 8 * size)).to_bytes(size, "little")

    def _padding(self, most: int) -> int:
        return self.rng.randrange(most + 1) if self.rng.random() < 0.08 else 0

    def _tag(self, number: int, wire: int) -> bytes:
        return tag(number, wire, self._padding(5))

    def _delimited(self, number: int, payload: bytes) -> bytes:
        return self._tag(number, 2) + varint(len(payload), self._padding(5)) + payload

    def _unknown(self, descriptor: Descriptor) -> bytes:
        numbers = {fd.number for fd in descriptor.fields}
        free = [n for n in (15, 16, 77, 1000, 2047, 65537, 2**29 - 1) if n not in numbers]
        return self._any(self.rng.choice(free), self.rng.choice((0, 1, 2, 5)))

    def _other_wire_type(self, fd: FieldDescriptor) -> bytes:
        """A known number with a wire type that is not its own, which makes it unknown."""
        own: set[int] = (
            {1} if fd.type in _FIXED64_TYPES else {5} if fd.type in _FIXED32_TYPES else {0}
        )
        if fd.message_type is not None or fd.type in {_FD.TYPE_STRING, _FD.TYPE_BYTES}:
            own = {2}
        elif fd.is_repeated:
            own.add(2)
        return self._any(fd.number, self.rng.choice([w for w in (0, 1, 2, 5) if w not in own]))

    def _any(self, number: int, wire: int) -> bytes:
        rng = self.rng
        if wire == 0:
            return self._tag(number, 0) + varint(rng.choice(_INTEGERS), self._padding(10))
        if wire == 2:
            return self._delimited(
                number, bytes(rng.randrange(256) for _ in range(rng.randrange(4)))
            )
        return self._tag(number, wire) + rng.choice((b"\xff\x00\x01\x80", bytes(4))) * (
            2 if wire == 1 else 1
        )
