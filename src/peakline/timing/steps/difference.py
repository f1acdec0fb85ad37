"""What a step, or a range of steps, does longer and shorter than another: by part, op and event.

The parts are those of the table ``step_breakdown``; each is divided among the events that it went
to (`peakline.timing.steps.attribution`), so that all differences add up to that of the durations.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.tables import Profile
from peakline.tables.joins import summed
from peakline.tables.once import once
from peakline.timing.step_breakdown import PARTS, StepTimes, step_times
from peakline.timing.steps.attribution import Attribution, Segments, attribution_of
from peakline.timing.steps.choice import Chosen, chosen_steps
from peakline.trace.events import DEVICE, Trace, nesting_of, trace_of
from peakline.trace.frames import frame_of
from peakline.trace.intervals import union
from peakline.trace.windows import windows_of

MOST_STEPS, MOST_EVENTS = 256, 500_000
"""A range of no more steps, or of no more events, is examined whole; of a longer one an even choice
of as many steps as hold so many events, so that an answer takes seconds at most."""
_EVENTS = 5
"""So many events of a row are named, those that take most."""


@dataclass(frozen=True)
class Mean:
    """A number of a mean step, and of the mean one that it is compared with."""

    value: int
    usual: int

    @property
    def difference(self) -> int:
        """How much larger the first is."""
        return self.value - self.usual

    def __add__(self, other: Mean) -> Mean:
        return Mean(self.value + other.value, self.usual + other.usual)


NONE = Mean(0, 0)


@dataclass(frozen=True, eq=False)
class Work:
    """An op, or a function, in one part of the steps' time.

    ``ps`` is the time of the steps that it takes, ``self_ps`` its self time on all lines together,
    hidden behind other work or not, ``count`` how often it runs in a step (of several the mean).
    ``events`` are places in the trace, those of the steps that take most of ``ps``, ``usual`` those
    of the steps that they are compared with. The name is None where no function is recorded.
    """

    part: str
    name: str | None
    side: str
    ps: Mean
    self_ps: Mean
    count: tuple[float, float]
    events: tuple[int, ...]
    usual: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class PartDifference:
    """A part of the steps' time, and of it what no event explains."""

    part: str
    ps: Mean
    unattributed: Mean


@dataclass(frozen=True, eq=False)
class StepDifference:
    """Steps against others, of the device called ``device`` (None: the host); picoseconds.

    ``ops`` and ``frames`` divide the parts twice, those that differ most first: by what ran, and by
    the innermost function of the program around it (none where no frames were recorded). Of the
    steps ``examined`` are looked at, all unless they hold very many events.
    """

    device: str | None
    steps: Chosen
    usual: Chosen
    wall: Mean
    parts: tuple[PartDifference, ...]
    ops: tuple[Work, ...]
    frames: tuple[Work, ...]
    examined: int


def step_difference_of(
    profile: Profile,
    step: str | None = None,
    last: str | None = None,
    against: str | None = None,
    device: str | None = None,
) -> StepDifference | None:
    """Compare a step (its id or name; default: the one that is longest by its median), or those
    from it to ``last`` in order of time, with the step ``against`` (default: the median one of its
    name).

    ``device`` names one; default: the one on which the step is longest. None without steps. Raises
    NotFoundError for an unknown step or device, InputError when the profile cannot be read.
    """
    times = step_times(profile)
    result = chosen_steps(times, step, last, against, device)
    if result is None:
        return None
    number, steps, usual = result
    plane = None
    if number >= 0:
        own = windows_of(profile)[number].device
        plane = None if own is None else own.plane_id
    trace = trace_of(profile)
    examined = [chosen.sample(_most_steps(trace, times, chosen)) for chosen in (steps, usual)]
    sides = [_Side(profile, times, plane, rows) for rows in examined]
    ops = _works(trace, sides, [side.codes for side in sides])
    frames = _works(
        trace, sides, [frame_codes(profile, side.pieces.event) for side in sides], of_ops=False
    )
    parts = _parts(sides, ops)
    wall = Mean(*(int(side.parts.sum()) for side in sides))
    return StepDifference(
        None if number < 0 else times.devices[number], steps, usual, wall, parts, ops,
        () if all(one.name is None for one in frames) else frames, int(examined[0].size),
    )  # fmt: skip


