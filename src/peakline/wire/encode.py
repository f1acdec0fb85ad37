"""Columns as protobuf messages: many of one kind at once, no message ever an object.

A message is put together field by field: sizes first, then every field of every row is written
where it belongs. What a field holds is a column of numbers, of texts, or messages made before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array, UInt8Array
from peakline.kernels.wire_writing import (
    decimal_sizes,
    number_sizes,
    put_decimals,
    put_numbers,
    put_spans,
)
from peakline.text import ROW_BYTES, check_length
from peakline.wire.tables import varint

_VARINT, _FIXED64, _BYTES = 0, 1, 2


def message(number: int, content: bytes) -> bytes:
    """Field ``number`` of a message with ``content``: a message, a text or bytes."""
    return varint(number << 3 | 2) + varint(len(content)) + content


class Field(Protocol):
    """A field of every row: adds its sizes, then writes itself and moves the places on."""

    def measure(self, sizes: Int64Array) -> None:
        """Add what each row takes."""

    def put(self, out: UInt8Array, at: Int64Array) -> None:
        """Write each row at its place."""


class Number:
    """A varint field: 64 bits of ``values`` (a sign is the highest of them), where ``present``.

    By default a row that holds 0 has no such field, as in proto3. Without a ``number`` only the
    value is written, as in a packed field.
    """

    def __init__(
        self, number: int | None, values: AnyArray, present: BoolArray | None = None
    ) -> None:
        tag = b"" if number is None else varint(number << 3 | _VARINT)
        self._tag = np.frombuffer(tag, np.uint8)
        if values.dtype.kind != "u":
            values = values.astype(np.int64)
        self._values = values.astype(np.uint64)
        self._present = self._values != 0 if present is None else present

    def measure(self, sizes: Int64Array) -> None:
        """Tag and number."""
        number_sizes(self._values, self._present, self._tag.size, sizes)

    def put(self, out: UInt8Array, at: Int64Array) -> None:
        """Tag and number."""
        put_numbers(self._values, self._present, self._tag, out, at)


class Decimals:
    """The number of each row in base 10, as text, where ``present``."""

    def __init__(self, values: AnyArray, present: BoolArray) -> None:
        self._values, self._present = values.astype(np.int64), present

    def measure(self, sizes: Int64Array) -> None:
        """Digits and sign."""
        decimal_sizes(self._values, self._present, sizes)

    def put(self, out: UInt8Array, at: Int64Array) -> None:
        """Digits and sign."""
        put_decimals(self._values, self._present, out, at)


@dataclass(frozen=True, eq=False)
class Spans:
    """Ready bytes of each row: ``data[first:end]``, whole fields with their tags."""

    data: UInt8Array
    first: Int64Array
    end: Int64Array

    def measure(self, sizes: Int64Array) -> None:
        """The bytes."""
        sizes += self.end - self.first

    def put(self, out: UInt8Array, at: Int64Array) -> None:
        """The bytes."""
        first, end = (np.ascontiguousarray(side, np.int64) for side in (self.first, self.end))
        put_spans(self.data, first, end, out, at)

    @classmethod
    def same(cls, data: bytes, rows: int) -> Spans:
        """The same bytes for every row."""
        zeros = np.zeros(rows, np.int64)
        return cls(np.frombuffer(data, np.uint8), zeros, zeros + len(data))


@dataclass(frozen=True, eq=False)
class Messages:
    """Encoded messages one behind the other: message ``k`` is ``data[bounds[k]:bounds[k + 1]]``."""

    data: UInt8Array
    bounds: Int64Array

    @property
    def view(self) -> memoryview:
        """All the bytes."""
        # A memory view of an array is one, whatever NumPy's types say of it.
        return memoryview(self.data)  # type: ignore[arg-type]

    def of(self, first: AnyArray) -> Spans:
        """A repeated field: row ``r`` holds messages ``first[r]`` up to ``first[r + 1]``."""
        return Spans(self.data, self.bounds[first[:-1]], self.bounds[first[1:]])

    def at(self, row: AnyArray) -> Spans:
        """A single field: the message of number ``row``, none where that is negative."""
        known = row >= 0
        chosen = np.where(known, row, 0)
        if self.bounds.size == 1:
            return Spans(self.data, chosen, chosen)
        first = self.bounds[chosen]
        return Spans(self.data, first, np.where(known, self.bounds[chosen + 1], first))


def encode(rows: int, fields: Sequence[Field], *, frame: int | None = None) -> Messages:
    """One message per row with the given fields, in their order.

    With ``frame`` each is written as field ``frame`` of the message it will stand in: tag and
    length come before it. Raises as `check_length`.
    """
    inside = np.zeros(rows, np.int64)
    for field in fields:
        field.measure(inside)
    sizes, always = inside, np.ones(0, np.bool_)
    tag = np.frombuffer(b"" if frame is None else varint(frame << 3 | _BYTES), np.uint8)
    if frame is not None:
        always = np.ones(rows, np.bool_)
        sizes = inside.copy()
        number_sizes(inside.view(np.uint64), always, tag.size, sizes)
    bounds = np.zeros(rows + 1, np.int64)
    np.cumsum(sizes, out=bounds[1:])
    sources = sum(field.data.size for field in fields if isinstance(field, Spans))
    check_length(int(bounds[-1]), sources + ROW_BYTES * rows)
    data = np.empty(int(bounds[-1]), np.uint8)
    at = bounds[:-1].copy()
    if frame is not None:
        put_numbers(inside.view(np.uint64), always, tag, data, at)
    for field in fields:
        field.put(data, at)
    return Messages(data, bounds)


def fixed(number: int, values: AnyArray) -> Messages:
    """A field of eight bytes per row, in every row."""
    tag = np.frombuffer(varint(number << 3 | _FIXED64), np.uint8)
    data = np.empty((values.size, tag.size + 8), np.uint8)
    data[:, : tag.size] = tag
    raw = np.ascontiguousarray(values, values.dtype.newbyteorder("<")).view(np.uint8)
    data[:, tag.size :] = raw.reshape(values.size, 8)
    bounds = np.arange(values.size + 1, dtype=np.int64) * (tag.size + 8)
    return Messages(data.reshape(-1), bounds)


class Pool:
    """Distinct texts as ready string fields, for columns of their codes."""

    def __init__(self, number: int, texts: Sequence[str], *, skip_empty: bool = False) -> None:
        raw = [text.encode("utf-8", "replace") for text in texts]
        ends = np.cumsum([0, *map(len, raw)])
        data = np.frombuffer(bytearray().join(raw), np.uint8)
        self._messages = encode(len(raw), [Spans(data, ends[:-1], ends[1:])], frame=number)
        self._empty = np.diff(ends) == 0 if skip_empty else None

    def of(self, codes: AnyArray) -> Spans:
        """The field of every row; none where the code is negative."""
        codes = codes.astype(np.int64)
        if self._empty is not None and self._empty.size:
            codes = np.where(self._empty[codes] & (codes >= 0), -1, codes)
        return self._messages.at(codes)


def packed(number: int, values: Int64Array, first: Int64Array) -> Spans:
    """A packed repeated varint field: row ``r`` holds ``values[first[r]:first[r + 1]]``."""
    each = encode(values.size, [Number(None, values, np.ones(values.size, np.bool_))])
    some = np.flatnonzero(np.diff(first) > 0)
    fields = encode(some.size, [each.of(np.append(first[some], values.size))], frame=number)
    # Consecutive rows that hold some share no values.
    place = np.full(first.size - 1, -1, np.int64)
    place[some] = np.arange(some.size)
    return fields.at(place)
