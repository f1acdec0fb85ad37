"""The part of a trace that one question to ``trace_viewer@`` gets: a viewport, or found names.

Sources (openxla/xprof, ``xprof/convert/trace_viewer``): ``trace_viewer_visibility.cc`` for what is
shown at a resolution, ``trace_events.h`` for levels and search, ``trace_events.cc`` for serial
numbers, ``trace_events_util.h`` for the order of events.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from peakline.errors import NotFoundError
from peakline.kernels.viewports import at_times, choose_in_order, choose_levels, choose_per_track
from peakline.viewer.flows import Flows
from peakline.viewer.view import COMPLETE, View

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "MANY_EVENTS",
    "Chosen",
    "all_of",
    "choose",
    "choose_as_xprof",
    "find_event",
    "find_prefix",
]

_Array = npt.NDArray[Any]
_LAST = np.iinfo(np.int64).max
_LEVELS = 10 ** np.arange(12, -1, -1, dtype=np.int64)
"""The resolutions, in ps, at which XProf stores events: from a second to a picosecond."""
MANY_EVENTS = 500_000
"""From this many on the events of a profile are thinned."""
_MOST_SERIAL = 255
"""XProf drops an event with more than this many others before it at the same start."""
_BOTH = 3
_MS = 1_000_000_000
"""Picoseconds of a millisecond."""
_MOST_MS = 9e9
"""No time farther from zero fits in 64 bits of picoseconds; one asked for counts as this."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """The events of an answer, as indices into the view, and what is known of all.

    ``serial`` counts those before each that start at the same time. ``span`` is when all events
    begin and end, on the profile's clock; ``total`` how many there are; ``thinned`` whether some
    in the viewport were left out because there is no room to draw them.
    """

    events: _Array
    serial: _Array
    span: tuple[int, int]
    total: int
    thinned: bool


def choose(view: View, begin_ms: float, end_ms: float, resolution: int | None) -> Chosen:
    """What a viewport shows. Milliseconds on the file's clock; an end of 0 is the last event's, and
    where the begin is 0 too the viewport is all there is, before the clock's zero as well.

    ``resolution`` is how many events can be told apart side by side, 0 for no limit; None leaves
    nothing out unless there are `MANY_EVENTS`. Every event in the viewport is judged by the rule.
    """
    total, least, most = _extent(view)
    # A viewport beside all there is holds nothing, however far away it is.
    begin = round(_bounded(begin_ms) * _MS) - view.zero_ps if begin_ms or end_ms else least
    begin = min(max(least, begin), most + 1)
    stop = round(_bounded(end_ms) * _MS) - view.zero_ps if end_ms else most
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
    return Chosen(events, _serials(view, events), (least, most), total, bool(events.size < inside))


def choose_as_xprof(
    view: View, begin_ms: float, end_ms: float, resolution: int, *, full_dma: bool
) -> Chosen:
    """What XProf shows of a viewport: of the events stored on the levels that it reads, those
    that its rule lets pass, flows as a whole.
    """
    total, least, most = _extent(view)
    least, most = least + view.zero_ps, most + view.zero_ps
    thins = total >= MANY_EVENTS
    begin, stop = _millispan(begin_ms, end_ms)
    begin, stop = max(begin, least), most if stop == 0 or stop > most else stop
    stop = max(begin, stop)
    # Half away from zero, as upstream rounds.
    step = int((stop - begin) / resolution + 0.5) if thins and resolution else 0
    order = _Order(view)
    dma = order.is_middle_on_tpu() if view.start.size else np.zeros(0, np.bool_)
    stored = np.flatnonzero(~dma if not full_dma else np.ones(dma.size, np.bool_))
    if stop <= begin and view.start.size:
        # No span at all: upstream reads of every level what begins a little before, and judges
        # nothing.
        level = order.levels(_LEVELS.size - 2)[stored]
        lower = np.where(level > 0, begin - _LEVELS[np.maximum(level, 1) - 1], 0)
        at = view.start[stored] + view.zero_ps
        stored = stored[(at <= begin) & (at >= lower)]
    elif step:
        deepest = int(np.argmax(step >= _LEVELS)) if step >= 1 else _LEVELS.size - 1
        if deepest < _LEVELS.size - 1:
            level = order.levels(deepest)
            stored = stored[level[stored] <= deepest]
    stored = stored[order.sorted(stored)]
    serial = _serials(view, stored)
    stored, serial = stored[serial <= _MOST_SERIAL], serial[serial <= _MOST_SERIAL]
    shown = np.ones(stored.size, np.bool_)
    if stop > begin:
        at, until = view.start[stored] + view.zero_ps, view.end[stored] + view.zero_ps
        shown = (at <= stop) & (until >= begin) | dma[stored]
        if step:
            judged = np.flatnonzero(shown & ~dma[stored])
            shown[judged] = order.visible(stored[judged], step)
    span = least - view.zero_ps, most - view.zero_ps
    chosen, serial = stored[shown], serial[shown]
    by_track = np.argsort(chosen, kind="stable")
    return Chosen(chosen[by_track], serial[by_track], span, total, thins)


def all_of(view: View) -> Chosen:
    """All events, without serial numbers."""
    total, least, most = _extent(view)
    events = np.flatnonzero(~view.hidden[view.name.codes])
    return Chosen(events, np.zeros(events.size, np.int64), (least, most), total, thinned=False)


def find_prefix(view: View, prefix: str, *, compatible: bool) -> Chosen:
    """All events whose shown name begins with ``prefix``."""
    matches = np.array([text.startswith(prefix) for text in view.name.values] or [False], np.bool_)
    total, least, most = _extent(view)
    events = np.flatnonzero((matches & ~view.hidden)[view.name.codes])
    serial = _serials(view, events)
    if compatible:
        events, serial = events[serial <= _MOST_SERIAL], serial[serial <= _MOST_SERIAL]
    return Chosen(events, serial, (least, most), total, thinned=False)


def find_event(view: View, name: str, begin_ms: float, duration_ms: float, serial: int) -> Chosen:
    """The one event of that shown name, begin, duration and serial number.

    Raises NotFoundError when there is none.
    """
    total, least, most = _extent(view)
    begin, length = (round(_bounded(time) * _MS) for time in (begin_ms, duration_ms))
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
    own = _serials(view, events)
    events = events[own == serial][:1]
    if not events.size:
        raise NotFoundError(
            f"no event {name!r:.200} at {begin_ms} ms of {duration_ms} ms with number {serial}"
        ).quoting(repr(name)[:200])
    return Chosen(events, own[own == serial][:1], (least, most), total, thinned=False)


def _extent(view: View) -> tuple[int, int, int]:
    """How many events have a name that is not hidden, and when they begin and end; 0 for none."""
    start, end = view.start, view.end
    if view.hidden.any():
        shown = ~view.hidden[view.name.codes]
        start, end = start[shown], end[shown]
    if not start.size:
        return 0, 0, 0
    return start.size, int(start.min()), int(end.max())


def _millispan(begin_ms: float, end_ms: float) -> tuple[int, int]:
    """Upstream's span of two times: one that ends before it begins has no length."""
    begin, stop = int(_bounded(begin_ms) * _MS), int(_bounded(end_ms) * _MS)
    return begin, max(begin, stop)


