"""What one host gives to an answer of ``trace_viewer@``: its chosen events, ready to be written.

Everything here can be sent to another process. Source of the arguments of an event:
``ConvertXStatsToTraceEventArguments`` in ``xplane_to_trace_container.cc`` (openxla/xprof).
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

import numpy as np

from peakline.arrays import AnyArray, BoolArray, Int64Array
from peakline.tables import Columns, Names
from peakline.timing.ops.tpu import types_of
from peakline.viewer.choose import Chosen
from peakline.viewer.view import COMPLETE, COUNTER, Process, Track, View

Argument = str | int | float

UNSEEN_STATS = frozenset(("_pt", "_p", "_ct", "_c", "_r", "flops", "program_id", "symbol_id"))
"""Stats by which the runtime informs the profiler: no viewer shows them."""
_TOLD_OTHERWISE = frozenset(("flow", "group_id", "_a"))
_MOST_LONG_NAME = 10_000
_BYTES = "<", " bytes>"


@dataclass(frozen=True, eq=False)
class HostPart:
    """Events in the order of their tracks; the tracks are cut to them.

    Times are in ps on the file's clock. ``flow`` counts from 1, 0 is none; ``group`` holds for
    events that ``has_group``. ``arguments`` are those of single events, by place (None: not
    requested); ``counters`` the names and values of counter events, by place.
    """

    host: str
    processes: tuple[Process, ...]
    tracks: tuple[Track, ...]
    start: Int64Array
    length: Int64Array
    name: Names
    serial: Int64Array
    group: AnyArray
    has_group: BoolArray
    flow: AnyArray
    direction: AnyArray
    category: AnyArray
    flows: int
    span: tuple[int, int]
    thinned: bool
    is_tpu: bool
    arguments: dict[int, list[tuple[str, Argument]]] | None = None
    counters: dict[int, list[tuple[str, Argument]]] = field(default_factory=dict)
    frames: tuple[str, ...] = ()
    """Full names of events, whether these are chosen or not."""


def without(part: HostPart, dropped: AbstractSet[tuple[int, int]]) -> HostPart:
    """The part without some threads (process and number)."""
    processes = tuple(
        replace(one, threads={tid: name for tid, name in one.threads.items()
                              if (one.pid, tid) not in dropped})
        for one in part.processes
    )  # fmt: skip
    tracks = tuple(
        track for track in part.tracks
        if track.kind != COMPLETE or (track.pid, track.tid) not in dropped
    )  # fmt: skip
    return replace(part, processes=processes, tracks=tracks)


def part_of(view: View, chosen: Chosen, *, with_links: bool, with_arguments: bool) -> HostPart:
    """The part of the profile that was chosen.

    ``with_links`` adds flows and steps, ``with_arguments`` the stats of every event.
    """
    events = chosen.events
    tracks_of = view.tracks_of(events)
    first = np.searchsorted(tracks_of, np.arange(len(view.tracks) + 1)).tolist()
    tracks = tuple(
        Track(track.pid, track.tid, track.kind, lo, hi)
        for track, lo, hi in zip(view.tracks, first[:-1], first[1:], strict=True)
        if hi > lo
    )
    nothing: AnyArray = np.zeros(events.size, np.uint8)
    group, has_group = nothing, np.zeros(events.size, np.bool_)
    flow, direction, category, flows = nothing, nothing, nothing, 0
    if with_links:
        group, has_group = view.groups(events)
        own = view.flows(events)
        flow, direction, category = own.number.astype(np.int64) + 1, own.direction, own.category
        flows = own.count
    counting = [
        place for track in tracks if track.kind == COUNTER
        for place in range(track.first, track.last)
    ]  # fmt: skip
    counters = _stats_of(view, events, np.array(counting, np.int64)) if counting else {}
    arguments = None
    if with_arguments:
        places = np.arange(events.size)
        if counting:
            places = np.delete(places, counting)
        arguments = _stats_of(view, events, places)
    shown = view.names_of(events, with_steps=with_links)
    used, code = np.unique(shown.codes, return_inverse=True)
    name = Names(code.astype(np.int32), [shown.values[number] for number in used.tolist()])
    host = view.profile.host
    return HostPart(
        host, view.processes, tracks, view.start[events] + view.zero_ps,
        view.end[events] - view.start[events], name, chosen.serial, group, has_group,
        flow, direction, category, flows,
        (chosen.span[0] + view.zero_ps, chosen.span[1] + view.zero_ps), chosen.thinned,
        any("/device:TPU:" in process.name for process in view.processes), arguments, counters,
    )  # fmt: skip


def _stats_of(
    view: View, events: Int64Array, places: Int64Array
) -> dict[int, list[tuple[str, Argument]]]:
    """The arguments of the events at ``places``."""
    rows = view.rows(events[places])
    there = rows >= 0
    result = arguments_of(view, rows[there])
    answer = dict(zip(places[there].tolist(), result, strict=True))
    if view.made is not None:
        for place in places[~there].tolist():
            made = view.made(int(events[place]))
            answer[place] = [(key, value) for key, value in made if key not in _TOLD_OTHERWISE]
    return answer


def arguments_of(view: View, rows: Int64Array) -> list[list[tuple[str, Argument]]]:
    """What a viewer shows of each of ``rows`` (of ``events``): its full name, the stats of its
    kind, its own.
    """
    profile = view.profile
    if not view.has_stats:
        return [[] for _ in rows]
    stats = profile.stats_of(rows)
    own: dict[int, list[tuple[str, Argument]]] = {row: [] for row in rows.tolist()}
    of_kind: dict[int, list[tuple[str, Argument]]] = {}
    if "event_types" in profile.tables and rows.size:
        types = profile.columns("event_types")
        kinds = types_of(profile, rows)
        names, shown = types.names("name"), types.names("display_name")
        stats_of_kind = _by(profile.columns("event_type_stats"), "type_id", np.unique(kinds))
        for row, kind in zip(rows.tolist(), kinds.tolist(), strict=True):
            if kind < 0:
                continue
            if kind not in of_kind:
                of_kind[kind] = []
                if shown[kind]:
                    of_kind[kind].append(("long_name", cut_name(names[kind] or "")))
                of_kind[kind] += stats_of_kind.get(kind, [])
            own[row] = [*of_kind[kind]]
    for row, result in _by(stats, "event_id", rows).items():
        own[row] += result
    for row in own:
        own[row] += view.steps.get(row, [])
    return [own[row] for row in rows.tolist()]


def _by(stats: Columns, key: str, wanted: AnyArray) -> dict[int, list[tuple[str, Argument]]]:
    owner = stats.array(key)
    rows = np.flatnonzero(np.isin(owner, wanted))
    result: dict[int, list[tuple[str, Argument]]] = {}
    for row, number in zip(rows.tolist(), owner[rows].tolist(), strict=True):
        name, text = stats.names("name")[row] or "", stats.names("value")[row]
        is_bytes = text is not None and text.startswith(_BYTES[0]) and text.endswith(_BYTES[1])
        if text is None or is_bytes or name in UNSEEN_STATS | _TOLD_OTHERWISE:
            continue
        result.setdefault(number, []).append((name, _value(text)))
    return result


def cut_name(name: str) -> str:
    """The full name of an event as it is shown: a very long one is cut."""
    return name if len(name) <= _MOST_LONG_NAME else name[:_MOST_LONG_NAME] + "...<truncated>"


def _value(text: str) -> Argument:
    """A number where the text is exactly how one is written."""
    if text[:1].isdigit() or text[:1] == "-":
        for kind in (int, float):
            try:
                number = kind(text)
            except ValueError:
                continue
            written = str(number) if kind is int else repr(number)
            if written == text:
                return number
    return text
