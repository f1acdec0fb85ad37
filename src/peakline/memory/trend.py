"""How a series rises: the median slope, and how consistently."""

from __future__ import annotations

import numpy as np

from peakline.arrays import Int64Array, IntpArray


def median_slope(values: Int64Array) -> float:
    """The median of the slopes between all pairs of places (Theil-Sen), 0 for fewer than two.

    Needs room for every pair: give it a few hundred values at most.
    """
    if values.size < 2:
        return 0.0
    rise, run = _pairs(values)
    return float(np.median(rise / run))


def concordance(values: Int64Array) -> float:
    """The share of pairs of places that rise less the share that fall; -1 to 1, 0 without pairs."""
    if values.size < 2:
        return 0.0
    rise, _ = _pairs(values)
    return float(np.sign(rise).sum() / rise.size)


def _pairs(values: Int64Array) -> tuple[Int64Array, IntpArray]:
    """For every pair of places how much higher the later one is, and how far apart they are."""
    first, second = np.triu_indices(values.size, 1)
    return values[second] - values[first], second - first
