"""``peakline memory``: the peak of every allocator and what was live at it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from peakline import document, findings
from peakline.cli.options import (
    Reading,
    json_option,
    paths_argument,
    programs_option,
    reading_options,
)
from peakline.cli.ranks import Readers, is_job, job_answer, of_one_rank, readers_options
from peakline.cli.verb import Verb
from peakline.errors import UsageError
from peakline.memory.allocator_names import recorded_name
from peakline.render import terminal
from peakline.render.terminal.output import print_json, print_warnings
from peakline.repository import only_file
from peakline.tables.profile_facts import is_moment
from peakline.text import parse_time, time_text

if TYPE_CHECKING:
    from peakline.api import Profile
    from peakline.memory.peak.explained import AllocatorPeak


@click.command(
    cls=Verb,
    examples=r"""
    # the peak of every allocator, and what was live at it; of
    # several ranks those of all, and what they hold differently
    peakline memory logs
    # what was live at another moment, or in one step
    peakline memory run.xplane.pb --at 20ms
    peakline memory run.xplane.pb --step 3
    # a PyTorch snapshot, or the log of a job that ran out
    peakline memory snapshot.pickle
""",
)
@paths_argument
@click.option("--allocator", metavar="NAME", help="Only this allocator.")
@click.option(
    "--step", metavar="STEP", help="The largest use while this step ran: a step's id, or its name."
)
@click.option(
    "--at",
    metavar="TIME",
    help="What was live at this time of the profile: 12.5ms, 1.2s, 827750630000ps.",
)
@reading_options(programs_option, json_option)
@readers_options
def memory(
    path: str,
    allocator: str | None,
    step: str | None,
    at: str | None,
    reading: Reading,
    readers: Readers,
    *,
    json: bool,
) -> None:
    """Explain the memory peak: how much, when, and what was live.

    Of several ranks, the hosts of a session or a folder with a profile for each, it is one answer
    for all of them: the peak of each, and what those that differ hold differently.
    """
    if at is not None and step is not None:
        raise UsageError("--at and --step ask for different times; give one of them")
    time_ps = None if at is None else parse_time(at)
    result = reading.find(path)
    if is_job(result):
        given = {"allocator": allocator, "step": step, "at": at, "programs": reading.programs}
        of_one_rank(path, result, given)
        answer = job_answer(result, reading, readers)
        if json:
            print_json(document.job_memory_document(answer))
        else:
            terminal.print_job_memory(answer, path)
        return
    file = only_file(result, "choose one with --host")
    with reading.open_file(file, path) as profile:
        show_memory(profile, allocator=allocator, step=step, at_ps=time_ps, as_json=json)


def show_memory(
    profile: Profile,
    *,
    allocator: str | None = None,
    step: str | None = None,
    at_ps: int | None = None,
    as_json: bool,
) -> None:
    """Print the memory answer for ``profile``, then what had to be guessed.

    ``at_ps`` asks for what was live at that time: on the screen instead, in JSON besides.
    """
    allocator = recorded_name(profile, allocator)
    answer = findings.answer_memory(profile, allocator=allocator, step=step)
    live: Sequence[AllocatorPeak] = ()
    if at_ps is not None:
        if not answer.nothing:
            _check_within(profile, at_ps)
        live = document.live_at(answer, at_ps, allocator)
    if as_json:
        print_json(document.memory_document(profile, answer, at_ps=at_ps, live=live))
    elif answer.nothing:
        terminal.print_no_memory(profile, answer, with_programs=step is None and at_ps is None)
    elif at_ps is not None:
        terminal.print_memory_at(profile, at_ps, live)
    else:
        terminal.print_memory(profile, answer)
    print_warnings(profile.warnings, besides=findings.NOTHING)


def _check_within(profile: Profile, time_ps: int) -> None:
    """UsageError with the profile's bounds where it says nothing of ``time_ps``."""
    if is_moment(profile):
        raise UsageError(f"--at: {profile.path} holds one moment, without a time")
    times = profile.columns("allocator_events", {"time_ps"}).array("time_ps")
    begin, end = min(0, int(times[0])), max(profile.duration_ps, int(times[-1]))
    if not begin <= time_ps <= end:
        raise UsageError(
            f"--at {time_text(time_ps)} is not within the profile, "
            f"which goes from {time_text(begin)} to {time_text(end)}"
        )
