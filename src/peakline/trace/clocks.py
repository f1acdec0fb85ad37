"""Several hosts on one axis of time, and how far the clocks of the hosts can be trusted.

A profile's clock begins at zero; most formats say when that was by the host's own clock: XSpace
(the times of lines, or ``profile_start_time`` of the plane ``Task Environment``), the Chrome
traces of PyTorch (``baseTimeNanoseconds``) and StepStats (``all_start``). Clocks of hosts differ,
by milliseconds where something keeps them, by anything elsewhere. What happens on all hosts at
once shows it: a collective ends on all that take part when the last one has its data, and hosts
that wait for each other begin the steps of one name together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from peakline.arrays import Int64Array
from peakline.tables import Profile
from peakline.trace.activity import activity_of
from peakline.trace.activity_names import Activity
from peakline.trace.distribution import deviation, median_error
from peakline.trace.events import trace_of
from peakline.trace.steps import step_places_of, steps_of

_NONE = -1
LEAST_MATCHES = 3
"""Fewer steps in common say nothing about a clock."""
MOST_SPREAD = 0.05
"""Steps whose starts (ends of collectives) lie apart by amounts that vary by more than this part
of a step (median) were not run together."""
SURE = 3.0
"""A clock is put right when it is wrong by this many times the uncertainty."""


@dataclass(frozen=True, eq=False)
class HostClock:
    """What one host's profile says about time; can be pickled.

    ``zero_ns`` is when its clock was zero, in ns since 1970 by the host's own clock, None where the
    format does not say. Of steps with a name that no other step of the host has: the name, and
    when each began, ended, and its last collective ended (-1: it has none), in ps.
    """

    host: str
    zero_ns: int | None
    names: tuple[str, ...] = ()
    begin: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    end: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))
    collective_end: Int64Array = field(default_factory=lambda: np.zeros(0, np.int64))


@dataclass(frozen=True)
class HostOffset:
    """Where a host's clock lies: ``offset_ps`` is to be added to its times for the common axis.

    ``source``: ``clock`` (the host's own clock is believed), ``collectives`` or ``steps`` (put
    where those match those of the reference), ``none`` (nothing is known; its zero is that of the
    axis).
    ``matches`` things were compared with the reference, which says that the host's clock is
    ``skew_ps`` ahead of the reference's, give or take ``uncertainty_ps`` (the median deviation,
    scaled to that of a normal distribution); null where too few match, or match too badly
    (``spread_ps`` is their deviation even then).
    """

    host: str
    offset_ps: int
    source: str
    matches: int = 0
    matched: str = ""
    skew_ps: int | None = None
    uncertainty_ps: int | None = None
    spread_ps: int | None = None

    def as_json(self) -> dict[str, object]:
        """As tools show it."""
        return dict(vars(self))


@dataclass(frozen=True)
class Alignment:
    """One axis for several hosts; zero is that of the clock which began first.

    ``zero_ns`` is that moment in ns since 1970; None where no host knows. ``reference`` is the host
    that the others were compared with.
    """

    reference: str
    zero_ns: int | None
    hosts: tuple[HostOffset, ...]

    def of(self, host: str) -> HostOffset:
        """Where ``host`` lies; KeyError for one that is not there."""
        for own in self.hosts:
            if own.host == host:
                return own
        raise KeyError(host)

    def as_json(self) -> dict[str, object]:
        """As tools show it."""
        return {
            "reference": self.reference,
            "zero_ns": self.zero_ns,
            "hosts": [own.as_json() for own in self.hosts],
        }


def clock_of(profile: Profile, host: str | None = None) -> HostClock:
    """The clock of a profile whose host is called ``host`` (default: as the file says).

    Finds the steps and classifies the events: it costs what these cost. Raises InputError when the
    profile cannot be read.
    """
    name = profile.host if host is None else host
    zero = _zero_ns(profile)
    if "steps" not in profile.tables:
        return HostClock(name, zero)
    steps = steps_of(profile)
    names = [text or "" for text in steps.name.to_list()]
    last = _last_collectives(profile, steps.size)
    seen = Counter(names)
    rows = [row for row, text in enumerate(names) if text and seen[text] == 1]
    own = tuple(names[row] for row in rows)
    return HostClock(name, zero, own, steps.begin[rows], steps.end[rows], last[rows])


def _zero_ns(profile: Profile) -> int | None:
    if profile.start_ns is not None:
        return profile.start_ns
    if "op_times" in profile.tables and profile.has_rows("op_runs"):
        times = profile.columns("op_times", frozenset(("all_start_micros", "all_start_nanos")))
        since = profile.columns("op_runs", frozenset(("start_ps",))).array("start_ps")
        micros, nanos = times.array("all_start_micros"), times.array("all_start_nanos")
        when = np.where(nanos > 0, nanos, micros * 1000)
        timed = np.flatnonzero(when > 0)
        if timed.size:
            return int(when[timed[0]] - since[timed[0]] // 1000)
    return None


def _last_collectives(profile: Profile, steps: int) -> Int64Array:
    """Per row of ``steps``: when its last collective ended, -1 for one without."""
    last = np.full(steps, _NONE, np.int64)
    trace = trace_of(profile)
    events = np.flatnonzero(activity_of(profile) == Activity.COMMUNICATION)
    if events.size:
        step = step_places_of(profile)[events]
        events, step = events[step >= 0], step[step >= 0]
        np.maximum.at(last, step, trace.end[events])
    return last


def align(clocks: Sequence[HostClock]) -> Alignment:
    """One axis for hosts, by their own clocks, put right where what they have in common says so.

    The reference is the first host with most steps in common with the others, of those whose own
    clock is known. Another host's clock is compared with it by the ends of the last collectives of
    the steps that both have by name, else by the steps' begins: at least `LEAST_MATCHES`, that lie
    apart by the same amount to within `MOST_SPREAD` of a step. It is believed unless it is wrong by
    more than `SURE` times the uncertainty of that, and for begins of steps also by more than the
    time from one to the next: hosts may come late for a step.
    """
    if not clocks:
        return Alignment("", None, ())
    sets = [set(clock.names) for clock in clocks]
    shared = [
        (clock.zero_ns is not None, sum(len(own & other) for other in sets))
        for clock, own in zip(clocks, sets, strict=True)
    ]
    first = clocks[shared.index(max(shared))]
    base = min((clock.zero_ns for clock in clocks if clock.zero_ns is not None), default=None)
    result = [_against(first, clock, base) for clock in clocks]
    start = min((own.offset_ps for own in result), default=0)
    moved = tuple(replace(own, offset_ps=own.offset_ps - start) for own in result)
    return Alignment(first.host, None if base is None else base + start // 1000, moved)


def _own_offset(clock: HostClock, base: int | None) -> int | None:
    """Where the clock's zero lies by the host's own clock, in ps after ``base``."""
    return None if clock.zero_ns is None or base is None else (clock.zero_ns - base) * 1000


def _against(reference: HostClock, clock: HostClock, base: int | None) -> HostOffset:
    own, lead = _own_offset(clock, base), _own_offset(reference, base)
    believed = own if own is not None else 0
    plain = HostOffset(clock.host, believed, "clock" if own is not None else "none")
    if clock is reference:
        return plain
    what, here, there = _matches(reference, clock)
    matched = replace(plain, matches=int(here.size), matched=what)
    if here.size < LEAST_MATCHES:
        return matched
    ahead = (here + believed) - (there + (lead or 0))
    skew = int(np.median(ahead))
    spread = int(deviation(ahead - skew))
    period = float(np.median(np.abs(np.diff(np.sort(there)))))
    matched = replace(matched, spread_ps=spread)
    if spread > MOST_SPREAD * period:
        return matched
    # The median of n values is that much surer than one of them.
    unsure = int(median_error(spread, here.size)) + 1
    matched = replace(matched, uncertainty_ps=unsure, skew_ps=None if own is None else skew)
    # Nothing holds one host's step back but the collectives in it, so steps of hosts whose clocks
    # agree may begin apart by a large part of one.
    tolerance = 0.0 if what == "collectives" else period
    if own is not None and abs(skew) <= max(SURE * unsure, tolerance):
        return matched
    return replace(matched, offset_ps=believed - skew, source=what)


def _matches(reference: HostClock, clock: HostClock) -> tuple[str, Int64Array, Int64Array]:
    """What is the same on both: the ends of steps' last collectives, else begins of steps."""
    places = {name: row for row, name in enumerate(reference.names)}
    rows = [(row, places[name]) for row, name in enumerate(clock.names) if name in places]
    here = np.array([row for row, _ in rows], np.int64)
    there = np.array([row for _, row in rows], np.int64)
    both = (clock.collective_end[here] >= 0) & (reference.collective_end[there] >= 0)
    if np.count_nonzero(both) >= LEAST_MATCHES:
        here, there = here[both], there[both]
        return "collectives", clock.collective_end[here], reference.collective_end[there]
    return "steps", clock.begin[here], reference.begin[there]
