"""Values as pixels, and the round numbers that an axis is marked with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

import numpy as np

from peakline.arrays import Float64Array


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
        found = np.asarray(values, np.float64)
        return self.start + (found - self.low) * (self.end - self.start) / span

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
