"""``peakline trace``: what ran in a stretch of time, line by line, as text."""

from __future__ import annotations

import click

from peakline import document, timing
from peakline.cli.options import Reading, json_option, path_argument, reading_options
from peakline.cli.verb import Verb
from peakline.errors import UsageError
from peakline.render import terminal
from peakline.render.terminal.output import print_json, print_warnings
from peakline.text import parse_time

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
    "--min", "minimum", metavar="DURATION", help="Only events that last so long: 10us, 1ms."
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
    from peakline.trace.events import trace_of

    with reading.open(path) as profile:
        events = trace_of(profile)
        if not events.size:
            profile.warn(_NO_EVENTS, document.NO_EVENTS)
        number = None
        if step is not None:
            number, first, last = timing.stretch_of_step(timing.step_times(profile), step)
        excerpt = document.excerpt_between(
            profile, events, first, last, line=line, min_ps=least or 0, limit=limit
        )
        if json:
            print_json(document.trace_document(profile, events, excerpt, number))
        else:
            terminal.print_excerpt(profile, events, excerpt, number)
        print_warnings(profile.warnings, besides="" if json else _NO_EVENTS)
