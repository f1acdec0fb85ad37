"""``peakline memory``: the peak of every allocator and what was live at it."""

from __future__ import annotations

import click

from peakline.cli.options import (
    Reading,
    json_option,
    path_argument,
    programs_option,
    reading_options,
)
from peakline.cli.verb import Verb
from peakline.errors import UsageError
from peakline.text import parse_time


@click.command(
    cls=Verb,
    examples=r"""
    # the peak of every allocator, and what was live at it
    peakline memory logs
    # what was live at another moment, or in one step
    peakline memory run.xplane.pb --at 20ms
    peakline memory run.xplane.pb --step 3
    # a PyTorch snapshot, or the log of a job that ran out
    peakline memory snapshot.pickle
""",
)
@path_argument
@click.option("--allocator", metavar="NAME", help="Only this allocator.")
@click.option(
    "--step",
    metavar="STEP",
    help="The largest use while this step ran: a step's id, or its name.",
)
@click.option(
    "--at",
    metavar="TIME",
    help="What was live at this time of the profile: 12.5ms, 1.2s, 827750630000ps.",
)
@reading_options(programs_option, json_option)
def memory(
    path: str,
    allocator: str | None,
    step: str | None,
    at: str | None,
    reading: Reading,
    *,
    json: bool,
) -> None:
    """Explain the memory peak: how much, when, and what was live."""
    if at is not None and step is not None:
        raise UsageError("--at and --step ask for different times; give one of them")
    from peakline.render.terminal.memory_answer import show_memory

    time_ps = None if at is None else parse_time(at)
    with reading.open(path) as profile:
        show_memory(profile, allocator=allocator, step=step, at_ps=time_ps, as_json=json)
