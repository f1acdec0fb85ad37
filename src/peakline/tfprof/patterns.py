"""Name patterns: RE2, the dialect and the engine of tfprof."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.errors import UsageError
from peakline.patterns import Pattern
from peakline.tables import Names
from peakline.tfprof.options import EVERYTHING

_MOST_PATTERNS = 100


def check_patterns(option: str, patterns: Sequence[str]) -> None:
    """Raise UsageError when one of ``patterns`` is no RE2 expression, or they are too many."""
    if len(patterns) > _MOST_PATTERNS:
        raise UsageError(f"{option}: {len(patterns)} patterns; at most {_MOST_PATTERNS} are taken")
    try:
        for pattern in patterns:
            Pattern(pattern)
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from None


def matches_any(names: Sequence[str], patterns: Sequence[str]) -> BoolArray:
    """Per name, whether one of ``patterns`` matches all of it; no pattern matches nothing."""
    if tuple(patterns) == EVERYTHING:
        return np.ones(len(names), np.bool_)
    found = np.zeros(len(names), np.bool_)
    for hits in _hits(names, patterns):
        found |= hits
    return found


def times_matched(columns: Sequence[Names], patterns: Sequence[str]) -> Int64Array:
    """Per row, how many of ``patterns`` match all of one of its words, one word per column.

    The only pattern ``.*`` also takes rows without a word.
    """
    if tuple(patterns) == EVERYTHING:
        return np.ones(len(columns[0]), np.int64)
    words = sorted({word for column in columns for word in column.values})
    place = {word: number for number, word in enumerate(words)}
    # The place after the last word is that of rows without one, which nothing matches.
    codes = [
        np.array([*(place[word] for word in column.values), len(words)], np.int64)[column.codes]
        for column in columns
    ]
    count = np.zeros(len(columns[0]), np.int64)
    for hits in _hits(words, patterns):
        padded = np.append(hits, False)
        count += np.logical_or.reduce([padded[code] for code in codes])
    return count


def _hits(names: Sequence[str], patterns: Sequence[str]) -> Iterator[BoolArray]:
    """Per pattern, which names it matches; raises UsageError for one that is no expression."""
    for pattern in patterns:
        yield Pattern(pattern).matches(names)
