"""The part of a trace that one question to ``trace_viewer@`` gets: a viewport, or found names.

Sources (openxla/xprof, ``xprof/convert/trace_viewer``): ``trace_viewer_visibility.cc`` for what is
shown at a resolution, ``trace_events.h`` for levels and search, ``trace_events.cc`` for serial
numbers, ``trace_events_util.h`` for the order of events.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from peakline.arrays import AnyArray
from peakline.errors import NotFoundError
from peakline.kernels.viewports import at_times, choose_per_track
from peakline.viewer.view import COMPLETE, View

MANY_EVENTS = 500_000
"""From this many on the events of a profile are thinned."""
MS = 1_000_000_000
"""Picoseconds of a millisecond."""
_MOST_MS = 9e9
"""No time farther from zero fits in 64 bits of picoseconds; a farther one counts as this."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """The events of an answer, as indices into the view, and what is known of all.

    ``serial`` counts those before each that start at the same time. ``span`` is when all events
    begin and end, on the profile's clock; ``total`` how many there are; ``thinned`` whether some
    in the viewport were left out because there is no room to draw them.
    """

    events: AnyArray
    serial: AnyArray
    span: tuple[int, int]
    total: int
    thinned: bool


def choose(view: View, begin_ms: float, end_ms: float, resolution: int | None) -> Chosen:
    """What a viewport shows. Milliseconds on the file's clock; an end of 0 is the last event's, and
    where the begin is 0 too the viewport is all there is, before the clock's zero as well.

    ``resolution`` is how many events can be distinguished side by side, 0 for no limit; None leaves
    nothing out unless there are `MANY_EVENTS`. Every event in the viewport is judged by the rule.
    """
    total, least, most = extent(view)
    # A viewport beside all there is holds nothing, however far away it is.
    begin = round(bounded(begin_ms) * MS) - view.zero_ps if begin_ms or end_ms else least
    begin = min(max(least, begin), most + 1)
    stop = round(bounded(end_ms) * MS) - view.zero_ps if end_ms else most
    stop = max(min(most, stop), least - 1)
    if resolution is None:
        resolution = 8000 if total >= MANY_EVENTS else 0
    step = max(0, round((stop - begin) / resolution)) if resolution else 0
    chosen = np.zeros(view.start.size, np.bool_)
    inside, room = -1, 64
    while inside < 0:
        room *= 4
        inside = choose_per_track(
            view.start, view.end, view.name.codes, view.hidden, view.first, begin, stop, step,
            chosen, np.empty(room, np.int64),
        )  # fmt: skip
    events = np.flatnonzero(chosen)
    return Chosen(events, serials(view, events), (least, most), total, bool(events.size < inside))


def all_of(view: View) -> Chosen:
    """All events, without serial numbers."""
    total, least, most = extent(view)
    events = np.flatnonzero(~view.hidden[view.name.codes])
    return Chosen(events, np.zeros(events.size, np.int64), (least, most), total, thinned=False)


def find_prefix(view: View, prefix: str) -> Chosen:
    """All events whose shown name begins with ``prefix``."""
    matches = np.array([text.startswith(prefix) for text in view.name.values] or [False], np.bool_)
    total, least, most = extent(view)
    events = np.flatnonzero((matches & ~view.hidden)[view.name.codes])
    return Chosen(events, serials(view, events), (least, most), total, thinned=False)


def find_event(view: View, name: str, begin_ms: float, duration_ms: float, serial: int) -> Chosen:
    """The one event of that shown name, begin, duration and serial number.

    Raises NotFoundError when there is none.
    """
    total, least, most = extent(view)
    begin, length = (round(bounded(time) * MS) for time in (begin_ms, duration_ms))
    begin = min(max(least - 1, begin - view.zero_ps), most + 1)
    parts = [np.zeros(0, np.int64)]
    for track in view.tracks:
        here = view.start[track.first : track.last]
        lo, hi = np.searchsorted(here, begin), np.searchsorted(here, begin, side="right")
        parts.append(np.arange(track.first + lo, track.first + hi))
    events = np.concatenate(parts)
    events = events[view.end[events] - view.start[events] == length]
    events = events[~view.hidden[view.name.codes[events]]]
    plain, named = (view.names_of(events, with_steps=with_steps) for with_steps in (False, True))
    events = events[(plain.codes == plain.code_of(name)) | (named.codes == named.code_of(name))]
    own = serials(view, events)
    events = events[own == serial][:1]
    if not events.size:
        raise NotFoundError(
            f"no event {name!r:.200} at {begin_ms} ms of {duration_ms} ms with number {serial}"
        ).quoting(repr(name)[:200])
    return Chosen(events, own[own == serial][:1], (least, most), total, thinned=False)


def extent(view: View) -> tuple[int, int, int]:
    """How many events have a name that is not hidden, and when they begin and end; 0 for none."""
    start, end = view.start, view.end
    if view.hidden.any():
        shown = ~view.hidden[view.name.codes]
        start, end = start[shown], end[shown]
    if not start.size:
        return 0, 0, 0
    return start.size, int(start.min()), int(end.max())


def bounded(time_ms: float) -> float:
    """The time, or the farthest that fits."""
    return max(-_MOST_MS, min(time_ms, _MOST_MS))


def in_order(view: View, events: AnyArray) -> AnyArray:
    """The places of ``events`` (ascending) in upstream's order: tracks merged by start, the longest
    first.

    What stands behind a shorter one of its track that starts with it comes after that.
    """
    # Points of one process are distinguished by name alone.
    ties: list[int] = []
    pid_of: dict[int, int] = {}
    for number, each in enumerate(view.tracks):
        ties.append(number if each.kind == COMPLETE else pid_of.setdefault(each.pid, number))
    start, track = view.start[events], view.tracks_of(events)
    tie = np.array(ties or [0], np.int32)[track]
    _, rank = np.unique(start - view.end[events], return_inverse=True)
    opens = np.ones(events.size, np.bool_)
    opens[1:] = (start[1:] != start[:-1]) | (track[1:] != track[:-1])
    base = (np.cumsum(opens) - 1) * (int(rank.max(initial=0)) + 1)
    behind = np.maximum.accumulate(base + rank) - base
    return np.lexsort((tie, behind, start))


def serials(view: View, events: AnyArray) -> AnyArray:
    """For each of ``events`` how many others that start at its time stand before it."""
    result = np.zeros(view.start.size, np.bool_)
    times = np.unique(view.start[events])
    at_times(view.start, view.name.codes, view.hidden, view.first, times, result)
    same = np.flatnonzero(result)
    order = same[in_order(view, same)]
    start = view.start[order]
    opens = np.ones(order.size, np.bool_)
    opens[1:] = start[1:] != start[:-1]
    place = np.arange(order.size)
    number = place - np.maximum.accumulate(np.where(opens, place, 0))
    found_as = np.empty(same.size, np.int64)
    found_as[np.searchsorted(same, order)] = number
    wanted: AnyArray = found_as[np.searchsorted(same, events)]
    return wanted
