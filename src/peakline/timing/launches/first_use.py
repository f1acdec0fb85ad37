"""Long calls that only a first use makes: a runtime loads a library, a module or a kernel, makes a
context or a stream, or tries which algorithm is the fastest.

Such a call is long beside others of its like, or stands alone, and nothing ran on a device
meanwhile; whatever it launches, it launches for the first time. A loop does not make it again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.tables import Profile
from peakline.tables.event_rules import EventKind
from peakline.tables.once import once
from peakline.timing.ops.host import host_executions
from peakline.trace.activity import activity_of, event_kinds
from peakline.trace.activity_names import Activity
from peakline.trace.activity_sets import device_sets_of, either
from peakline.trace.events import HOST, Trace, trace_of
from peakline.trace.intervals import Intervals, covered, union
from peakline.trace.links import links_of
from peakline.trace.steps import steps_of

LONG_PS = 10**10
"""10 ms: no launch takes so long while its device has nothing to do."""
_TIMES = 10
"""A first use takes so many times as long as the median of the others of its like."""
_IDLE = 0.9
"""The devices do nothing in so much of it."""
_FEW_STEPS = 5
"""With fewer steps nobody knows what the first ones take because they are the first."""
_CALL = re.compile(r"(?:cuda|cu|hip)(?!\w*(?:[Mm]emcpy|[Mm]emset|[Ss]ynchronize|Wait))[A-Z]\w*")
"""Calls of a device's runtime or driver, but what copies, or waits, as long as it has to."""


@dataclass(frozen=True, eq=False)
class FirstUses:
    """``event`` are the places of such calls in the trace, ``usual_ps`` how long others of their
    like take (-1: there is no other).
    """

    event: Int64Array
    usual_ps: Int64Array
    intervals: Intervals


@once
def first_uses_of(profile: Profile) -> FirstUses:
    """The calls that only a first use makes, in order of time.

    Raises InputError when the profile cannot be read.
    """
    trace = trace_of(profile)
    none = np.zeros(0, np.int64)
    if not trace.size:
        return FirstUses(none, none, union(none, none))
    places, like = _calls(profile, trace)
    event, usual = _first_of(trace, places, like)
    busy = either(*(either(*one.sets.values()) for one in device_sets_of(profile)))
    length = trace.end[event] - trace.start[event]
    is_idle = covered(busy, trace.start[event], trace.end[event]) <= (1 - _IDLE) * length
    event, usual = event[is_idle], usual[is_idle]
    if steps_of(profile).size < _FEW_STEPS and not busy[0].size:
        own, own_usual = _ops(profile, trace)
        event, usual = np.append(event, own), np.append(usual, own_usual)
    order = np.argsort(trace.start[event], kind="stable")
    event, usual = event[order], usual[order]
    return FirstUses(event, usual, union(trace.start[event], trace.end[event]))


def _calls(profile: Profile, trace: Trace) -> tuple[Int64Array, Int64Array]:
    """The calls of a host that hand work to a device or prepare it, and a number for those that
    are alike: by their name, and by the name of the work that they launch.
    """
    named = trace.name.per_row(lambda text: bool(_CALL.match(text)), np.bool_)
    if trace.source == "op_runs":
        named = activity_of(profile) == Activity.LAUNCH
    elif (kinds := event_kinds(profile)) is not None:
        named |= kinds[trace.rows(slice(None))] == EventKind.LAUNCH
    places = np.flatnonzero(named)
    # Most profiles have no call that is long: what each launches need not be known then.
    if not (trace.end[places] - trace.start[places] >= LONG_PS).any():
        return places[:0], places[:0]
    places = places[trace.within(trace.lines_on(HOST))[places]]
    work = trace.name.codes[places]
    if trace.source == "op_runs":
        types = profile.columns("op_runs", frozenset(("op_type",))).names("op_type")
        work = types.codes[trace.rows(places)]
    launched = np.full(trace.size, -1, np.int32)
    links = links_of(profile)
    launched[links.cause] = trace.name.codes[links.target]
    pairs = np.stack([work, launched[places]])
    _, like = np.unique(pairs, axis=1, return_inverse=True)
    return places, like.reshape(-1)


def _first_of(
    trace: Trace, places: AnyArray, like: AnyArray, length: AnyArray | None = None
) -> tuple[Int64Array, Int64Array]:
    """Of ``places``, where ``like`` numbers those that are alike, the first of each that is long,
    by itself and beside the others; and the median of these.
    """
    length = trace.end[places] - trace.start[places] if length is None else length
    order = np.lexsort((trace.start[places], like))
    first = np.ones(order.size, np.bool_)
    first[1:] = like[order][1:] != like[order][:-1]
    bounds = np.append(np.flatnonzero(first), order.size)
    event, usual = [], []
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        took = int(length[order[begin]])
        if took < LONG_PS:
            continue
        others = length[order[begin + 1 : end]]
        median = int(np.median(others)) if others.size else -1
        if took >= _TIMES * median:
            event.append(int(places[order[begin]]))
            usual.append(median)
    return np.array(event, np.int64), np.array(usual, np.int64)


def _ops(profile: Profile, trace: Trace) -> tuple[Int64Array, Int64Array]:
    """First executions of ops on the host alone; an op that ran once says nothing, and one that
    waits for other processes is long where these are late.
    """
    runs = host_executions(profile)
    event, usual = _first_of(trace, runs.event.astype(np.int64), runs.op, runs.own_ps)
    waits = activity_of(profile)[event] == Activity.COMMUNICATION
    compares: BoolArray = (usual >= 0) & ~waits
    return event[compares], usual[compares]
