"""From which value to which an axis goes, where that is in pixels, and its round numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

import numpy as np

from peakline.arrays import Float64Array

Trace = Mapping[str, Any]
_ROOM = 0.05
"""Beyond the largest value."""


def axis_of(trace: Trace) -> str:
    """The name of a trace's y axis in the layout: ``yaxis``, ``yaxis2``."""
    return f"yaxis{str(trace.get('yaxis', 'y'))[1:]}"


def is_level(trace: Trace) -> bool:
    """Whether a trace's bars begin at the left."""
    return trace.get("orientation") == "h"


def numbers(values: Any) -> Float64Array:
    """A trace's values as an array."""
    return np.asarray(values, np.float64)


def stacked(traces: Sequence[Trace], *, is_stack: bool) -> Iterator[tuple[Trace, Float64Array]]:
    """Each trace of bars or areas with the values that it stands on, by its positions."""
    tops: dict[float, float] = {}
    for trace in traces:
        size, place = ("x", "y") if is_level(trace) else ("y", "x")
        sizes, places = numbers(trace[size]), numbers(trace[place]).tolist()
        if "base" in trace:
            base = numbers(trace["base"])
        elif is_stack:
            base = numbers([tops.get(one, 0.0) for one in places])
            tops.update(zip(places, (base + sizes).tolist(), strict=True))
        else:
            base = np.zeros(sizes.size)
        yield trace, base


def x_range(traces: Sequence[Trace], layout: Mapping[str, Any]) -> tuple[float, float]:
    """The values at the left and at the right end."""
    axis = layout.get("xaxis", {})
    if "range" in axis:
        return axis["range"][0], axis["range"][1]
    upright = [one for one in traces if one["type"] == "bar" and not is_level(one)]
    if upright:
        places = np.concatenate([numbers(one["x"]) for one in upright])
        return float(places.min()) - 0.5, float(places.max()) + 0.5
    level = [one for one in traces if is_level(one)]
    is_stack = layout.get("barmode") == "stack"
    ends = [base + numbers(one["x"]) for one, base in stacked(level, is_stack=is_stack)]
    ends += [numbers(one["x"]) for one in traces if not is_level(one)]
    return _bounds(ends, to_zero=axis.get("rangemode") == "tozero", is_exact=not level)


def y_range(name: str, traces: Sequence[Trace], layout: Mapping[str, Any]) -> tuple[float, float]:
    """The values at the lower and at the upper end of the axis ``name``."""
    axis = layout.get(name, {})
    if "range" in axis:
        return axis["range"][0], axis["range"][1]
    own = [one for one in traces if axis_of(one) == name]
    if any(is_level(one) for one in own):
        rows = max(len(axis.get("tickvals", ())), 1)
        # The first row is on top.
        return rows - 0.5, -0.5
    is_stack = layout.get("barmode") == "stack"
    bars = [one for one in own if one["type"] == "bar"]
    ends = [base + numbers(one["y"]) for one, base in stacked(bars, is_stack=is_stack)]
    areas = [one for one in own if one.get("stackgroup")]
    ends += [base + numbers(one["y"]) for one, base in stacked(areas, is_stack=True)]
    ends += [numbers(one["y"]) for one in own if one["type"] != "bar" and one not in areas]
    if name == "yaxis":
        ends += [numbers([value]) for value in _levels(layout.get("shapes", ()))]
    return _bounds(ends, to_zero=axis.get("rangemode") == "tozero")


def _levels(shapes: Iterable[Mapping[str, Any]]) -> Iterator[float]:
    for shape in shapes:
        if shape.get("yref", "y") == "y" and shape.get("y0") is not None:
            yield float(shape["y0"])


def _bounds(
    values: Sequence[Float64Array], *, to_zero: bool, is_exact: bool = False
) -> tuple[float, float]:
    every = np.concatenate([*values, np.zeros(0)])
    every = every[np.isfinite(every)]
    if not every.size:
        return 0.0, 1.0
    low, high = float(every.min()), float(every.max())
    if to_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    room = 0.0 if is_exact else _ROOM * (high - low)
    low -= 0.0 if to_zero and low == 0 else room
    return (low, high + room) if high > low else (low, low + 1.0)


@dataclass(frozen=True)
class Scale:
    """Values from ``low`` to ``high`` on the pixels from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The pixel of a value, also of one beyond the ends."""
        span = self.high - self.low or 1.0
        return self.start + (value - self.low) * (self.end - self.start) / span

    def clamped(self, value: float) -> float:
        """The pixel of a value; of one beyond an end that end."""
        least, most = sorted((self.start, self.end))
        return min(max(self.at(value), least), most)

    def all_at(self, values: Any) -> Float64Array:
        """The pixels of many values."""
        span = self.high - self.low or 1.0
        result = np.asarray(values, np.float64)
        return self.start + (result - self.low) * (self.end - self.start) / span

    def holds(self, value: float) -> bool:
        """Whether the value is drawn."""
        least, most = sorted((self.low, self.high))
        return least <= value <= most

    @property
    def pixels(self) -> float:
        """How long it is."""
        return abs(self.end - self.start)


def round_steps(low: float, high: float, most: int) -> list[float]:
    """At most about so many round numbers from ``low`` to ``high``: steps of 1, 2, 2.5 or 5."""
    low, high = min(low, high), max(low, high)
    if not high > low:
        return [low]
    raw = (high - low) / max(most, 1)
    power = 10.0 ** floor(log10(raw))
    step = next(one * power for one in (1, 2, 2.5, 5, 10) if one * power >= raw * 0.999)
    first, last = ceil(low / step - 1e-9), floor(high / step + 1e-9)
    return [one * step for one in range(first, last + 1)]


def step_texts(values: Sequence[float]) -> list[str]:
    """Round numbers as text, all with as many decimals as their step needs."""
    step = values[1] - values[0] if len(values) > 1 else abs(values[0]) or 1.0
    places = max(-floor(log10(step) + 1e-9), 0)
    # A step of 2.5 takes a digit more than one of 2.
    places += round(step, places) != round(step, places + 1)
    return [f"{round(value, places) + 0.0:,.{places}f}" for value in values]
