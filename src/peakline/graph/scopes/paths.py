"""Names of nodes as paths of scopes, as columns of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from peakline.arrays import Int64Array, UInt64Array
from peakline.tables.joins import mix

if TYPE_CHECKING:
    import pyarrow as pa

DEEPEST = 64
"""A path has at most so many parts: the last one holds what is left."""


@dataclass(frozen=True, eq=False)
class Paths:
    """Texts split at slashes: text n has the parts ``codes[first[n] : first[n + 1]]`` of ``parts``.

    ``stems`` numbers the parts without what distinguishes the members of a series: ``layer_1`` and
    ``layer_2`` have the same stem.
    """

    first: Int64Array
    codes: Int64Array
    parts: pa.StringArray
    stems: Int64Array

    @property
    def counts(self) -> Int64Array:
        """How many parts each text has."""
        return np.diff(self.first)

    def text(self, row: int, begin: int, end: int | None = None) -> str:
        """Some parts of a text, with slashes between them."""
        found = self.codes[self.first[row] : self.first[row + 1]][begin:end]
        return "/".join(self.parts[code].as_py() for code in found.tolist())

    def stem(self, row: Int64Array, begin: Int64Array, end: Int64Array) -> UInt64Array:
        """A number for the stems of the parts from ``begin`` to before ``end`` of each text."""
        found = mix(end - begin)
        length = end - begin
        for at in range(int(length.max(initial=0))):
            some = np.flatnonzero(length > at)
            part = self.codes[self.first[row[some]] + begin[some] + at]
            found[some] = mix(found[some], self.stems[part])
        return found

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
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pa.array(texts, pa.string())
    split = pc.split_pattern(column, "/", max_splits=DEEPEST - 1)
    encoded = split.values.dictionary_encode()
    first = np.asarray(split.offsets, np.int64)
    codes = np.asarray(encoded.indices, np.int64)
    parts = encoded.dictionary
    return Paths(first, codes, parts, stems_of(parts))


def stems_of(texts: Sequence[str] | pa.StringArray) -> Int64Array:
    """Numbers of texts, alike for those that differ in numbers only."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = pa.array(texts, pa.string())
    bare = pc.replace_substring_regex(column, r"(?:[._-]\d+)+$", "")
    bare = pc.replace_substring_regex(bare, r"\d+", "#")
    return np.asarray(bare.dictionary_encode().indices, np.int64)
