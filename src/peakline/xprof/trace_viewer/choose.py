"""The part of a trace that XProf shows for one question to ``trace_viewer@``.

Sources (openxla/xprof, ``xprof/convert/trace_viewer``): ``trace_viewer_visibility.cc`` for what is
shown at a resolution, ``trace_events.h`` for levels and search, ``trace_events.cc`` for serial
numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np

from peakline.arrays import AnyArray, BoolArray
from peakline.kernels.viewports import choose_in_order, choose_levels
from peakline.viewer.choose import (
    MANY_EVENTS,
    MS,
    Chosen,
    bounded,
    extent,
    find_prefix,
    in_order,
    serials,
)
from peakline.viewer.flows import Flows
from peakline.viewer.view import COMPLETE, View

_LEVELS = 10 ** np.arange(12, -1, -1, dtype=np.int64)
"""The resolutions, in ps, at which XProf stores events: from a second to a picosecond."""
_MOST_SERIAL = 255
"""XProf drops an event with more than this many others before it at the same start."""
_BOTH = 3


def choose_as_xprof(
    view: View, begin_ms: float, end_ms: float, resolution: int, *, full_dma: bool
) -> Chosen:
    """What XProf shows of a viewport: of the events stored on the levels that it reads, those
    that its rule lets pass, flows as a whole.

    ``begin_ms`` and ``end_ms`` are on the file's clock, ``resolution`` as in `choose`; ``full_dma``
    also shows the middle events of transfers on a TPU.
    """
    total, least, most = extent(view)
    least, most = least + view.zero_ps, most + view.zero_ps
    thins = total >= MANY_EVENTS
    begin, stop = _millispan(begin_ms, end_ms)
    begin, stop = max(begin, least), most if stop == 0 or stop > most else stop
    stop = max(begin, stop)
    # Half away from zero, as upstream rounds.
    step = int((stop - begin) / resolution + 0.5) if thins and resolution else 0
    rule = _Rule(view)
    dma = rule.is_middle_on_tpu() if view.start.size else np.zeros(0, np.bool_)
    stored = np.flatnonzero(~dma if not full_dma else np.ones(dma.size, np.bool_))
    if stop <= begin and view.start.size:
        # No span at all: upstream reads of every level what begins a little before, and judges
        # nothing.
        level = rule.levels(_LEVELS.size - 2)[stored]
        lower = np.where(level > 0, begin - _LEVELS[np.maximum(level, 1) - 1], 0)
        at = view.start[stored] + view.zero_ps
        stored = stored[(at <= begin) & (at >= lower)]
    elif step:
        deepest = int(np.argmax(step >= _LEVELS)) if step >= 1 else _LEVELS.size - 1
        if deepest < _LEVELS.size - 1:
            level = rule.levels(deepest)
            stored = stored[level[stored] <= deepest]
    stored = stored[in_order(view, stored)]
    serial = serials(view, stored)
    stored, serial = stored[serial <= _MOST_SERIAL], serial[serial <= _MOST_SERIAL]
    shown = np.ones(stored.size, np.bool_)
    if stop > begin:
        at, until = view.start[stored] + view.zero_ps, view.end[stored] + view.zero_ps
        shown = (at <= stop) & (until >= begin) | dma[stored]
        if step:
            judged = np.flatnonzero(shown & ~dma[stored])
            shown[judged] = rule.visible(stored[judged], step)
    span = least - view.zero_ps, most - view.zero_ps
    chosen, serial = stored[shown], serial[shown]
    by_track = np.argsort(chosen, kind="stable")
    return Chosen(chosen[by_track], serial[by_track], span, total, thinned=False)


def find_prefix_as_xprof(view: View, prefix: str) -> Chosen:
    """All events whose shown name begins with ``prefix``, but for those that XProf drops."""
    result = find_prefix(view, prefix)
    shown = result.serial <= _MOST_SERIAL
    return replace(result, events=result.events[shown], serial=result.serial[shown])


def _millispan(begin_ms: float, end_ms: float) -> tuple[int, int]:
    """Upstream's span of two times: one that ends before it begins has no length."""
    begin, stop = int(bounded(begin_ms) * MS), int(bounded(end_ms) * MS)
    return begin, max(begin, stop)


class _Rule:
    """Upstream's rule over a view."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._is_point = np.array([t.kind != COMPLETE for t in view.tracks] or [False], np.bool_)

    @cached_property
    def _flow(self) -> Flows:
        return self._view.flows(np.arange(self._view.start.size))

    @cached_property
    def _row(self) -> AnyArray:
        tracks = np.arange(len(self._view.tracks), dtype=np.int32)
        return np.repeat(tracks, np.diff(self._view.first))

    def is_middle_on_tpu(self) -> BoolArray:
        """Which events pass a flow on, on a TPU: only shown where all transfers are."""
        pids = {p.pid for p in self._view.processes if "/device:TPU:" in p.name}
        on_tpu = np.array([track.pid in pids for track in self._view.tracks] or [False], np.bool_)
        result: BoolArray = on_tpu[self._row] & (self._flow.direction == _BOTH)
        return result

    def levels(self, deepest: int) -> AnyArray:
        """The level of every event, one more than ``deepest`` for all below."""
        view, flow = self._view, self._flow
        flowing = np.flatnonzero(flow.number >= 0)
        resolutions = _LEVELS[: deepest + 1]
        level_of = np.full(view.start.size, resolutions.size, np.int8)
        for room in _rooms():
            if choose_levels(
                view.start + view.zero_ps, view.end + view.zero_ps, self._row, flow.number,
                flow.direction, self._is_point[self._row], view.first,
                flowing[in_order(view, flowing)], resolutions,
                *self._room(resolutions.size, room),
                np.zeros((resolutions.size, flow.count), np.int8), level_of,
            ):  # fmt: skip
                break
        return level_of

    def visible(self, events: AnyArray, step: int) -> AnyArray:
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

    def _room(self, levels: int, depths: int) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray]:
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
