"""What a series of bytes, one per step, does: leak, cache, step up, sawtooth, warm-up or steady.

The rules look at the *floor* of a series, which is at each step the least it ever comes back to
from there on: what stays, without what comes and goes. Only a floor that keeps rising is a
leak. All rules are pure arithmetic on one series; which series deserve a finding is decided in
`peakline.memory.growth.grown`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from peakline.arrays import Int64Array, IntpArray
from peakline.shown import Brief

STEADY = "steady"
"""Comes and goes, or stays: no growth."""
WARM_UP = "warm_up"
"""Rises in the first steps only."""
STEP_UP = "step_up"
"""Rises once or twice after the warm-up, and stays."""
CACHE = "cache"
"""Rises many times, and has stopped or nearly so."""
LEAK = "leak"
"""Rises to the end."""
SINGLE = "one_pass"
"""Rises to the end of one pass over a model's layers, or of few repetitions that show no release:
what looks like a leak by its bytes alone (`peakline.memory.growth.single_pass`)."""
SAWTOOTH = "sawtooth"
"""Rises for several steps, is released, and rises again."""

WARM_UP_STEPS = 2
"""A rise that is seen at the end of one of the first two steps is warm-up: variables, slots and
workspaces are made in the first step, and what the first step left is replaced in the second."""

MIN_RISES = 5
"""Fewer rises are too few to say that growth goes on, ..."""
MIN_MARKED = 3
"""... but of steps that the program marks so many are enough where there are no more than four, and
each leaves as much more: PyTorch's usual schedule records 3 to 5."""

SETTLED = 3.0
"""Growth has stopped when this many times its longest pause has passed without a rise."""

SLOWED = 0.2
"""Growth is that of a cache that fills up when its second half brings this share or less of it."""

RELEASED = 0.5
"""A fall by this share of the rise before it is a release: a tooth of a sawtooth."""

NOISE = 2.0
"""The floor must rise by this many times what comes and goes, for growth to differ from it."""

MIN_TOOTH = 3
"""A tooth takes this many rises; shorter ones are buffers that come and go."""

MIN_TEETH = 2
"""... and this many make a sawtooth."""

PAUSE = 3
"""Rises further apart than this many times the usual distance belong to different stretches."""

REGULAR = 0.25
"""A time between two releases is regular when it differs by this share of the median (or one step)
at most, ..."""
MOSTLY_REGULAR = 0.8
"""... and this share of them must be, for a period to be given."""

_POINTS = 256
"""The slope is taken over so many points at most: it needs every pair of them."""


@dataclass(frozen=True, repr=False)
class Pattern(Brief):
    """What a series does.

    ``kind`` is one of the constants of this module. ``since`` is the first step of the growth
    (the release before the last tooth in a sawtooth), ``until`` the last step that brought any.
    ``bytes_per_step`` is the median slope of the growth (Theil-Sen) from ``since`` to the end, or
    to ``until`` for a cache; of a sawtooth the median slope of its teeth, each from the last step
    of its low to its top. It is 0 where nothing grows. ``bytes`` is what the growth came to, the
    height of the highest tooth in a sawtooth. ``rises`` is how many steps grew. A leak to which
    less than half of the steps bring anything, and the others nothing at all, is ``sparse``; its
    ``bytes_per_step`` is the mean from the first rise to the last.

    ``confidence`` (0 to 1) is how consistent a growth is: the share of pairs of steps of which the
    later one holds more, less the share of which it holds less, times 1 - 2^(1 - ``rises``). It is
    1 - 2^(1 - n) for growth in every one of n steps: how unlikely it is that n - 1 changes of
    even chance all went up. Of a sawtooth it is the share of the steps that its teeth take.
    ``period`` is the usual number of steps from one release to the next, 0 where these differ.
    """

    kind: str
    since: int = 0
    until: int = 0
    bytes_per_step: float = 0.0
    bytes: int = 0
    rises: int = 0
    confidence: float = 0.0
    period: int = 0
    sparse: bool = False


@dataclass(frozen=True)
class _Tooth:
    """``low`` is the last step before it rises, ``released`` the first after its fall."""

    low: int
    high: int
    released: int
    height: int
    rises: int


def classify(series: Int64Array, *, is_marked: bool = False) -> Pattern:
    """The pattern of ``series``: bytes at the end of every step, in order.

    ``is_marked`` says that these are buffers alike, and the steps those that the program marks.
    """
    count = int(series.size)
    if count < 2:
        return Pattern(STEADY)
    if is_marked and MIN_MARKED <= count < MIN_RISES:
        more = int(series[1] - series[0])
        if series[0] >= more > 0 and (np.diff(series) == more).all():
            trust = 1 - 2.0 ** (1 - count)
            return Pattern(LEAK, 0, count - 1, float(more), more * count, count, trust)
    floor = np.minimum.accumulate(series[::-1])[::-1]
    grown = int(floor[-1] - floor[0])
    teeth, last_low = _teeth(series.tolist())
    real = [tooth for tooth in teeth if tooth.rises >= MIN_TOOTH]
    if len(real) >= MIN_TEETH:
        height = max(tooth.height for tooth in real)
        if series[last_low:].max() - series[last_low] <= 1.5 * height and grown < 1.5 * height:
            return _sawtooth(series, teeth, last_low)
    # One spike is forgiven; what comes and goes more often is the noise.
    heights = [0, *sorted(tooth.height for tooth in teeth)]
    if grown <= NOISE * heights[-2:][0]:
        return Pattern(STEADY)
    return _growth(series, floor)


