"""``trace_viewer`` with exactly the events of XProf's, and what it shows of each as text.

Source: ``xplane_to_trace_events.cc`` in openxla/xla (``xla/tsl/profiler/convert``).
"""

from __future__ import annotations

from io import BytesIO

import numpy as np

from peakline.arrays import AnyArray, Int32Array, Int64Array
from peakline.tables import Columns, Names, Profile
from peakline.viewer.events import HEAD, TAIL, events_text, named
from peakline.viewer.part import UNSEEN_STATS
from peakline.viewer.view import Process, View
from peakline.xprof.trace_viewer.view import xprof_whole_view

MOST_EVENTS = 5_000_000
"""XProf 2.24.2 shows the first so many, and says nothing of the others."""
_CUT = "events_cut"
_OWN_STATS = frozenset(("group_id", "flow"))


def xprof_trace(profile: Profile) -> bytes:
    """The trace as Chrome trace JSON.

    Numbers of flows are those of this program, since upstream's differ from run to run, and what
    is eager is left out. Raises InputError when the profile cannot be read.
    """
    view = xprof_whole_view(profile)
    events = np.arange(view.start.size)
    if events.size > MOST_EVENTS:
        profile.warn(
            _CUT, f"XProf shows the first {MOST_EVENTS} events and no more",
            int(events.size - MOST_EVENTS),
        )  # fmt: skip
        events = np.sort(np.argsort(view.start, kind="stable")[:MOST_EVENTS])
    content = BytesIO()
    content.write(HEAD)
    for process in view.processes:
        content.write(_metadata(process).encode("ascii"))
    owners = [f'"pid":{track.pid},"tid":{track.tid}' for track in view.tracks]
    shown = Columns(
        {
            "event_id": np.arange(events.size, dtype=np.int64),
            "line_id": view.tracks_of(events),
            "name": view.name.take(events),
            "start_ps": view.start[events] + view.zero_ps,
            "duration_ps": view.end[events] - view.start[events],
        }
    )
    for part in events_text(shown, owners, _stats(view, events)):
        content.write(part)
    content.write(TAIL)
    return content.getvalue()


def _metadata(process: Process) -> str:
    """What names and orders a process and its threads; no name for what has none."""
    own = f'"pid":{process.pid}'
    result = [(process.name, named("process", own, process.name, process.pid))]
    for tid, text in sorted(process.threads.items()):
        result.append((text, named("thread", f'{own},"tid":{tid}', text, tid)))
    return "".join(f"{row},\n" for text, rows in result for row in rows[not text :])


class _Arguments:
    """Names and values of arguments, each text once, collected part by part."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._values: dict[str, int] = {}
        self._parts: list[tuple[AnyArray, AnyArray, AnyArray]] = []

    def add(self, event: Int64Array, name: str | AnyArray, value: Int64Array) -> None:
        codes = np.full(event.size, self.name(name)) if isinstance(name, str) else name
        self._parts.append((event, codes, value))

    def name(self, text: str) -> int:
        return self._names.setdefault(text, len(self._names))

    def value(self, text: str) -> int:
        return self._values.setdefault(text, len(self._values))

    def texts(self, names: Names) -> tuple[Int64Array, Int32Array]:
        """The codes of a column's texts as values here; -1 for none, as the last."""
        return np.array([*map(self.value, map(_as_text, names.values)), -1], np.int64), names.codes

    def columns(self) -> Columns:
        """By event; of several arguments of one name the last."""
        event, name, value = (
            np.concatenate([np.zeros(0, np.int64), *(part[k] for part in self._parts)])
            for k in range(3)
        )
        order = np.lexsort((np.arange(event.size), name, event))
        last = np.ones(order.size, np.bool_)
        last[:-1] = (np.diff(event[order]) != 0) | (np.diff(name[order]) != 0)
        chosen = order[last]
        return Columns(
            {
                "event_id": event[chosen],
                "name": Names(name[chosen].astype(np.int32), list(self._names)),
                "value": Names(value[chosen].astype(np.int32), list(self._values)),
            }
        )


