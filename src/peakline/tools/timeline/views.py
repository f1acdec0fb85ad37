"""What each view of the ``timeline`` tool shows, as columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from peakline import timing
from peakline.arrays import Int64Array
from peakline.errors import UsageError
from peakline.tables import Profile
from peakline.timing.event_columns import ACTIVITIES
from peakline.timing.timeline import Timeline, draw_tile, timeline_of, tracks_of
from peakline.timing.timeline.counters import Counter, counters_of
from peakline.tools.timeline.format import Value, stored
from peakline.trace.activity import activity_of
from peakline.trace.events import trace_of

if TYPE_CHECKING:
    from peakline.tools.timeline.parameters import TimelineParameters

View = Callable[[Profile, "TimelineParameters"], Mapping[str, Value]]
MOST_ITEMS = 1 << 19
"""Items of a tile, or pixels of all counters of an answer, at most: about 20 MB."""
_NAME_BYTES = 4 << 20
"""Names of one answer take about so much; the others come in the next."""
_MOST_NAMES = 1000
_MOST_PARENTS = 256
_RANGE = re.compile(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?", re.ASCII)


def span_of(
    whole: Callable[[], tuple[int, int]], parameters: TimelineParameters
) -> tuple[int, int]:
    """The viewport; by default ``whole``, all there is, the last instant too."""
    start, end = parameters.start_ps, parameters.end_ps
    if start is None or end is None:
        # Looked for only here: it takes all events.
        first, last = whole()
        start = first if start is None else start
        end = last + 1 if end is None else end
    if end <= start:
        raise UsageError(f"timeline: the viewport ends at {end} ps, not after its start {start} ps")
    return start, end


def lines_of(text: str | None, count: int, what: str) -> Int64Array | None:
    """The numbers that a list like ``0,3,8-12`` names, ascending; None for no list."""
    if text is None:
        return None
    is_chosen = np.zeros(count, np.bool_)
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if match is None:
            raise UsageError(f"timeline: lines are written as 0,3,8-12, not {text!r:.80}")
        first = int(match[1])
        last = first if match[2] is None else int(match[2])
        if first > last or last >= count:
            raise UsageError(f"timeline: no {what} {part.strip()}: there are {count}, from 0")
        is_chosen[first : last + 1] = True
    return np.flatnonzero(is_chosen)


def _lanes(profile: Profile, parameters: TimelineParameters) -> Mapping[str, Value]:
    timeline = timeline_of(profile)
    trace = timeline.trace
    start, end = trace.span()
    names, first = trace.name.values, parameters.names_from
    if first > len(names):
        raise UsageError(f"timeline: no name {first}: there are {len(names)}, from 0")
    last, room = first, _NAME_BYTES
    while last < len(names) and room > 0:
        room -= len(names[last]) + 3
        last += 1
    counts = np.diff(trace.first)
    return {
        "start_ps": start,
        "end_ps": end + 1 if trace.size else 0,
        "events": trace.size,
        "untimed": trace.untimed,
        "plane_name": [plane.name for plane in trace.planes],
        "plane_kind": [plane.kind for plane in trace.planes],
        "line_plane": stored(np.array([line.plane for line in trace.lines], np.int64), "int32"),
        "line_name": [line.name for line in trace.lines],
        "line_native_id": [line.native_id for line in trace.lines],
        "line_events": stored(counts, "uint32"),
        "line_rows": stored(np.diff(timeline.first_track), "uint32"),
        "activity_name": list(ACTIVITIES),
        "names_from": first,
        "names_total": len(names),
        "names": list(names[first:last]),
    }


def _tile(profile: Profile, parameters: TimelineParameters) -> Mapping[str, Value]:
    timeline = timeline_of(profile)
    trace = timeline.trace
    start, end = span_of(trace.span, parameters)
    tracks = tracks_of(
        timeline, lines_of(parameters.lines, len(trace.lines), "line"), parameters.rows
    )
    tile = draw_tile(timeline, start, end, parameters.width, tracks, most=MOST_ITEMS)
    more: dict[str, Value] = {}
    if parameters.activities:
        more["activity"] = stored(
            timing.activity_of_items(timing.activities_of(profile), tile), "uint8"
        )
    used = np.flatnonzero(tile.first[1:] > tile.first[:-1])
    line = timeline.track_line[tracks[used]]
    return {
        "start_ps": start,
        "end_ps": end,
        "width": parameters.width,
        "resolution_ps": tile.resolution_ps,
        "events": int(tile.count.sum()),
        "track_line": stored(line, "int32"),
        "track_row": stored(tracks[used] - timeline.first_track[line], "int32"),
        "track_first": stored(np.append(tile.first[used], tile.items), "uint32"),
        "begin_ps": stored(tile.begin_ps - start, "float64"),
        "duration_ps": stored(tile.until_ps - tile.begin_ps, "float64"),
        "busy_ps": stored(tile.busy_ps, "float64"),
        "count": stored(tile.count, "uint32"),
        "name": stored(trace.name.codes[tile.event], "int32"),
        "event": stored(trace.rows(tile.event), "int32"),
        **more,
    }


def _search(profile: Profile, parameters: TimelineParameters) -> Mapping[str, Value]:
    if not parameters.search:
        raise UsageError("timeline: view search needs the parameter search")
    timeline = timeline_of(profile)
    start, end = span_of(timeline.trace.span, parameters)
    result = timing.search(
        timeline,
        parameters.search,
        start_ps=start,
        end_ps=end,
        width=parameters.width,
        is_pattern=parameters.pattern,
        lines=lines_of(parameters.lines, len(timeline.trace.lines), "line"),
        at_ps=parameters.at_ps,
        event=None if parameters.event is None else timing.place_of(timeline, parameters.event),
    )
    ends: dict[str, Value] = {
        which: brief(timeline, getattr(result, which))
        for which in ("first", "last", "previous", "next")
    }
    return {
        "start_ps": start,
        "end_ps": end,
        "width": parameters.width,
        "total": result.total,
        "names_total": int(result.names.size),
        "name": stored(result.names[:_MOST_NAMES], "int32"),
        "count": stored(result.counts[:_MOST_NAMES], "uint32"),
        **ends,
        "bins": stored(result.bins, "uint32"),
    }


def brief(timeline: Timeline, event: int) -> dict[str, Any] | None:
    """Where an event is (its place in the trace); None for none."""
    if event < 0:
        return None
    trace = timeline.trace
    place = np.array([event])
    return {
        "event": int(trace.rows(place)[0]),
        "name": trace.name[event] or "",
        "line": int(trace.lines_of(place)[0]),
        "row": int(timeline.nesting.row[event]),
        "start_ps": int(trace.start[event]),
        "duration_ps": int(trace.end[event] - trace.start[event]),
    }


def _event(profile: Profile, parameters: TimelineParameters) -> Mapping[str, Value]:
    if parameters.event is None:
        raise UsageError("timeline: view event needs the parameter event")
    timeline = timeline_of(profile)
    place = timing.place_of(timeline, parameters.event)
    result = timing.details_of(profile, timeline, place, with_step=parameters.with_step)
    line = timeline.trace.lines[result.line]
    step = None if result.step is None else {"step_id": result.step[0], "name": result.step[1]}
    return {
        "details": {
            **(brief(timeline, place) or {}),
            "end_ps": result.end_ps,
            "own_ps": result.own_ps,
            "activity": ACTIVITIES[int(activity_of(profile)[place])],
            **vars(timing.facts_of(result.name, result.stats)),
            "plane": timeline.trace.planes[line.plane].name,
            "line_name": line.name,
            "step": step,
            "parents_total": len(result.parents),
            "parents": [brief(timeline, above) for above in result.parents[:_MOST_PARENTS]],
            "children": {
                "count": result.child_count,
                "total_ps": result.child_ps,
                "names": [vars(child) for child in result.children],
            },
            "previous": brief(timeline, result.previous),
            "next": brief(timeline, result.next),
            "stats": [{"name": name, "value": value} for name, value in result.stats],
        }
    }


def _counter(profile: Profile, parameters: TimelineParameters) -> Mapping[str, Value]:
    every = counters_of(profile)
    chosen = lines_of(parameters.lines, len(every), "counter")
    numbers = range(len(every)) if chosen is None else chosen.tolist()
    start, end = span_of(lambda: _counted(profile, every), parameters)
    if len(numbers) * parameters.width > MOST_ITEMS:
        raise UsageError(
            f"timeline: {len(numbers)} counters of {parameters.width} pixels are too many: "
            "ask for fewer (lines), or a smaller width"
        )
    drawn = [every[number].pixels(start, end, parameters.width) for number in numbers]
    none = np.zeros(0)
    return {
        "start_ps": start,
        "end_ps": end,
        "width": parameters.width,
        "counter_group": [counter.group for counter in every],
        "counter_name": [counter.name for counter in every],
        "counter_values": stored(np.array([c.time_ps.size for c in every], np.int64), "uint32"),
        "counter": stored(np.array(numbers, np.int64), "int32"),
        "low": stored(np.concatenate([none, *(pixels.low for pixels in drawn)]), "float64"),
        "high": stored(np.concatenate([none, *(pixels.high for pixels in drawn)]), "float64"),
        "last": stored(np.concatenate([none, *(pixels.last for pixels in drawn)]), "float64"),
    }


def _counted(profile: Profile, every: Sequence[Counter]) -> tuple[int, int]:
    """From the first event to the last; from the first value to the last where nothing ran."""
    trace = trace_of(profile)
    times = [counter.time_ps for counter in every if counter.time_ps.size]
    if trace.size or not times:
        return trace.span()
    return min(int(time[0]) for time in times), max(int(time[-1]) for time in times)


VIEWS: Mapping[str, View] = {
    "lanes": _lanes,
    "tile": _tile,
    "search": _search,
    "event": _event,
    "counter": _counter,
}
"""The views of single things by name."""