def _growth(series: Int64Array, floor: Int64Array) -> Pattern:
    """The pattern of a series whose floor rises."""
    count = int(series.size)
    steps = np.diff(floor)
    rises = (np.flatnonzero(steps > 0) + 1).tolist()
    usual = float(np.median(steps[steps > 0]))
    distance = float(np.median(np.diff(rises))) if len(rises) > 1 else 0
    if rises[0] <= distance and 0.5 * usual <= floor[0] <= 2 * usual:
        # The first step left as much as the others did.
        rises.insert(0, 0)
    run = _last_stretch(rises)
    first, last = run[0], run[-1]
    base = int(floor[first - 1]) if first else 0
    grown = int(floor[-1]) - base
    if len(run) < MIN_RISES:
        if last <= WARM_UP_STEPS - 1:
            return Pattern(WARM_UP, 0, last, 0.0, int(floor[-1] - floor[0]), len(rises))
        late = [rise for rise in rises if rise >= WARM_UP_STEPS]
        base = int(floor[late[0] - 1])
        return Pattern(STEP_UP, late[0], late[-1], 0.0, int(floor[-1]) - base, len(late))
    pause = max(after - before for before, after in pairwise(run))
    middle = (first + count) // 2
    late_share = (floor[-1] - floor[middle - 1]) / grown
    stopped = count - 1 - last >= SETTLED * pause
    end = last if stopped else count - 1
    part = series[max(first - 1, 0) : end + 1]
    slope, trust = _trend(part)
    trust *= 1 - 2.0 ** (1 - len(run))
    kind = CACHE if stopped or late_share <= SLOWED else LEAK
    changes = int(np.count_nonzero(np.diff(series[first:])))
    sparse = kind == LEAK and 2 * max(len(run), changes) < count - first
    if sparse:
        slope = float(floor[last] - floor[first]) / (last - first)
    return Pattern(kind, first, last, slope, grown, len(run), max(trust, 0.0), sparse=sparse)


def _trend(part: Int64Array) -> tuple[float, float]:
    """The median slope per step, and the concordance."""
    stride = -(-part.size // _POINTS)
    # From the end: the last step is the one that counts.
    points = np.ascontiguousarray(part[::-1][::stride][::-1])
    return median_slope(points) / stride, concordance(points)


def _last_stretch(rises: list[int]) -> list[int]:
    """The rises from the end back to the first pause that is much longer than is usual."""
    gaps = [after - before for before, after in pairwise(rises)]
    start = len(rises) - 1
    for place in range(len(gaps) - 1, -1, -1):
        known = sorted(gaps[place + 1 :])
        usual = known[len(known) // 2] if known else gaps[place]
        if len(known) >= MIN_RISES - 1 and gaps[place] > max(PAUSE * usual, 2):
            break
        start = place
    return rises[start:]


def _teeth(series: list[int]) -> tuple[list[_Tooth], int]:
    """The rises that were released again, and the step at which the last release ended."""
    teeth: list[_Tooth] = []
    low = base = high = rises = 0
    for step in range(1, len(series)):
        height = series[high] - series[low]
        if height and series[high] - series[step] > RELEASED * height:
            teeth.append(_Tooth(base, high, step, height, rises))
            low = base = high = step
            rises = 0
        elif series[step] < series[low]:
            low = base = high = step
            rises = 0
        elif not rises and series[step] == series[low]:
            base = step
        elif series[step] > series[high]:
            high = step
            rises += 1
    return teeth, low


def _sawtooth(series: Int64Array, teeth: list[_Tooth], last_low: int) -> Pattern:
    slopes = [tooth.height / (tooth.high - tooth.low) for tooth in teeth]
    lengths = np.diff([tooth.released for tooth in teeth])
    usual = float(np.median(lengths))
    regular = np.abs(lengths - usual) <= max(REGULAR * usual, 1)
    end = last_low + int(series[last_low:].argmax())
    return Pattern(
        SAWTOOTH,
        last_low,
        int(series.size) - 1,
        float(np.median(slopes)),
        max(tooth.height for tooth in teeth),
        sum(tooth.rises for tooth in teeth),
        (end + 1 - teeth[0].low) / series.size,
        round(usual) if regular.mean() >= MOSTLY_REGULAR else 0,
    )


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
