"""Strings that stay bytes: one code per distinct one, without a Python object per row."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from itertools import pairwise
from threading import Lock
from typing import overload

import numpy as np
import numpy.typing as npt

from peakline.arrays import Int32Array
from peakline.kernels.string_table import find, intern, join, rehash
from peakline.wire.decode import as_buffer
from peakline.wire.tables import Buffer, Spans
from peakline.wire.walker import bounds_of

_FIRST_SLOTS = 1 << 10
_MOST_CODES = (1 << 31) - 1


class Interner:
    """Distinct byte strings, numbered in order of first appearance.

    Equal bytes share a code across calls and buffers. Each distinct string is copied once, into
    one pool; the buffers may go. Several threads may add and read.
    """

    __retained__ = "_keys _slots _ends _pool _values"

    def __init__(self) -> None:
        self._keys = np.frombuffer(secrets.token_bytes(16), np.uint64)
        self._slots = np.zeros(_FIRST_SLOTS, np.uint64)
        self._ends = np.zeros(_FIRST_SLOTS // 2 + 1, np.int64)
        self._pool = np.empty(_FIRST_SLOTS * 8, np.uint8)
        self._count = 0
        self._values: list[str] = []
        self._lock = Lock()

    def __len__(self) -> int:
        return self._count

    def add(self, buffer: Buffer, spans: Spans) -> Int32Array:
        """The code of every span's bytes, never -1.

        Raises ValueError when a span reaches outside the buffer, OverflowError beyond 2^31 - 1
        distinct strings.
        """
        starts, stops = bounds_of(buffer, spans)
        lengths = stops - starts
        codes = np.empty(starts.size, np.int32)
        data, row = as_buffer(buffer), 0
        with self._lock:
            while True:
                row, self._count = intern(
                    data, starts, lengths, row, codes,
                    self._slots, self._ends, self._pool, self._count, *self._keys,
                )  # fmt: skip
                if row == starts.size:
                    return codes
                self._grow(int(lengths[row]))

    def add_bytes(self, value: bytes) -> int:
        """The code of one string."""
        one = Spans(np.zeros(1, np.int64), np.array([len(value)], np.int64))
        return int(self.add(as_buffer(value), one)[0])

    def code_of(self, value: bytes) -> int:
        """The code of a string that has been added, or -2 (no row holds that, nor a null's -1)."""
        with self._lock:
            code = int(find(as_buffer(value), self._slots, self._ends, self._pool, *self._keys))
        return -2 if code < 0 else code

    def bytes(self, code: int) -> bytes:
        """The string of a code."""
        # Of a code that is known both arrays have the string, before they grow and after.
        return self._pool[self._ends[code] : self._ends[code + 1]].tobytes()

    def spans(self) -> tuple[Buffer, Spans]:
        """All strings by code, as spans of the pool; the next `add` may move it."""
        ends = self._ends[: self._count + 1]
        return as_buffer(self._pool[: ends[-1]]), Spans(ends[:-1], np.diff(ends))

    @property
    def values(self) -> list[str]:
        """All strings by code, as text; bytes that are not UTF-8 become U+FFFD.

        The same list each time, longer where strings were added since.
        """
        with self._lock:
            done = len(self._values)
            if done < self._count:
                ends = self._ends[done : self._count + 1]
                raw = self._pool[ends[0] : ends[-1]].tobytes()
                at = (ends - ends[0]).tolist()
                if raw.isascii():
                    # Twice as fast as one decoding per string.
                    text = raw.decode("ascii")
                    self._values += [text[a:b] for a, b in pairwise(at)]
                else:
                    self._values += [raw[a:b].decode("utf-8", "replace") for a, b in pairwise(at)]
            return self._values

    def texts(self) -> Texts:
        """All strings by code, as text that is made when it is wanted: for columns of which most
        values are never shown.
        """
        return Texts(self)

    def _grow(self, length: int) -> None:
        """Make room for one more string of ``length`` bytes, and many more after it."""
        used = int(self._ends[self._count])
        if used + length > self._pool.size:
            pool = np.empty(max(2 * self._pool.size, used + length), np.uint8)
            pool[:used] = self._pool[:used]
            self._pool = pool
        if self._count + 1 >= self._ends.size:
            if self._count >= _MOST_CODES:
                raise OverflowError(f"more than {_MOST_CODES} distinct strings")
            slots = np.zeros(2 * self._slots.size, np.uint64)
            rehash(self._slots, slots)
            self._slots = slots
            ends = np.zeros(slots.size // 2 + 1, np.int64)
            ends[: self._count + 1] = self._ends[: self._count + 1]
            self._ends = ends


class Texts(Sequence[str]):
    """The strings of an `Interner` as text; those that are added later belong to it too."""

    __retained__ = "_strings"

    def __init__(self, strings: Interner) -> None:
        self._strings = strings

    def __len__(self) -> int:
        return len(self._strings)

    @overload
    def __getitem__(self, code: int) -> str: ...
    @overload
    def __getitem__(self, code: slice) -> list[str]: ...
    def __getitem__(self, code: int | slice) -> str | list[str]:
        if isinstance(code, slice):
            return self._strings.values[code]
        if not 0 <= code < len(self._strings):
            raise IndexError(code)
        return self._strings.bytes(code).decode("utf-8", "replace")

    def __iter__(self) -> Iterator[str]:
        return iter(self._strings.values)

    def spans(self) -> tuple[Buffer, Spans]:
        """Their bytes, as `Interner.spans`."""
        return self._strings.spans()


def utf8_of(texts: Sequence[str]) -> tuple[Buffer, Spans]:
    """The UTF-8 bytes of texts, one behind the other: a buffer, and a span of it per text.

    Texts of an `Interner` give its pool, which the next `Interner.add` may move. Raises
    UnicodeEncodeError for a text that has no UTF-8.
    """
    if isinstance(texts, Texts):
        pool, spans = texts.spans()
        # Others may be no UTF-8: their bytes are not those of their texts.
        if not (pool & 0x80).any():
            return pool, spans
    whole = "".join(texts)
    if whole.isascii():
        length = np.fromiter(map(len, texts), np.int64, len(texts))
        data = whole.encode()
    else:
        encoded = [text.encode() for text in texts]
        length = np.fromiter(map(len, encoded), np.int64, len(encoded))
        data = b"".join(encoded)
    return as_buffer(data), Spans(np.cumsum(length) - length, length)


def joined(
    buffer: Buffer,
    spans: Spans,
    parent: npt.NDArray[np.integer],
    parents: int,
    separator: bytes = b",",
) -> tuple[Buffer, Spans]:
    """One text per parent: its spans in order, ``separator`` (one byte) between two.

    ``parent`` is the parent of every span, ascending and below ``parents``. Returns a new buffer
    and a span of it per parent, empty where a parent has none. Raises ValueError when a span
    reaches outside the buffer.
    """
    starts, stops = bounds_of(buffer, spans)
    above = np.ascontiguousarray(parent, np.int64)
    if above.size and (above[0] < 0 or above[-1] >= parents or (np.diff(above) < 0).any()):
        raise ValueError("parents out of order")
    many = np.bincount(above, minlength=parents)
    total = np.zeros(parents, np.int64)
    np.add.at(total, above, stops - starts)
    total += np.maximum(many - 1, 0)
    first = np.cumsum(total) - total
    out = np.zeros(int(total.sum()), np.uint8)
    join(as_buffer(buffer), starts, stops - starts, above, separator[0], first.copy(), out)
    return as_buffer(out), Spans(first, total)
