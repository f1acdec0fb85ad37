"""``peakline trace``: what ran in a stretch of time, line by line, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from peakline.cli.options import (
    Reading,
    answer_document,
    json_option,
    path_argument,
    reading_options,
)
from peakline.cli.verb import Verb
from peakline.errors import NotFoundError, UsageError
from peakline.render.terminal.layout import Text, show
from peakline.render.terminal.output import print_json, print_warnings
from peakline.suggest import there_is
from peakline.text import check_repeated, parse_time, time_text

if TYPE_CHECKING:
    from peakline.api import Profile
    from peakline.timing.timeline.excerpt import Excerpt
    from peakline.trace.events import Trace

_NO_EVENTS = "no_events"


@click.command(
    cls=Verb,
    examples=r"""
    # the whole profile, its 40 longest events
    peakline trace run.xplane.pb --limit 40
    # ten milliseconds of it, what lasts 100 us and more
    peakline trace run.xplane.pb --from 10ms --to 20ms --min 100us
    # one step, by its id or name (peakline steps lists the longest)
    peakline trace run.xplane.pb --step 6
    # the lines of one name
    peakline trace run.xplane.pb --line python
""",
)
@path_argument
@click.option(
    "--from", "start", metavar="TIME", help="Begin: 12.5ms, 1.2s. Default: the first event."
)
@click.option("--to", "end", metavar="TIME", help="End. Default: the end of the last event.")
@click.option(
    "--step", metavar="STEP", help="The stretch in which this step ran: a step's id, or its name."
)
@click.option("--line", metavar="NAME", help="Only lines with this in their name or their plane's.")
@click.option(
    "--min",
    "minimum",
    metavar="DURATION",
    help="Only events that last so long: 10us, 1ms.",
)
@click.option(
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    default=200,
    help="Show the N longest events.",
)
@reading_options(json_option)
def trace(
    path: str,
    start: str | None,
    end: str | None,
    step: str | None,
    line: str | None,
    minimum: str | None,
    limit: int,
    reading: Reading,
    *,
    json: bool,
) -> None:
    """Show what ran in a stretch of time, line by line, and gaps.

    The longest events of every line, nested, with their self times.
    """
    if step is not None and (start is not None or end is not None):
        other = "--from" if start is not None else "--to"
        raise UsageError(f"{other} and --step ask for different times; give one of them")
    first, last, least = (
        None if text is None else parse_time(text) for text in (start, end, minimum)
    )
    if first is not None and last is not None and last <= first:
        raise UsageError(f"--to {end} is not after --from {start}")
    with reading.open(path) as profile:
        from peakline.trace.events import trace_of

        found = trace_of(profile)
        if not found.size:
            profile.warn(_NO_EVENTS, "no events in this profile")
        number = None
        if step is not None:
            from peakline.timing.step_breakdown import step_times
            from peakline.timing.step_choice import stretch_of_step

            number, first, last = stretch_of_step(step_times(profile), step)
        excerpt = _excerpt(profile, first, last, line, least or 0, limit)
        if json:
            print_json(_document(profile, found, excerpt, number))
        elif not found.size:
            show([Text(f"{profile.path}: no events in this profile", hang=2)])
        else:
            from peakline.render.terminal.trace import print_excerpt

            print_excerpt(profile, found, excerpt, number)
        print_warnings(profile.warnings, besides="" if json else _NO_EVENTS)


def _excerpt(
    profile: Profile, first: int | None, last: int | None, line: str | None, least: int, limit: int
) -> Excerpt:
    from peakline.timing.timeline.excerpt import excerpt_of
    from peakline.trace.events import nesting_of, trace_of

    found = trace_of(profile)
    begin, end = found.span()
    begin = begin if first is None else first
    # An instant at the very end belongs to the whole.
    end = max(end + 1, begin + 1) if last is None else last
    if end <= begin:
        raise UsageError(
            f"--to {time_text(end)} is not after the first event, at {time_text(begin)};"
            " give --from"
        )
    lines = None if line is None else _lines_called(found, line)
    return excerpt_of(
        found, nesting_of(profile), begin, end, lines=lines, limit=limit, min_ps=least
    )


def _lines_called(trace: Trace, name: str) -> list[int]:
    """The places of the lines with ``name`` in their name or their plane's, in any case."""
    wanted = name.casefold()
    names = [f"{trace.planes[line.plane].name} {line.name}" for line in trace.lines]
    found = [place for place, text in enumerate(names) if wanted in text.casefold()]
    if not found:
        known = there_is(name, dict.fromkeys(line.name for line in trace.lines))
        raise NotFoundError(f"no line called {name!r:.80}{known}")
    return found


def _document(
    profile: Profile, trace: Trace, excerpt: Excerpt, step: int | None
) -> dict[str, object]:
    import numpy as np

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
    found = {
        "step_id": step, "from_ps": excerpt.start_ps, "to_ps": excerpt.end_ps,
        "events": excerpt.events,
    }  # fmt: skip
    return answer_document(profile, {**found, "shown": excerpt.shown, "lines": lines})