def _bounded(time_ms: float) -> float:
    return max(-_MOST_MS, min(time_ms, _MOST_MS))


class _Order:
    """Upstream's order of events, and its rule, over a view."""

    def __init__(self, view: View) -> None:
        self._view = view
        # Points of one process are told apart by name alone.
        tie: list[int] = []
        pid_of: dict[int, int] = {}
        for number, track in enumerate(view.tracks):
            tie.append(number if track.kind == COMPLETE else pid_of.setdefault(track.pid, number))
        self._tie = np.array(tie or [0], np.int32)
        self._is_point = np.array([t.kind != COMPLETE for t in view.tracks] or [False], np.bool_)

    @cached_property
    def _flow(self) -> Flows:
        return self._view.flows(np.arange(self._view.start.size))

    @cached_property
    def _row(self) -> _Array:
        tracks = np.arange(len(self._view.tracks), dtype=np.int32)
        return np.repeat(tracks, np.diff(self._view.first))

    def is_middle_on_tpu(self) -> npt.NDArray[np.bool_]:
        """Which events pass a flow on, on a TPU: only shown where all transfers are."""
        pids = {p.pid for p in self._view.processes if "/device:TPU:" in p.name}
        on_tpu = np.array([track.pid in pids for track in self._view.tracks] or [False], np.bool_)
        found: npt.NDArray[np.bool_] = on_tpu[self._row] & (self._flow.direction == _BOTH)
        return found

    def sorted(self, events: _Array) -> _Array:
        """The places of ``events`` (ascending) in order: tracks merged by start, the longest first.

        What stands behind a shorter one of its track that starts with it comes after that.
        """
        view = self._view
        start, track = view.start[events], view.tracks_of(events)
        tie = self._tie[track]
        _, rank = np.unique(start - view.end[events], return_inverse=True)
        opens = np.ones(events.size, np.bool_)
        opens[1:] = (start[1:] != start[:-1]) | (track[1:] != track[:-1])
        base = (np.cumsum(opens) - 1) * (int(rank.max(initial=0)) + 1)
        behind = np.maximum.accumulate(base + rank) - base
        return np.lexsort((tie, behind, start))

    def levels(self, deepest: int) -> _Array:
        """The level of every event, one more than ``deepest`` for all below."""
        view, flow = self._view, self._flow
        flowing = np.flatnonzero(flow.number >= 0)
        resolutions = _LEVELS[: deepest + 1]
        level_of = np.full(view.start.size, resolutions.size, np.int8)
        for room in _rooms():
            if choose_levels(
                view.start + view.zero_ps, view.end + view.zero_ps, self._row, flow.number,
                flow.direction, self._is_point[self._row], view.first,
                flowing[self.sorted(flowing)], resolutions,
                *self._room(resolutions.size, room),
                np.zeros((resolutions.size, flow.count), np.int8), level_of,
            ):  # fmt: skip
                break
        return level_of

    def visible(self, events: _Array, step: int) -> _Array:
        """Which of ``events``, which are in order, are shown at a resolution."""
        view, zero, flow = self._view, self._view.zero_ps, self._flow
        shown = np.zeros(events.size, np.bool_)
        for room in _rooms():
            if choose_in_order(
                view.start[events] + zero, view.end[events] + zero, self._row[events],
                flow.number[events], flow.direction[events], self._is_point[self._row[events]],
                step, *self._room(1, room), shown,
            ):  # fmt: skip
                break
        return shown

    def _room(self, levels: int, depths: int) -> tuple[_Array, _Array, _Array, _Array]:
        """What the rule notes by level: ends by track and depth, depths, last points, flows."""
        tracks = len(self._view.tracks)
        return (
            np.empty((levels, tracks, depths), np.int64),
            np.zeros((levels, tracks), np.int64),
            np.full((levels, tracks), -1, np.int64),
            np.zeros((levels, self._flow.count), np.int8),
        )


def _rooms() -> Iterator[int]:
    """How many depths there is room for, one after the other, until it is enough."""
    room = 64
    while True:
        yield room
        room *= 4


def _serials(view: View, events: _Array) -> _Array:
    """For each of ``events`` how many others that start at its time stand before it."""
    found = np.zeros(view.start.size, np.bool_)
    times = np.unique(view.start[events])
    at_times(view.start, view.name.codes, view.hidden, view.first, times, found)
    same = np.flatnonzero(found)
    order = same[_Order(view).sorted(same)]
    start = view.start[order]
    opens = np.ones(order.size, np.bool_)
    opens[1:] = start[1:] != start[:-1]
    place = np.arange(order.size)
    number = place - np.maximum.accumulate(np.where(opens, place, 0))
    found_as = np.empty(same.size, np.int64)
    found_as[np.searchsorted(same, order)] = number
    wanted: _Array = found_as[np.searchsorted(same, events)]
    return wanted
