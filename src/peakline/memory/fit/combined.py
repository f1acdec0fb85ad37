"""Several searches over limits, each for one thing that could be so: what holds for all of them."""

from __future__ import annotations

from collections.abc import Sequence

from peakline.memory.fit.model import Limits, Range
from peakline.replay.limits import Scan
from peakline.replay.requests import MIB, NO_LIMIT

_EVENTS, _TIMES = 4_000_000, 30
_OTHER_EVENTS, _OTHER_TIMES = 2_000_000, 6


def most_work(events: int, *, is_first: bool) -> int:
    """So many events are replayed at most to search for the limits of a recording of ``events``:
    in the settings that the answer is about (``is_first``) more than in others.
    """
    if is_first:
        return _EVENTS + _TIMES * events
    return _OTHER_EVENTS + _OTHER_TIMES * events


def combined(
    scans: Sequence[Scan], differs_by: Sequence[str] = (), unsearched: Sequence[str] = ()
) -> Limits:
    """The limits that fit in all of the searches, and those that fit in one or more.

    ``differs_by`` says per search after the first what it takes to be otherwise, ``unsearched``
    what was too much work to search for.
    """
    lowest = max(scan.lowest for scan in scans)
    each = [_above(scan.ranges(), lowest) for scan in scans]
    every, some = each[0], each[0]
    for other in each[1:]:
        every, some = _in_both(every, other), _joined([*some, *other])
    names = [name for name, result in zip(differs_by, each[1:], strict=True) if result != each[0]]
    names, unsearched = list(dict.fromkeys(names)), list(dict.fromkeys(unsearched))
    return Limits(
        tuple(every),
        tuple(some),
        lowest,
        all(scan.is_whole for scan in scans),
        tuple(names),
        tuple(unsearched),
    )


def _above(ranges: Sequence[Range], lowest: int) -> list[Range]:
    return [(max(low, lowest), high) for low, high in ranges if high is None or high >= lowest]


def _in_both(one: Sequence[Range], other: Sequence[Range]) -> list[Range]:
    result: list[Range] = []
    for low, high in one:
        for begin, end in other:
            first = max(low, begin)
            last = min(_end(high), _end(end))
            if first <= last:
                result.append((first, None if last >= NO_LIMIT else last))
    return result


def _joined(ranges: Sequence[Range]) -> list[Range]:
    result: list[Range] = []
    for low, high in sorted(ranges, key=lambda one: one[0]):
        if result and low <= _end(result[-1][1]) + MIB:
            last = max(_end(result[-1][1]), _end(high))
            result[-1] = (result[-1][0], None if last >= NO_LIMIT else last)
        else:
            result.append((low, high))
    return result


def _end(high: int | None) -> int:
    return NO_LIMIT if high is None else high
