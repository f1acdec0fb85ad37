"""JSON objects from columns: many of one kind at once, without a Python object for each.

An object is put together member by member, as protobuf messages are (`peakline.wire.encode`): each
distinct text is escaped once, then every member of every row is written where it belongs. A member
whose text is empty is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from json.encoder import encode_basestring

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.wire.encode import Decimals, Messages, Spans, encode
from peakline.wire.strings import Texts

_OPEN = ord("{")
_PLAIN = bytes(code for code in range(ord(" "), 128) if chr(code) not in '"\\')
"""What needs no escaping."""


def texts(values: Iterable[str]) -> Messages:
    """Texts as UTF-8, one after the other; a lone surrogate becomes a question mark."""
    parts = list(values)
    text = "".join(parts)
    sizes = map(len, parts if text.isascii() else (_utf8(part) for part in parts))
    data = np.frombuffer(bytearray(_utf8(text)), np.uint8)
    return Messages(data, np.cumsum([0, *sizes], dtype=np.int64))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def escaped(values: Sequence[str]) -> Messages:
    """Texts as they stand inside the quotes of JSON."""
    if isinstance(values, Texts):
        data, spans = values.spans()
        if not data.tobytes().translate(None, _PLAIN):
            return Messages(data, np.append(spans.start, data.size))
    return texts([encode_basestring(value)[1:-1] for value in values])


def numbers(values: AnyArray, zero: str = "") -> Spans:
    """The number in each row, ``zero`` for 0: nothing by default, or how 0 is written."""
    if values.dtype.kind in "iu":
        shown = np.ones(values.size, np.bool_) if zero else values != 0
        result = encode(values.size, [Decimals(values, shown)])
        return result.of(np.arange(values.size + 1))
    known, place = np.unique(values, return_inverse=True)
    parts = list(map(repr, known.tolist()))
    for at in np.flatnonzero(known == 0).tolist():
        parts[at] = zero
    return texts(parts).at(place)


def same(text: str, rows: int | BoolArray) -> Spans:
    """The same text in so many rows, or in those of a mask."""
    data = np.frombuffer(_utf8(text), np.uint8)
    size = np.full(rows, data.size, np.int64) if isinstance(rows, int) else rows * data.size
    return Spans(data, np.zeros(size.size, np.int64), size)


def member(name: str, value: str, *parts: Spans, present: BoolArray | None = None) -> list[Spans]:
    """A member with a comma before it, where ``present``: else where any part of it has a text.

    ``value`` says what stands around the parts, as for `str.format`: ``"{}: {}"``.
    """
    if present is None:
        size = np.zeros(parts[0].first.size, np.int64)
        for part in parts:
            part.measure(size)
        present = size > 0
    before, *behind = f',"{name}":{value}'.split("{}")
    result = [same(before, present)]
    for part, after in zip(parts, behind, strict=True):
        result += [part, same(after, present)] if after else [part]
    return result


def objects(rows: int, *members: Iterable[Spans]) -> Messages:
    """An object of each row, with a comma behind it."""
    every = [part for one in members for part in one]
    sizes = np.zeros(rows, np.int64)
    for part in every:
        part.measure(sizes)
    # The comma before its first member is where an object opens.
    result = encode(rows, [same("{", sizes == 0), *every, same("},", rows)])
    result.data[result.bounds[:-1]] = _OPEN
    return result


def lists(objects: Messages, counts: Int64Array) -> Spans:
    """What stands inside the brackets of lists with so many objects each."""
    first = np.append(0, np.cumsum(counts))
    result = objects.of(first)
    return Spans(result.data, result.first, np.maximum(result.end - 1, result.first))
