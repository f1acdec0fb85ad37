"""Name patterns: RE2, the dialect and the engine of tfprof, as DuckDB holds it.

RE2 takes time proportional to the text whatever the expression, so a pattern from a remote caller
cannot run for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from peakline.analysis.op_stats.options import EVERYTHING, Bools, Ints
from peakline.errors import UsageError
from peakline.profile import Names

__all__ = ["check_patterns", "matches_any", "times_matched"]

_LONGEST_PATTERN = 1000
_MOST_PATTERNS = 100


def check_patterns(option: str, patterns: Sequence[str]) -> None:
    """Raise UsageError when one of ``patterns`` is no RE2 expression, or they are too many."""
    if len(patterns) > _MOST_PATTERNS:
        raise UsageError(f"{option}: {len(patterns)} patterns; at most {_MOST_PATTERNS} are taken")
    longest = max(map(len, patterns), default=0)
    if longest > _LONGEST_PATTERN:
        raise UsageError(
            f"{option}: a pattern of {longest} characters; at most {_LONGEST_PATTERN} are taken"
        )
    try:
        matches_any([""], patterns)
    except UsageError as error:
        raise UsageError(f"{option}: {error}") from None


def matches_any(names: Sequence[str], patterns: Sequence[str]) -> Bools:
    """Per name, whether one of ``patterns`` matches all of it; no pattern matches nothing."""
    if tuple(patterns) == EVERYTHING:
        return np.ones(len(names), np.bool_)
    found = np.zeros(len(names), np.bool_)
    for hits in _hits(names, patterns):
        found |= hits
    return found


def times_matched(columns: Sequence[Names], patterns: Sequence[str]) -> Ints:
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


def _hits(names: Sequence[str], patterns: Sequence[str]) -> Iterator[Bools]:
    """Per pattern, which names it matches; raises UsageError for one that is no expression."""
    if not patterns:
        return
    import duckdb
    import pyarrow as pa

    with duckdb.connect(":memory:") as connection:
        connection.register("names", pa.table({"name": pa.array(names, pa.string())}))
        for pattern in patterns:
            try:
                found = connection.execute(
                    "select regexp_full_match(name, ?) as hit from names", [pattern]
                ).fetchnumpy()
            except duckdb.Error as error:
                reason = " ".join(str(error).split("Error: ", 1)[-1].split())
                raise UsageError(f"{pattern!r:.80} is no RE2 expression: {reason:.80}") from None
            yield np.asarray(found["hit"], np.bool_)
