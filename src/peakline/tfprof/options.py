"""What a view shows: tfprof's options, under tfprof's names, and its name patterns (RE2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from peakline.arrays import BoolArray, Int64Array
from peakline.errors import UsageError
from peakline.patterns import Pattern
from peakline.tables import Names

MEASURES = (
    "run_count",
    "exec_micros",
    "accelerator_exec_micros",
    "cpu_exec_micros",
    "requested_bytes",
    "peak_bytes",
    "residual_bytes",
    "output_bytes",
    "parameters",
    "float_ops",
    "definition_count",
)
"""The columns of every matrix of measures, in order. Times are microseconds."""

ORDERS = {
    "bytes": "requested_bytes",
    "peak_bytes": "peak_bytes",
    "residual_bytes": "residual_bytes",
    "output_bytes": "output_bytes",
    "micros": "exec_micros",
    "accelerator_micros": "accelerator_exec_micros",
    "cpu_micros": "cpu_exec_micros",
    "params": "parameters",
    "float_ops": "float_ops",
}
"""The measure behind each ``order_by`` that means one, largest first."""

SELECTABLE = (*ORDERS, "device", "op_types", "occurrence", "input_shapes", "tensor_value")

EVERYTHING = (".*",)
"""The patterns that take every name, without looking at it."""


@dataclass(frozen=True)
class Options:
    """tfprof's options (tensorflow/core/profiler/tfprof_options.h); the defaults leave nothing out.

    ``step`` -1 means the average over the steps. ``order_by`` is ``name``, ``occurrence`` or a key
    of `ORDERS`. Patterns are RE2 expressions that must match a whole name.
    """

    order_by: str = "name"
    max_depth: int = 2**31 - 1
    min_bytes: int = 0
    min_peak_bytes: int = 0
    min_residual_bytes: int = 0
    min_output_bytes: int = 0
    min_micros: int = 0
    min_accelerator_micros: int = 0
    min_cpu_micros: int = 0
    min_params: int = 0
    min_float_ops: int = 0
    min_occurrence: int = 0
    step: int = -1
    account_type_regexes: tuple[str, ...] = EVERYTHING
    start_name_regexes: tuple[str, ...] = EVERYTHING
    trim_name_regexes: tuple[str, ...] = ()
    show_name_regexes: tuple[str, ...] = EVERYTHING
    hide_name_regexes: tuple[str, ...] = ()
    account_displayed_op_only: bool = False


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
    result = np.zeros(len(names), np.bool_)
    for hits in _hits(names, patterns):
        result |= hits
    return result


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
