"""How much more than its baseline a figure may be: a fixed share, or what its noise makes likely.

From `LEARNED` runs on, the noise of every figure is learned from them. The middle is their median.
Runs farther from it than `_OUTLIER` median absolute deviations (times 1.4826, which makes that of
normal noise its standard deviation) are moved to that distance (Winsor's rule), so that one bad run
does not widen what is allowed. Of the runs so moved the standard deviation s is taken; the next of
n + 1 runs is, at most once in 400, above the median + t s sqrt(1 + 1/n), t being the quantile
99.75 % of Student's distribution with n - 1 degrees of freedom (the prediction interval of a normal
sample). No figure is held to less than a floor of its measure, which a handful of equal runs would
otherwise make nothing.

A tolerance that is given replaces what is learned, but not noise: a time fails only where it is
also beyond what the steps of both runs, and the runs of the baseline, vary by; and a share only
where it is more by so many points, whatever the tolerance is of it (0.4 % of input wait are soon
doubled).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from peakline.check.units import BYTES, PS, SHARE

LEARNED = 5
"""From so many runs on noise is learned."""
MOST_RUNS = 20
"""So many runs a baseline holds; older ones make room."""
_OUTLIER = 6 * 1.4826
# Student's distribution at 99.75 %, from 4 degrees of freedom on.
_T = (
    5.598, 4.773, 4.317, 4.029, 3.833, 3.690, 3.581, 3.497,
    3.428, 3.372, 3.326, 3.286, 3.252, 3.222, 3.197, 3.174,
)  # fmt: skip
_FIXED: Mapping[str, float] = {BYTES: 0.05, PS: 0.25, SHARE: 0.10}
"""Of fewer runs: so much more than their median, a share of it; of shares so many points."""
_FEW = 3.0
"""Standard deviations that noise may make of fewer runs, or of the steps' median."""
_FLOOR: Mapping[str, float] = {BYTES: 0.01, PS: 0.05, SHARE: 0.02}
"""The least that is allowed above the median where noise is learned; as `_FIXED`."""

Key = tuple[str, str]
"""The name of a figure, and what it is of: an allocator, a program, empty for time."""
Run = Mapping[Key, float]
"""The figures of one run."""


@dataclass(frozen=True)
class Allowed:
    """``base`` is the median of so many ``runs``, ``spread`` their standard deviation without
    outliers, None of fewer than two; ``limit`` is the most that passes.
    """

    base: float
    limit: float
    runs: int = 1
    spread: float | None = None


@dataclass(frozen=True)
class Allowance:
    """What is allowed beside the runs of a baseline; a ``tolerance`` replaces what was learned."""

    tolerance: float | None = None
    runs: Sequence[Run] = ()

    def of(self, key: Key, measure: str, base: float, error: float = 0.0) -> Allowed:
        """What a figure may be; ``base`` is it in the baseline's last run, ``error`` the standard
        error of its difference by what both runs hold. A figure that is not the one of ``key``
        there (of several programs of one name) stands alone.
        """
        values = [run[key] for run in self.runs if key in run]
        is_same = values and values[-1] == base
        return allowed(values if is_same else [base], measure, self.tolerance, error)


def allowed(
    values: Sequence[float], measure: str, tolerance: float | None = None, error: float = 0.0
) -> Allowed:
    """What the next run may be after ``values`` (one or more), of the latest `MOST_RUNS`."""
    values = values[-MOST_RUNS:]
    base, count = statistics.median(values), len(values)
    spread = _spread(values, base) if count > 1 else None
    quantile = (_T[count - LEARNED] if count >= LEARNED else _FEW) * math.sqrt(1 + 1 / count)
    noise = max(quantile * (spread or 0), _FEW * error)
    scale = 1 if measure == SHARE else base
    if tolerance is not None:
        least = {PS: noise, SHARE: _FLOOR[SHARE]}.get(measure, 0)
        more = max(tolerance * base, least)
    elif count < LEARNED:
        more = max(_FIXED[measure] * scale, _FEW * error)
    else:
        more = max(noise, _FLOOR[measure] * scale)
    return Allowed(base, base + more, count, spread)


def _spread(values: Sequence[float], base: float) -> float:
    reach = _OUTLIER * statistics.median(abs(value - base) for value in values)
    near = [min(max(value, base - reach), base + reach) for value in values]
    mean = math.fsum(near) / len(near)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in near) / (len(near) - 1))
