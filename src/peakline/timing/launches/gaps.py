"""Times in which nothing is done: short ones between two pieces of a device's work, in which it is
fed, those between two steps, and, of a profile without steps, those in which the host launched
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, Int64Array
from peakline.tables import Profile
from peakline.tables.once import once
from peakline.timing.frame_work import callee_title
from peakline.timing.launches.first_use import first_uses_of
from peakline.timing.launches.summary import launch_summary
from peakline.timing.ops.eager import called, on_host
from peakline.timing.steps.facts import FEWEST_STEPS, WARM_UP, StepFacts
from peakline.timing.steps.slow import own_in
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity, is_marker
from peakline.trace.activity_sets import NEVER, DeviceSets, device_sets_of, either, host_sets_of
from peakline.trace.events import HOST, nesting_of, trace_of
from peakline.trace.intervals import Intervals, covered, union, without

WORKS = 0.01
"""A device that is busy for less than this share of the busiest one's time does none of the job's
work."""


@dataclass(frozen=True)
class IdleDevice:
    """The time of a device from its first to its last event, and what it waits for in it, in ps.

    The fields up to ``longest_idle_ps`` are columns of evidence. ``share`` is that of the time in
    which it waits for the host; ``work_share`` its busy time by that of the busiest device.
    """

    device: str
    span_ps: int
    busy_ps: int
    idle_ps: int
    not_launched_ps: int
    being_launched_ps: int
    waits_for_other_work_ps: int
    unexplained_ps: int
    compile_ps: int
    longest_idle_ps: int
    share: float
    work_share: float

    @property
    def works(self) -> bool:
        """Whether it does the job's work."""
        return self.work_share >= WORKS

    def as_row(self) -> dict[str, object]:
        """The columns of evidence."""
        return {name: value for name, value in vars(self).items() if "share" not in name}


def idle_devices_of(profile: Profile, least: float) -> list[IdleDevice]:
    """The devices with links from launches to work, those that do the job's work and wait first.

    Empty where none waits for ``least`` of its time; else the first one does, the idlest of those
    that do the job's work, or of all. Raises InputError when the profile cannot be read.
    """
    sets = {result.device.name: either(*result.sets.values()) for result in device_sets_of(profile)}
    result = []
    for launches in launch_summary(profile).devices:
        begin, end = sets.get(launches.device, (np.zeros(0), np.zeros(0)))
        span = int(end[-1] - begin[0]) if begin.size else 0
        if span:
            # What only a first use takes is none of the loop's.
            uses = int(covered(first_uses_of(profile).intervals, end[:-1], begin[1:]).sum())
            waits = max(launches.starved_ps + launches.latency_ps - uses, 0) / max(span - uses, 1)
            compiles = covered(_compilation(profile), end[:-1], begin[1:])
            result.append(
                (
                    launches.device,
                    span,
                    int((end - begin).sum()),
                    launches.idle_ps,
                    launches.starved_ps,
                    launches.latency_ps,
                    launches.blocked_ps,
                    launches.unexplained_ps,
                    int(compiles.sum()),
                    int((begin[1:] - end[:-1]).max(initial=0)),
                    min(waits, 1.0),
                )
            )
    most = max((one[2] for one in result), default=0)
    devices = [IdleDevice(*one, one[2] / most if most else 1.0) for one in result]
    devices.sort(key=lambda one: (not one.works, -one.share))
    # Of each sort the idlest stands first.
    first = next((one for one in devices if one.share >= least), None)
    return [] if first is None else [first, *(one for one in devices if one is not first)]


@once
def _compilation(profile: Profile) -> Intervals:
    """When a thread of the host compiled."""
    trace, does = trace_of(profile), activity_of(profile)
    events = on_host(trace, lambda events: does[events] == Activity.COMPILE)
    return union(trace.start[events], trace.end[events])


SHORTEST_PS = 3_000_000
"""A GPU takes one to three microseconds from a kernel to the next even where both are queued."""

LONGEST_PS = 100_000_000
"""Running one op from Python and launching its kernel takes 5 to 50 microseconds. Who waits longer
waits for something else."""

