"""Counters as lanes of a timeline: memory in use of every allocator, and the profile's own.

A counter holds each value until the next one. Its least and largest values are exact at any width,
because every level of detail keeps those of the level below.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline import memory
from peakline.arrays import AnyArray, Float64Array, Int64Array, IntpArray
from peakline.deadline import check_deadline
from peakline.errors import UsageError
from peakline.kernels.timeline import extremes
from peakline.tables import Columns, Profile
from peakline.tables.once import once
from peakline.trace.events import FARTHEST
from peakline.trace.pixels import wide_pixels

_FAN_OUT = 16
MEMORY = "memory in use"


@dataclass(frozen=True, eq=False)
class CounterPixels:
    """A counter on so many pixels: what it was at least, at most, and at the end of each.

    NaN before the first value. The value that a pixel begins with counts for it too.
    """

    low: Float64Array
    high: Float64Array
    last: Float64Array


@dataclass(frozen=True, eq=False)
class Counter:
    """One series: ``value[n]`` holds from ``time_ps[n]`` (ascending) until the next.

    ``group`` says what it belongs to: the plane, or `MEMORY` for bytes in use, whose ``name`` is
    the allocator's. ``low`` and ``high`` are the values, and behind them the extremes of 16
    neighbours, of 256 and so on; ``level_first`` is where each of these levels begins.
    """

    group: str
    name: str
    time_ps: Int64Array
    low: Float64Array
    high: Float64Array
    level_first: Int64Array

    @property
    def value(self) -> Float64Array:
        """The values."""
        return self.low[: self.time_ps.size]

    def pixels(self, start_ps: int, end_ps: int, width: int) -> CounterPixels:
        """The counter from ``start_ps`` to ``end_ps`` on ``width`` pixels.

        Pixel n begins ``n * (end_ps - start_ps) // width`` after the start. Raises UsageError for
        an empty stretch.
        """
        if end_ps <= start_ps or width < 1:
            raise UsageError("a counter needs an end after its start, and a width of a pixel")
        edges, pixel = wide_pixels(start_ps, end_ps, width)
        bounds = np.searchsorted(self.time_ps, edges, side="left")
        # What holds at the pixel's very begin, if a value comes there it is that one.
        before = self._held(np.searchsorted(self.time_ps, edges[:-1], side="right"))
        low = np.where(np.isnan(before), np.inf, before)
        high = np.where(np.isnan(before), -np.inf, before)
        extremes(self.low, self.high, self.level_first, bounds, low, high)
        known = np.isfinite(low)
        low, high = np.where(known, low, np.nan), np.where(known, high, np.nan)
        return CounterPixels(low[pixel], high[pixel], self._held(bounds[1:])[pixel])

    def _held(self, past: IntpArray) -> Float64Array:
        """The last of the first ``past`` values; NaN for the last of none."""
        if not self.time_ps.size:
            return np.full(past.size, np.nan)
        return np.where(past > 0, self.value[past - 1], np.nan)


@once
def counters_of(profile: Profile) -> tuple[Counter, ...]:
    """The counters of a profile: memory in use by allocator, then the ``counters`` table's series.

    Made once. Raises InputError when the profile cannot be read.
    """
    return (*_memory(profile), *_own(profile))


def make_counter(group: str, name: str, time_ps: Int64Array, value: AnyArray) -> Counter:
    """A counter of values in order of time; values that are no finite number are left out."""
    numbers = np.asarray(value, np.float64)
    finite = np.isfinite(numbers)
    if not finite.all():
        time_ps, numbers = time_ps[finite], numbers[finite]
    levels = [(numbers, numbers)]
    while levels[-1][0].size > _FAN_OUT:
        low, high = levels[-1]
        starts = np.arange(0, low.size, _FAN_OUT)
        levels.append((np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)))
    first = np.cumsum([0, *(low.size for low, _ in levels)])
    low, high = (np.concatenate(part) for part in zip(*levels, strict=True))
    time = np.clip(np.asarray(time_ps, np.int64), -FARTHEST, FARTHEST)
    return Counter(group, name, time, low, high, first)


def _memory(profile: Profile) -> list[Counter]:
    records = memory.memory_records(profile)
    if records is None:
        return []
    result = []
    for number, allocator in enumerate(records.allocators):
        check_deadline()
        series = records.series(number)
        if series.rows.size:
            first = series.first
            result.append(
                make_counter(MEMORY, allocator, series.time_ps[first:], series.used[first:])
            )
    return result


def _own(profile: Profile) -> list[Counter]:
    if "counters" not in profile.tables or not profile.has_rows("counters"):
        return []
    table: Columns = profile.columns("counters")
    planes = {one["plane_id"]: one["name"] for one in profile.columns("planes").to_pylist()}
    name, series = table.names("name"), table.names("series")
    keys = np.stack([table.array("plane_id"), name.codes, series.codes])
    distinct, place = np.unique(keys, axis=1, return_inverse=True)
    order = np.lexsort((table.array("time_ps"), place))
    bounds = np.searchsorted(place[order], np.arange(distinct.shape[1] + 1)).tolist()
    result = []
    for number, (plane, own, part) in enumerate(distinct.T.tolist()):
        check_deadline()
        rows = order[bounds[number] : bounds[number + 1]]
        names = [text for text in (name.values[own], series.values[part]) if text]
        result.append(
            make_counter(
                planes.get(plane) or "",
                " ".join(dict.fromkeys(names)),
                table.array("time_ps")[rows],
                table.array("value")[rows],
            )
        )
    return result
