"""What a request's time went to: of the spans that cover an instant the one of the highest rank.

Sources of the rules: ``xprof/utils/event_span.cc`` and ``xprof/convert/inference_stats.cc`` of
openxla/xprof.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple


class Part(IntEnum):
    """The parts of a request's time, by rank."""

    IDLE = 0
    HOST_PREPROCESS = 20
    HOST_POSTPROCESS = 30
    HOST_BATCH_FORMATION = 40
    HOST_RUNTIME = 50
    HOST_TO_DEVICE = 80
    DEVICE_TO_HOST = 130
    DEVICE_COMPUTE = 140

    __hash__ = int.__hash__


class Span(NamedTuple):
    """A span of time in ps; an end before the begin stands for one without length."""

    part: Part
    begin_ps: int
    end_ps: int


Spent = dict[Part, int]
"""Time in ps, by part."""


def spent_within(spans: Iterable[Span], begin_ps: int, end_ps: int) -> Spent:
    """What ``begin_ps`` to ``end_ps`` went to; idle is what no span covers."""
    clipped = [
        Span(span.part, max(span.begin_ps, begin_ps), min(span.end_ps, end_ps)) for span in spans
    ]
    spent = xprof_spent([span for span in clipped if span.end_ps > span.begin_ps])
    covered = sum(spent.values()) - spent.get(Part.IDLE, 0)
    return {**spent, Part.IDLE: max(0, end_ps - begin_ps - covered)}


def xprof_spent(spans: Iterable[Span]) -> Spent:
    """What the time from the first begin to the last end went to, as XProf counts it.

    A span without length ends before it begins: from then on all time is its part's, until a span
    of a higher rank begins or one of its own kind ends.
    """
    bounds: list[tuple[int, int, int, Part]] = []
    for part, begin, end in spans:
        bounds += [(begin, 1, -part, part), (max(begin, end), 0, -part, part)]
    bounds.sort()
    count = dict.fromkeys(Part, 0)
    spent: Spent = {}
    highest = Part.IDLE
    for (time, is_begin, _, part), (following, *_) in pairwise(bounds):
        if is_begin:
            count[part] += 1
            highest = max(highest, part)
        else:
            count[part] -= 1
            if part == highest and not count[part]:
                below = [other for other, open_ in count.items() if other < part and open_ > 0]
                highest = max(below, default=Part.IDLE)
        spent[highest] = spent.get(highest, 0) + following - time
    return spent