LONG_STALL, LEAST_STALL_PS = 10, 10**9
"""A wait between two steps is a long stall from ten times the median and a millisecond on."""

_RUNS, _NAMED = 0.01, 3
"""What runs between the steps for this share of the time there is named, so many at most."""

FEW_STALLS, MOST_STALLED = 0.25, 0.5
"""... named one by one where at most a quarter of the steps has one before it and together they
are half of all time between the steps."""


@dataclass(frozen=True, eq=False)
class Gaps:
    """Per row of `StepFacts`: how many such gaps its window holds, and how long they are."""

    count: Int64Array
    ps: Int64Array


def gaps_of(profile: Profile, facts: StepFacts) -> Gaps:
    """The gaps of `SHORTEST_PS` to `LONGEST_PS` in the windows of every step.

    None on a TPU, which runs a program's ops by itself. Raises InputError when the profile cannot
    be read.
    """
    count, length = np.zeros(facts.rows, np.int64), np.zeros(facts.rows, np.int64)
    begin, end = facts.part("start_ps"), facts.part("end_ps")
    for sets, rows in _rows_by_device(profile, facts):
        if sets.device.is_tpu:
            continue
        starts, ends = _short(*either(*sets.sets.values()))
        length[rows] = covered((starts, ends), begin[rows], end[rows])
        first, last = np.searchsorted(starts, (begin[rows], end[rows]))
        count[rows] = last - first
    return Gaps(count, length)


@dataclass(frozen=True, eq=False)
class BetweenSteps:
    """Per row of `StepFacts`, what the time since the end of the step before went to, in ps.

    ``input_wait`` is when the host waited for input and the device did nothing, ``nothing`` when
    neither that was so, nor the device (without one: a thread of the steps) did anything.
    """

    input_wait: Int64Array
    nothing: Int64Array


def between_steps(profile: Profile, facts: StepFacts) -> BetweenSteps:
    """What lies between the steps. Raises InputError when the profile cannot be read."""
    gap, begin = facts.part("gap_before_ps"), facts.part("start_ps")
    wait, nothing = np.zeros(facts.rows, np.int64), gap.astype(np.int64)
    if not gap.any():
        return BetweenSteps(wait, nothing)
    host = host_sets_of(profile)
    waits = host.get(Activity.INPUT_WAIT, NEVER)
    lanes = [(either(*sets.sets.values()), rows) for sets, rows in _rows_by_device(profile, facts)]
    if not facts.has_device:
        works = either(*(one for kind, one in host.items() if kind != Activity.INPUT_WAIT))
        lanes = [(works, np.arange(facts.rows))]
    for busy, rows in lanes:
        first, last = begin[rows] - gap[rows], begin[rows]
        wait[rows] = covered(without(waits, busy), first, last)
        nothing[rows] = gap[rows] - wait[rows] - covered(busy, first, last)
    return BetweenSteps(wait, nothing)


@dataclass(frozen=True)
class InputWaits:
    """How long training waits for input, in ps: within its steps and between them, of all
    ``whole_ps``; of several devices the mean.

    The first steps are ``left_out`` where there are enough others: a shuffle fills its buffer, and
    a cache is made, in these alone. ``waiting`` of the other ``steps`` have such a wait in them or
    before them.
    """

    steps: int
    left_out: int
    waiting: int
    within_ps: int
    between_ps: int
    whole_ps: int

    @property
    def share(self) -> float:
        """Of all the time, that which training waits."""
        return (self.within_ps + self.between_ps) / self.whole_ps if self.whole_ps else 0.0


def input_waits(facts: StepFacts, between: BetweenSteps) -> InputWaits:
    """How long the steps of ``facts``, with what lies ``between`` them, wait for input."""
    late = facts.number >= (WARM_UP if facts.count >= WARM_UP + FEWEST_STEPS else 0)
    within, before = facts.part("input_wait_ps")[late], between.input_wait[late]
    number, lanes = facts.number[late], facts.lanes
    steps = int(np.unique(number).size)
    waiting = int(np.unique(number[within + before > 0]).size)
    wall = int(facts.part("wall_ps")[late].sum()) + int(before.sum())
    return InputWaits(
        steps, facts.count - steps, waiting, int(within.sum()) // lanes,
        int(before.sum()) // lanes, wall // lanes,
    )  # fmt: skip


