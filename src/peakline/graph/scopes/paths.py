"""Names of nodes as paths of scopes, as columns of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from peakline.arrays import Int64Array, UInt64Array
from peakline.tables.columns import Names
from peakline.tables.joins import mix
from peakline.wire import Buffer, Interner, Spans, utf8_of

DEEPEST = 64
"""A path has at most so many parts: the last one holds what is left."""
_SLASH, _ZERO, _NINE, _HASH = np.frombuffer(b"/09#", np.uint8)
_SEPARATORS = np.frombuffer(b"._-", np.uint8)
_SHORTEST_END = 2
"""A separator, and ``#`` for the number behind it."""


@dataclass(frozen=True, eq=False)
class Paths:
    """Texts split at slashes: text n has the parts ``codes[first[n] : first[n + 1]]`` of ``parts``.

    ``stems`` numbers the parts without what distinguishes the members of a series: ``layer_1`` and
    ``layer_2`` have the same stem.
    """

    first: Int64Array
    codes: Int64Array
    parts: Sequence[str]
    stems: Int64Array

    @property
    def counts(self) -> Int64Array:
        """How many parts each text has."""
        return np.diff(self.first)

    def text(self, row: int, begin: int, end: int | None = None) -> str:
        """Some parts of a text, with slashes between them."""
        result = self.codes[self.first[row] : self.first[row + 1]][begin:end]
        return "/".join(self.parts[code] for code in result.tolist())

    def stem(self, row: Int64Array, begin: Int64Array, end: Int64Array) -> UInt64Array:
        """A number for the stems of the parts from ``begin`` to before ``end`` of each text."""
        result = mix(end - begin)
        length = end - begin
        for at in range(int(length.max(initial=0))):
            some = np.flatnonzero(length > at)
            part = self.codes[self.first[row[some]] + begin[some] + at]
            result[some] = mix(result[some], self.stems[part])
        return result

    def common(self, rows: Int64Array) -> int:
        """How many parts all these texts begin with, the last of each not counted."""
        if not rows.size:
            return 0
        least = int(self.counts[rows].min()) - 1
        for at in range(least):
            part = self.codes[self.first[rows] + at]
            if (part != part[0]).any():
                return at
        return max(least, 0)


def split_paths(texts: Sequence[str]) -> Paths:
    """Split every text at its slashes."""
    data, whole = utf8_of(texts)
    bounds = np.append(whole.start, data.size)
    slash = np.flatnonzero(data == _SLASH)
    before = np.searchsorted(slash, bounds)
    counts = np.diff(before)
    if (counts >= DEEPEST).any():
        place = np.arange(slash.size) - np.repeat(before[:-1], counts)
        slash = slash[place < DEEPEST - 1]
        before = np.searchsorted(slash, bounds)
    # A text has one part more than slashes.
    first = before + np.arange(bounds.size)
    begins, ends = np.zeros((2, int(first[-1])), np.bool_)
    begins[first[:-1]] = ends[first[1:] - 1] = True
    start, end = np.empty((2, begins.size), np.int64)
    start[begins], start[~begins] = bounds[:-1], slash + 1
    end[ends], end[~ends] = bounds[1:], slash
    parts = Interner()
    codes = parts.add(data, Spans(start, end - start)).astype(np.int64)
    stems = Interner().add(*_without_numbers(*parts.spans()))
    return Paths(first, codes, parts.texts(), stems.astype(np.int64))


def stems_of(names: Names) -> Int64Array:
    """Per row a number of its text, alike for those that differ in numbers only; a null is the
    empty text.
    """
    data, spans = _without_numbers(*utf8_of(names.values))
    padded = Spans(np.append(spans.start, 0), np.append(spans.length, 0))
    return Interner().add(data, padded.take(names.codes)).astype(np.int64)


def _without_numbers(data: Buffer, texts: Spans) -> tuple[Buffer, Spans]:
    """Texts, one behind the other in ``data``, without the numbers that they end with, each after
    one of ``._-``, and with ``#`` for any other number.
    """
    is_digit = (data >= _ZERO) & (data <= _NINE)
    opens = is_digit.copy()
    opens[1:] &= ~is_digit[:-1]
    starts = texts.start[texts.length > 0]
    opens[starts] = is_digit[starts]
    goes = is_digit & ~opens
    bare, is_number = np.where(opens, _HASH, data)[~goes], opens[~goes]
    bounds = np.append(texts.start, data.size)
    bounds = bounds - np.searchsorted(np.flatnonzero(goes), bounds)
    start, end = bounds[:-1], bounds[1:].copy()
    rows = np.arange(start.size)
    while rows.size:
        rows = rows[end[rows] - start[rows] >= _SHORTEST_END]
        last = end[rows] - 1
        rows = rows[is_number[last] & np.isin(bare[last - 1], _SEPARATORS)]
        end[rows] -= _SHORTEST_END
    return bare, Spans(start, end - start)
