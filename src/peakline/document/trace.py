"""What is said of a stretch of a trace: which events ran in it, line by line."""

from __future__ import annotations

import numpy as np

from peakline.document.profile import answer_document
from peakline.errors import NotFoundError, UsageError
from peakline.suggest import there_is
from peakline.tables import Profile
from peakline.text import check_repeated, time_text
from peakline.timing.timeline.excerpt import Excerpt, excerpt_of
from peakline.trace.events import Trace, nesting_of

NO_EVENTS = "no events in this profile"


def excerpt_between(
    profile: Profile,
    trace: Trace,
    first: int | None,
    last: int | None,
    *,
    line: str | None,
    min_ps: int,
    limit: int,
) -> Excerpt:
    """The ``limit`` longest events of ``min_ps`` or more between two times in picoseconds, None for
    the begin or the end of all, on lines with ``line`` in their name.

    Raises UsageError where the stretch is empty, NotFoundError where no line is called so.
    """
    begin, end = trace.span()
    begin = begin if first is None else first
    # An instant at the very end belongs to the whole.
    end = max(end + 1, begin + 1) if last is None else last
    if end <= begin:
        raise UsageError(
            f"--to {time_text(end)} is not after the first event, at {time_text(begin)};"
            " give --from"
        )
    lines = None if line is None else _lines_called(trace, line)
    nesting = nesting_of(profile)
    return excerpt_of(trace, nesting, begin, end, lines=lines, limit=limit, min_ps=min_ps)


def _lines_called(trace: Trace, name: str) -> list[int]:
    """The places of the lines with ``name`` in their name or their plane's, in any case."""
    wanted = name.casefold()
    names = [f"{trace.planes[line.plane].name} {line.name}" for line in trace.lines]
    places = [place for place, text in enumerate(names) if wanted in text.casefold()]
    if not places:
        known = there_is(name, dict.fromkeys(line.name for line in trace.lines))
        raise NotFoundError(f"no line called {name!r:.80}{known}")
    return places


def trace_document(
    profile: Profile, trace: Trace, excerpt: Excerpt, step: int | None
) -> dict[str, object]:
    """What ``peakline trace --json`` prints; ``step`` is the id of the step of the stretch."""
    check_repeated([row.name for part in excerpt.lines for row in part.rows])
    lines = []
    for part in excerpt.lines:
        line = trace.lines[part.line]
        # A gap stands for no event.
        places = np.array([max(row.event, 0) for row in part.rows], np.int64)
        rows = trace.rows(places).tolist()
        lines.append(
            {
                "plane": trace.planes[line.plane].name,
                "line": line.name,
                "events": part.events,
                "busy_ps": part.busy_ps,
                "hidden": part.hidden,
                "rows": [
                    {
                        "event": None if row.event < 0 else event,
                        "name": None if row.event < 0 else row.name,
                        "depth": row.depth,
                        "start_ps": row.start_ps,
                        "duration_ps": row.end_ps - row.start_ps,
                        "own_ps": row.own_ps,
                        "hidden": row.hidden,
                    }
                    for event, row in zip(rows, part.rows, strict=True)
                ],
            }
        )
    stretch: dict[str, object] = {
        "step_id": step,
        "from_ps": excerpt.start_ps,
        "to_ps": excerpt.end_ps,
        "events": excerpt.events,
        "shown": excerpt.shown,
        "lines": lines,
    }
    return answer_document(profile, stretch)
