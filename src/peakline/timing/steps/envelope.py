"""The steps of a device for so many pixels, and their order by any column."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.tables import Columns, Profile
from peakline.tables.columns import Names
from peakline.timing.step_breakdown import StepTimes
from peakline.timing.steps.facts import step_facts_of

_DIGITS = re.compile(r"([0-9]+)")


@dataclass(frozen=True, eq=False)
class Envelope:
    """Columns of steps, from ``first`` to before ``last``: the least, the median (of an even number
    the shorter of the two in the middle), the mean and the most of their times, in ps; the place of
    the longest, and the mean of each part (columns x parts), rounded down. Places are among the
    rows that it was made of.
    """

    first: Int64Array
    last: Int64Array
    least: Int64Array
    median: Int64Array
    mean: Int64Array
    most: Int64Array
    longest: Int64Array
    parts: Int64Array


def column_bounds(many: int, width: int) -> Int64Array:
    """Where columns of equally many begin, and the end of the last: of ``many``, at most ``width``
    columns.
    """
    columns = min(width, many)
    return np.arange(columns + 1, dtype=np.int64) * many // max(columns, 1)


def envelope_of(times: StepTimes, rows: Int64Array, width: int) -> Envelope:
    """``rows`` of ``times``, in order of time, in at most ``width`` columns."""
    bounds = column_bounds(rows.size, width)
    first, last = bounds[:-1], bounds[1:]
    wall, parts = times.wall[rows], times.parts[rows]
    if not first.size:
        return Envelope(first, last, *(first,) * 5, parts[:0])
    column = np.repeat(np.arange(first.size), last - first)
    # Of equally long ones the first is the longest.
    order = np.lexsort((-np.arange(rows.size), wall, column))
    size = last - first
    return Envelope(
        first,
        last,
        wall[order[first]],
        wall[order[first + (size - 1) // 2]],
        np.add.reduceat(wall, first) // size,
        wall[order[last - 1]],
        order[last - 1],
        np.add.reduceat(parts, first, axis=0) // size[:, None],
    )


def slow_rows_of(
    profile: Profile, times: StepTimes, rows: Int64Array
) -> tuple[AnyArray, BoolArray]:
    """Of ``rows`` of one device, in order of time: the row of `StepFacts` where the step is twice
    the median of its name or more, -1 elsewhere; and which of these are among the first of their
    name, which warm up.
    """
    # Steps that are cut off are not among the facts, and so never slow.
    facts = step_facts_of(profile)
    result = np.full(rows.size, -1, np.int64)
    if not rows.size or not facts.rows:
        return result, result >= 0
    number = int(times.device[rows[0]])
    device = facts.devices.index(times.devices[number]) if number >= 0 else 0
    slow = np.flatnonzero(facts.is_slow & (facts.device == device))
    ids = facts.part("step_id")[slow]
    order = np.argsort(ids, kind="stable")
    at = np.minimum(np.searchsorted(ids[order], times.step_id[rows]), max(slow.size - 1, 0))
    if slow.size:
        same = ids[order][at] == times.step_id[rows]
        result[same] = slow[order][at[same]]
    return result, (result >= 0) & facts.is_first[result]


def order_by(table: Columns, sort: str) -> Int64Array:
    """The rows of ``table`` in the order of a column, ``-column`` from the largest down; texts in
    natural order (2 before 10), what is equal in the table's order.
    """
    column = table[sort.removeprefix("-")]
    values: AnyArray = column.codes if isinstance(column, Names) else column
    if isinstance(column, Names):
        used, place = np.unique(values, return_inverse=True)
        texts = [_natural(column.values[code] if code >= 0 else "") for code in used.tolist()]
        rank = np.empty(used.size, np.int64)
        rank[sorted(range(used.size), key=texts.__getitem__)] = np.arange(used.size)
        values = rank[place]
    elif values.dtype == np.bool_:
        values = values.astype(np.int64)
    return np.argsort(-values if sort.startswith("-") else values, kind="stable")


def _natural(text: str) -> list[tuple[int, str]]:
    pieces = _DIGITS.split(text.casefold())
    return [(int(one[:18]), one) if k % 2 else (0, one) for k, one in enumerate(pieces)]