def _rows_by_device(profile: Profile, facts: StepFacts) -> list[tuple[DeviceSets, AnyArray]]:
    if not facts.has_device:
        return []
    number = {name: place for place, name in reversed(list(enumerate(facts.devices)))}
    return [
        (sets, np.flatnonzero(facts.device == number[sets.device.name]))
        for sets in device_sets_of(profile)
        if sets.device.name in number
    ]


def _short(begin: AnyArray, end: AnyArray) -> tuple[AnyArray, AnyArray]:
    starts, ends = end[:-1], begin[1:]
    lengths = ends - starts
    chosen = (lengths >= SHORTEST_PS) & (lengths <= LONGEST_PS)
    return starts[chosen], ends[chosen]


def waiting_ps(facts: StepFacts) -> AnyArray:
    """Per row, how long the device had nothing to do, and neither input nor compilation was why."""
    return sum_of(facts, "launch_ps", "host_compute_ps", "idle_ps")


def launching_ps(facts: StepFacts, gaps: Gaps) -> AnyArray:
    """How much of that is spread over launches: a short wait before one piece of work each."""
    return np.maximum(facts.part("launch_ps"), np.minimum(gaps.ps, waiting_ps(facts)))


def sum_of(facts: StepFacts, *parts: str) -> AnyArray:
    """Per row, what these parts of its time take together, in ps."""
    total: AnyArray = np.sum([facts.part(name) for name in parts], axis=0)
    return total


def stalls_of(facts: StepFacts, gaps: AnyArray, usual: int) -> AnyArray:
    """The rows before which a few long waits lie that make most of all, a wait of several devices
    once; the longest first. None where it is the usual wait that adds up.
    """
    rows = np.flatnonzero(gaps > max(LONG_STALL * usual, LEAST_STALL_PS))
    most = FEW_STALLS * facts.rows
    if rows.size > most or int(gaps[rows].sum()) < MOST_STALLED * int(gaps.sum()):
        return rows[:0]
    # Devices wait side by side: what overlaps is one stall, the longest of it.
    begin = (facts.part("start_ps") - facts.part("gap_before_ps"))[rows]
    order = np.argsort(begin, kind="stable")
    rows, begin = rows[order], begin[order]
    last = np.maximum.accumulate(begin + gaps[rows])
    stall = np.cumsum(np.concatenate([[0], begin[1:] >= last[:-1]])[: rows.size])
    order = np.lexsort((-gaps[rows], stall))
    first = np.unique(stall[order], return_index=True)[1]
    longest: AnyArray = rows[order[first]]
    return longest[np.argsort(-gaps[longest], kind="stable")]


def runs_between(profile: Profile, facts: StepFacts) -> list[str]:
    """What threads of the host run between the steps, the names with most self time first."""
    gap, end = facts.part("gap_before_ps"), facts.part("start_ps")
    rows = np.flatnonzero((gap > 0) & (facts.number > 0))
    rows = rows[np.argsort(end[rows], kind="stable")]
    trace = trace_of(profile)
    if not rows.size or not trace.size:
        return []
    begin = np.maximum(end[rows] - gap[rows], np.append(0, end[rows][:-1]))
    events, own = own_in(nesting_of(profile), begin, end[rows])
    on_host = [trace.planes[line.plane].kind == HOST for line in trace.lines]
    mine = np.array(on_host, np.bool_)[trace.lines_of(events)]
    codes = trace.name.codes[events[mine]]
    totals = np.bincount(codes[codes >= 0], own[mine][codes >= 0], len(trace.name.values))
    result: list[str] = []
    for code in np.argsort(-totals, kind="stable").tolist():
        if totals[code] < _RUNS * int(gap[rows].sum()) or len(result) == _NAMED:
            break
        name = trace.name.values[code]
        if not is_marker(name):
            result.append(callee_title(called(name)))
    return result
