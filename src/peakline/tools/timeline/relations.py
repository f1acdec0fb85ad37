"""Views of the ``timeline`` tool on several events at once: the one that a link means, areas,
arrows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from peakline import timing
from peakline.errors import UsageError
from peakline.tables import Profile
from peakline.timing.timeline import Timeline, timeline_of
from peakline.tools.timeline.format import Value, stored
from peakline.tools.timeline.steps import VIEWS as STEPS
from peakline.tools.timeline.views import VIEWS as SINGLE
from peakline.tools.timeline.views import View, brief, lines_of, span_of

if TYPE_CHECKING:
    from peakline.timing.timeline.arrows import Arrows
    from peakline.tools.timeline.parameters import TimelineParameters

_LARGE = 1_000_000
"""Of so many events all arrows are found at once; of more, those of a stretch."""
_FAR_PS = 10**12
"""So far from an event its arrows lead, in a larger profile, or less where much happens."""
MOST_ARROWS = 500
"""So many are drawn at once, or have one event as their end."""


def _find(profile: Profile, parameters: TimelineParameters) -> Mapping[str, Value]:
    if not parameters.search and parameters.at_ps is None:
        raise UsageError("timeline: view find needs a name (search), a moment (at_ps), or both")
    timeline = timeline_of(profile)
    result = timing.meant(
        profile,
        timeline,
        parameters.search or None,
        at_ps=parameters.at_ps,
        end_ps=parameters.until_ps,
        lines=lines_of(parameters.lines, len(timeline.trace.lines), "line"),
        device=parameters.device,
    )
    return {"found": brief(timeline, result.event), "how": [result.how], "count": result.count}


def _area(profile: Profile, parameters: TimelineParameters) -> Mapping[str, Value]:
    timeline = timeline_of(profile)
    trace = timeline.trace
    start, end = span_of(trace.span, parameters)
    result = timing.area_of(
        timeline, start, end, lines_of(parameters.lines, len(trace.lines), "line")
    )
    names, frames, text = result.names, result.frames, trace.name.values
    return {
        "start_ps": start,
        "end_ps": end,
        "events": result.events,
        "lines": result.lines,
        "self_total_ps": result.self_ps,
        "names_total": result.names_total,
        "name": [text[one.name] if one.name >= 0 else "" for one in names],
        "count": stored(np.array([one.count for one in names], np.int64), "uint32"),
        "total_ps": stored(np.array([one.total_ps for one in names], np.int64), "int64"),
        "self_ps": stored(np.array([one.self_ps for one in names], np.int64), "int64"),
        "longest": stored(trace.rows(np.array([one.longest for one in names], np.int64)), "int32"),
        "frame_parent": stored(np.array([one.parent for one in frames], np.int64), "int32"),
        "frame_name": [text[one.name] if one.name >= 0 else "" for one in frames],
        "frame_count": stored(np.array([one.count for one in frames], np.int64), "uint32"),
        "frame_total_ps": stored(np.array([one.total_ps for one in frames], np.int64), "int64"),
        "frame_self_ps": stored(np.array([one.self_ps for one in frames], np.int64), "int64"),
        "frames_hidden": result.hidden,
    }


def _arrows(profile: Profile, parameters: TimelineParameters) -> Mapping[str, Value]:
    timeline = timeline_of(profile)
    trace = timeline.trace
    event = None if parameters.event is None else timing.place_of(timeline, parameters.event)
    span = None if event is not None else span_of(trace.span, parameters)
    arrows = _arrows_of(profile, timeline, event, span)
    if arrows is None:
        return {"total": -1, "kind": [], "from": [], "to": []}
    if event is not None:
        chosen = np.concatenate(arrows.of(event))
    else:
        chosen = arrows.within(trace, *(span or (0, 1)))
    lines = lines_of(parameters.lines, len(trace.lines), "line")
    if lines is not None:
        chosen = chosen[np.isin(trace.lines_of(arrows.cause[chosen]), lines)]
        chosen = chosen[np.isin(trace.lines_of(arrows.target[chosen]), lines)]
    shown = chosen[:MOST_ARROWS]
    return {
        "total": int(chosen.size),
        "kind": [arrows.kinds[kind] for kind in arrows.kind[shown].tolist()],
        "from": [brief(timeline, event) for event in arrows.cause[shown].tolist()],
        "to": [brief(timeline, event) for event in arrows.target[shown].tolist()],
    }


def _arrows_of(
    profile: Profile, timeline: Timeline, event: int | None, span: tuple[int, int] | None
) -> Arrows | None:
    """All arrows; of a large profile those near, None where too many events are."""
    trace = timeline.trace
    if trace.size <= _LARGE:
        return timing.arrows_of(profile)
    if event is None:
        return timing.arrows_between(profile, *(span or (0, 1)), memory=False)
    around, name = _FAR_PS, trace.name[event] or ""
    start, end = int(trace.start[event]), int(trace.end[event])
    while around:
        result = timing.arrows_between(
            profile, start - around, end + around, memory="memory" in name.lower()
        )
        if result is not None:
            return result
        around //= 8
    return None


VIEWS: Mapping[str, View] = {**SINGLE, **STEPS, "find": _find, "area": _area, "arrows": _arrows}
"""All views by name."""
