"""What decoding gives: tables of NumPy columns, and spans into the buffer they came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from peakline.arrays import AnyArray, Int32Array, UInt8Array

Buffer = UInt8Array


@dataclass(frozen=True, eq=False)
class Spans:
    """Where strings, bytes or messages lie: ``buffer[start : start + length]`` per row."""

    start: AnyArray
    length: AnyArray

    def __len__(self) -> int:
        return int(self.start.size)

    def take(self, rows: AnyArray) -> Spans:
        """The spans of ``rows`` (indices or a boolean mask)."""
        return Spans(self.start[rows], self.length[rows])

    def bytes(self, buffer: Buffer, row: int) -> bytes:
        """The bytes of one row."""
        start = int(self.start[row])
        return buffer[start : start + int(self.length[row])].tobytes()

    def texts(self, buffer: Buffer) -> list[str]:
        """Every row as text; bytes that are not UTF-8 become U+FFFD."""
        pairs = zip(self.start.tolist(), self.length.tolist(), strict=True)
        return [buffer[s : s + n].tobytes().decode("utf-8", "replace") for s, n in pairs]


@dataclass(frozen=True, eq=False)
class Union:
    """A oneof: ``case`` is the field number set (0: none), ``bits`` its number, or the start of
    its bytes, and ``length`` their length (0 for numbers).
    """

    case: UInt8Array
    bits: AnyArray
    length: Int32Array

    def take(self, rows: AnyArray) -> Union:
        """The oneof of ``rows`` (indices or a boolean mask)."""
        return Union(self.case[rows], self.bits[rows], self.length[rows])


WireColumn = AnyArray | Spans | Union
_Kind = TypeVar("_Kind")


@dataclass(frozen=True, eq=False)
class WireTable:
    """One table: ``parent`` is the row in the enclosing message's table, per row."""

    path: str
    rows: int
    parent: Int32Array
    columns: dict[str, WireColumn]

    def array(self, name: str) -> AnyArray:
        """A column of numbers."""
        return self._column(name, np.ndarray)

    def spans(self, name: str) -> Spans:
        """A column of strings, bytes or messages."""
        return self._column(name, Spans)

    def union(self, name: str) -> Union:
        """A oneof column."""
        return self._column(name, Union)

    def _column(self, name: str, kind: type[_Kind]) -> _Kind:
        column = self.columns[name]
        if not isinstance(column, kind):
            raise TypeError(f"{self.path}.{name} holds {type(column).__name__}")
        return column


@dataclass(frozen=True)
class Damage:
    """What could not be read. ``missing_bytes``: how much the end of the buffer cuts off."""

    places: int = 0
    skipped_bytes: int = 0
    first_offset: int = -1
    missing_bytes: int = 0
    groups: int = 0

    def __bool__(self) -> bool:
        return self.places > 0

    def __add__(self, other: Damage) -> Damage:
        offsets = [d.first_offset for d in (self, other) if d.first_offset >= 0]
        return Damage(
            self.places + other.places,
            self.skipped_bytes + other.skipped_bytes,
            min(offsets, default=-1),
            self.missing_bytes or other.missing_bytes,
            self.groups + other.groups,
        )


@dataclass(frozen=True, eq=False)
class Decoded:
    """The tables of one decoding, by path, and what was damaged."""

    buffer: Buffer
    tables: dict[str, WireTable]
    damage: Damage = field(default_factory=Damage)

    def __getitem__(self, path: str) -> WireTable:
        return self.tables[path]


def varint(value: int) -> bytes:
    """A number as protobuf writes it."""
    value &= 2**64 - 1
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)