def _stats(view: View, events: Int64Array) -> Columns:
    """The arguments of every event: of its kind, its own, and what upstream adds."""
    profile, result = view.profile, _Arguments()
    rows = view.rows(events)
    table, types = profile.columns("events"), profile.columns("event_types")
    kind = np.where(table.is_valid("type_id"), table.array("type_id"), -1)
    kind = np.where(rows >= 0, kind[rows], -1)
    places = np.arange(events.size)
    full, shown = types.names("name"), types.names("display_name")
    has_full = np.array([bool(text) for text in shown.to_list()] + [False], np.bool_)[kind]
    values, codes = result.texts(full)
    result.add(places[has_full], "long_name", values[codes[kind[has_full]]])
    _of_kinds(result, profile.columns("event_type_stats"), kind)
    place_of = np.full(table.rows, -1, np.int64)
    place_of[rows[rows >= 0]] = places[rows >= 0]
    stats = profile.columns("event_stats")
    event = place_of[stats.array("event_id")]
    name = stats.names("name")
    keep = np.array([text not in _SKIPPED for text in name.values] or [False], np.bool_)[name.codes]
    chosen = np.flatnonzero((event >= 0) & keep & (stats.names("value").codes >= 0))
    values, codes = result.texts(stats.names("value"))
    own = np.array([result.name(text) for text in name.values] or [0], np.int64)
    result.add(event[chosen], own[name.codes[chosen]], values[codes[chosen]])
    group, has_group = view.groups(events)
    _numbers(result, "group_id", places[has_group], group[has_group])
    flows = view.flows(events)
    flowing = flows.number >= 0
    _numbers(result, "flow", places[flowing], flows.number[flowing])
    for row, added in view.steps.items():
        if place_of[row] >= 0:
            for key, value in added:
                result.add(place_of[[row]], key, np.array([result.value(_number_text(value))]))
    if view.made is not None:
        for place in places[rows < 0].tolist():
            for key, value in view.made(int(events[place])):
                result.add(np.array([place]), key, np.array([result.value(_number_text(value))]))
    return result.columns()


_SKIPPED = UNSEEN_STATS | _OWN_STATS


def _of_kinds(result: _Arguments, stats: Columns, kind: Int32Array) -> None:
    """What the kinds of events have, for each of their events."""
    name = stats.names("name")
    keep = np.array([text not in _SKIPPED for text in name.values] or [False], np.bool_)[name.codes]
    stats = stats.take(np.flatnonzero(keep & (stats.names("value").codes >= 0)))
    owner = stats.array("type_id")
    first, last = np.searchsorted(owner, kind), np.searchsorted(owner, kind, side="right")
    counts = np.where(kind >= 0, last - first, 0)
    event = np.repeat(np.arange(kind.size), counts)
    row = np.arange(event.size) - np.repeat(np.cumsum(counts) - counts, counts)
    row += np.repeat(first, counts)
    values, codes = result.texts(stats.names("value"))
    name = stats.names("name")
    own = np.array([result.name(text) for text in name.values] or [0], np.int64)
    result.add(event, own[name.codes[row]], values[codes[row]])


def _numbers(result: _Arguments, name: str, places: Int64Array, numbers: AnyArray) -> None:
    distinct, code = np.unique(numbers, return_inverse=True)
    values = np.array([result.value(str(number)) for number in distinct.tolist()] or [0], np.int64)
    result.add(places, name, values[code])


def _as_text(text: str) -> str:
    """A value as XProf writes it: six digits of a number with a point, and no bytes."""
    if text.startswith("<") and text.endswith(" bytes>"):
        return "<opaque bytes>"
    if text[:1].isdigit() or text[:1] == "-":
        try:
            number = float(text)
        except ValueError:
            return text
        return f"{number:.6g}" if repr(number) == text else text
    return text


def _number_text(value: str | float) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