def _most_steps(trace: Trace, times: StepTimes, chosen: Chosen) -> int:
    """Of how many of the steps all events are examined."""
    rows = chosen.rows
    if rows.size <= MOST_STEPS:
        return int(rows.size)
    begin, end = int(times.start[rows].min()), int(times.end[rows].max())
    spans = [np.searchsorted(trace.start[line.events], [begin, end]) for line in trace.lines]
    events = sum(int(last - first) for first, last in spans)
    return (
        int(rows.size)
        if events <= MOST_EVENTS
        else max(MOST_STEPS, rows.size * MOST_EVENTS // events)
    )


def _parts(sides: list[_Side], ops: tuple[Work, ...]) -> tuple[PartDifference, ...]:
    """The parts that are not zero on both sides."""
    explained = dict.fromkeys(PARTS, NONE)
    for one in ops:
        explained[one.part] += one.ps
    result = []
    for k, name in enumerate(PARTS):
        value, usual = (int(side.parts[k]) for side in sides)
        if value or usual:
            by = explained[name]
            left = Mean(value - by.value, usual - by.usual)
            result.append(PartDifference(name, Mean(value, usual), left))
    return tuple(result)


class _Side:
    """The steps on one side of a comparison: what a mean one of them went to, in whole numbers."""

    def __init__(
        self, profile: Profile, times: StepTimes, plane: int | None, rows: AnyArray
    ) -> None:
        windows = union(times.start[rows], times.end[rows])
        self.steps = max(rows.size, 1)
        self.found: Attribution = attribution_of(profile, plane, windows)
        self.pieces: Segments = self.found.pieces
        until = np.cumsum(times.parts[rows].sum(axis=0))
        self.before = np.concatenate([[0], until[:-1]])
        self.parts = self.mean(until) - self.mean(self.before)
        self.codes = trace_of(profile).name.codes[self.pieces.event].astype(np.int64)

    def mean(self, total: Int64Array) -> Int64Array:
        """What a mean step has of each total, rounded."""
        return (2 * total + self.steps) // (2 * self.steps)

    def divided(self, totals: Int64Array, part: Int64Array) -> Int64Array:
        """What a mean step has of ``totals``, which stand by their ``part``: rounded so that they
        add up to no more than the part.
        """
        until = np.cumsum(totals)
        first = np.searchsorted(part, part)
        until += self.before[part] - (until - totals)[first]
        return self.mean(until) - self.mean(until - totals)


def frame_codes(profile: Profile, event: Int64Array) -> Int64Array:
    """The name of the innermost function around each event, or itself, as a code; -1 for none: of
    the program, or of anybody where none of the program was recorded.
    """
    names, own = trace_of(profile).name, _frame_names(profile)
    if not own.any():
        return np.full(event.size, -1, np.int64)
    is_frame = own[names.codes]
    above = nesting_of(profile).around(event, is_frame)
    at = np.where(is_frame[event], event, above)
    return np.where(at >= 0, names.codes[np.maximum(at, 0)], -1).astype(np.int64)


@once
def _frame_names(profile: Profile) -> BoolArray:
    """Which names are those of such functions; the last, of no name, is none."""
    owners = [
        None if (one := frame_of(name)) is None else one.whose
        for name in trace_of(profile).name.values
    ]
    wanted = "program" if "program" in owners else None
    return np.array([*(o is not None and wanted in {o, None} for o in owners), False], np.bool_)


def _works(
    trace: Trace, sides: list[_Side], codes: list[Int64Array], *, of_ops: bool = True
) -> tuple[Work, ...]:
    """The pieces of both sides by part, name and kind of plane; what differs most first."""
    keys = [
        _keys(trace, side.pieces.event, code, side.pieces.part, of_ops=of_ops)
        for side, code in zip(sides, codes, strict=True)
    ]
    every, group = np.unique(np.concatenate(keys), return_inverse=True)
    groups = [group[: keys[0].size], group[keys[0].size :]]
    part = every // (2 * len(trace.name.values) + 2)
    ps = [
        side.divided(summed(own, side.pieces.ps, every.size), part)
        for side, own in zip(sides, groups, strict=True)
    ]
    spent, ran = _alone(trace, sides, every) if of_ops else (ps, _runs(sides, groups, every.size))
    order = np.argsort(-np.abs(ps[0] - ps[1]), kind="stable")
    tops = [_longest(side.pieces, own) for side, own in zip(sides, groups, strict=True)]
    result = []
    for k in order.tolist():
        _, code, on_device = _unkeyed(int(every[k]), len(trace.name.values))
        result.append(
            Work(
                PARTS[int(part[k])],
                None if code < 0 else trace.name.values[code],
                DEVICE if on_device else "host",
                Mean(int(ps[0][k]), int(ps[1][k])),
                Mean(int(spent[0][k]), int(spent[1][k])),
                (float(ran[0][k]), float(ran[1][k])),
                *(top.get(k, ()) for top in tops),
            )
        )
    return tuple(result)


def _keys(
    trace: Trace, event: Int64Array, code: Int64Array, part: Int64Array, *, of_ops: bool
) -> Int64Array:
    kinds = np.array([trace.planes[line.plane].kind == DEVICE for line in trace.lines], np.int64)
    on_device = kinds[trace.lines_of(event)] if of_ops and event.size else 0 * event
    result: Int64Array = (part * (len(trace.name.values) + 1) + code + 1) * 2 + on_device
    return result


def _unkeyed(key: int, names: int) -> tuple[int, int, bool]:
    part, code = divmod(key // 2, names + 1)
    return part, code - 1, bool(key % 2)


def _alone(
    trace: Trace, sides: list[_Side], every: Int64Array
) -> tuple[list[AnyArray], list[AnyArray]]:
    """Per op its self time on all lines, and how often it runs, in a mean step of each side."""
    width = 2 * (len(trace.name.values) + 1)
    bare = every % width
    spent: list[AnyArray] = []
    ran: list[AnyArray] = []
    for side in sides:
        event = side.found.event
        codes = trace.name.codes[event].astype(np.int64)
        keys = _keys(trace, event, codes, 0 * event, of_ops=True)
        spent.append(side.mean(summed(keys, side.found.own_ps, width)[bare]))
        ran.append(np.bincount(keys, minlength=width)[bare] / side.steps)
    return spent, ran


def _runs(sides: list[_Side], groups: list[Int64Array], size: int) -> list[AnyArray]:
    """Of how many events each group is, in a mean step of each side."""
    result = []
    for side, group in zip(sides, groups, strict=True):
        owner, _, _ = _pairs(group, side.pieces.event)
        result.append(np.bincount(owner, minlength=size) / side.steps)
    return result


def _longest(pieces: Segments, group: Int64Array) -> dict[int, tuple[int, ...]]:
    """Of each group the events that take most of it."""
    if not group.size:
        return {}
    owner, event, place = _pairs(group, pieces.event)
    total = summed(place, pieces.ps, owner.size)
    order = np.lexsort((-total, owner))
    owner, event = owner[order], event[order]
    rank = np.arange(owner.size) - np.searchsorted(owner, owner)
    few = rank < _EVENTS
    result: dict[int, tuple[int, ...]] = {}
    for one, which in zip(owner[few].tolist(), event[few].tolist(), strict=True):
        result[one] = (*result.get(one, ()), which)
    return result


def _pairs(group: Int64Array, event: Int64Array) -> tuple[Int64Array, Int64Array, Int64Array]:
    """The different pairs of both, ordered, and for each entry the place of its pair."""
    width = int(event.max(initial=0)) + 1
    keys, place = np.unique(group * width + event, return_inverse=True)
    return keys // width, keys % width, place
