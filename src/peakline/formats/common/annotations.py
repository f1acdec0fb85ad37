"""Stretches of their own code that programs name: which stand for a turn of a loop."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.tables.columns import Columns, Names

_PART = re.compile(
    r"(?i)(?:forward|backward|optimi[sz]er|\bloss|zero_?grad|data_?load|fetch|next_batch|to_device|"
    r"h2d|d2h|copy|all_?reduce|all_?gather|logging|checkpoint|save|warm_?up)"
)
"""What only a part of a turn is called."""


def outermost(rows: AnyArray, start: AnyArray, duration: AnyArray) -> AnyArray:
    """Of ``rows``, events of one thread, those that begin when the ones before them have ended."""
    rows = rows[np.lexsort((-duration[rows], start[rows]))]
    end = start[rows] + duration[rows]
    before = np.maximum.accumulate(np.concatenate([[np.iinfo(np.int64).min], end[:-1]]))
    return rows[start[rows] >= before]


def turns(rows: AnyArray, names: Names, is_other: Callable[[str], object]) -> AnyArray:
    """Of ``rows``, called ``names``, those that can each be a turn of a loop: called the same
    twice or more, not as a part of a turn, and not as ``is_other`` says.
    """
    codes, counts = np.unique(names.codes, return_counts=True)
    fit = [
        code
        for code, many in zip(codes.tolist(), counts.tolist(), strict=True)
        if many > 1
        and code >= 0
        and not is_other(names.values[code])
        and not _PART.search(names.values[code])
    ]
    return rows[np.isin(names.codes, fit)]


def counted(names: Iterable[str]) -> list[str]:
    """Each name with its number among its like, from 0 on."""
    numbers: dict[str, Iterator[int]] = defaultdict(count)
    return [f"{name} {next(numbers[name])}" for name in names]


def steps_columns(
    ids: Int64Array, names: Sequence[str], start: Int64Array, end: Int64Array, found_by: Names,
    is_cut_off: BoolArray | None = None,
) -> Columns:  # fmt: skip
    """The ``steps`` table, of steps that are whole unless ``is_cut_off`` says otherwise."""
    return Columns(
        {
            "step_id": ids,
            "name": Names.encode(names),
            "start_ps": start,
            "end_ps": end,
            "found_by": found_by,
            "is_cut_off": np.zeros(ids.size, np.bool_) if is_cut_off is None else is_cut_off,
        }
    )
