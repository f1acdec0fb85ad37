"""``peakline diff``: what changed between two profiles, or over a series of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

import peakline
from peakline import compare, document, findings, render
from peakline.cli.options import Argument, Reading, json_option, max_unpacked_option, strict_option
from peakline.cli.ranks import Readers, is_job, job_answer, of_one_rank, readers_options
from peakline.cli.verb import Verb
from peakline.errors import InputError, UnforeseenError, UsageError, faults_of
from peakline.jobs.compared import JobDiff
from peakline.memory.allocator_names import recorded_name
from peakline.render import terminal
from peakline.render.terminal.output import print_json, print_warnings, say
from peakline.repository import only_file

if TYPE_CHECKING:
    from peakline.repository import Session

_STDIN = "-"
_NUMBER = re.compile(r"(\d+)")


@click.command(
    cls=Verb,
    examples=r"""
    # two files
    peakline diff before.xplane.pb after.xplane.pb
    # two sessions of a log directory
    peakline diff logs logs --session-before first
    # two jobs of many ranks
    peakline diff monday/ tuesday/
    # for a pull request
    peakline diff before.xplane.pb after.xplane.pb --markdown
""",
)
@click.argument(
    "before", cls=Argument, help="The earlier profile: a file, a session or a log directory."
)
@click.argument(
    "after",
    cls=Argument,
    nargs=-1,
    help="The later profile, of the same format or another; several are a series in order of time. "
    "Without one BEFORE is a folder of profiles, in the order of their names.",
)
@click.option(
    "--allocator", metavar="NAME", help="Only the allocator of that name in either profile."
)
@click.option("--session-before", metavar="ID", help="The session of BEFORE. Default: the newest.")
@click.option("--session-after", metavar="ID", help="The session of AFTER. Default: the newest.")
@click.option("--host-before", metavar="HOST", help="The host of BEFORE, of several.")
@click.option("--host-after", metavar="HOST", help="The host of AFTER, of several.")
@json_option
@click.option("--markdown", is_flag=True, help="Print Markdown, fit for a pull request.")
@strict_option
@max_unpacked_option
@readers_options
def diff(
    before: str,
    after: tuple[str, ...],
    allocator: str | None,
    session_before: str | None,
    session_after: str | None,
    host_before: str | None,
    host_after: str | None,
    readers: Readers,
    *,
    json: bool,
    markdown: bool,
    strict: bool,
    max_unpacked: int | None,
) -> None:
    """Show what changed between two profiles, or over a series.

    What changed from BEFORE to AFTER in memory and time: peaks, steps, ops, findings.

    Of two jobs, sessions of several hosts or folders with a profile for each rank, it is one
    answer for all ranks, and which changed otherwise than the others.

    Of more than two profiles the first is compared with the last, and what grows over all of them
    is a finding.
    """
    paths = [before, *after] if after else _in_folder(before)
    if paths.count(_STDIN) > 1:
        raise UsageError("only one of the profiles can come from standard input")
    if json and markdown:
        raise UsageError("--json or --markdown, not both")
    readings = [
        Reading(
            session_after if place else session_before,
            host_after if place else host_before,
            strict,
            max_unpacked,
        )
        for place in range(len(paths))
    ]
    sessions = [reading.find(path) for reading, path in zip(readings, paths, strict=True)]
    jobs = [one for one in sessions if is_job(one)]
    if len(paths) == len(jobs) == 2:
        of_one_rank(paths[0], jobs[0], {"allocator": allocator}, "--host-before")
        _diff_jobs(paths, readings, jobs, readers, json=json, markdown=markdown)
        return
    states = []
    for place, (path, reading, result) in enumerate(zip(paths, readings, sessions, strict=True)):
        which = "after" if place else "before"
        file = only_file(result, f"choose one with --host-{which}")
        with faults_of(file), reading.open_file(file, path) as profile:
            allocator = recorded_name(profile, allocator)
            # An allocator that is named asks about memory alone.
            states.append(compare.profile_state(profile, with_time=allocator is None))
    compared = compare.compare_profiles(states[0], states[-1], allocator=allocator)
    series = compare.series_of(states) if len(states) > 2 else None
    if json:
        print_json(
            document.diff_document(compared)
            | ({} if series is None else {"series": series.as_json()})
        )
    elif markdown:
        print(render.comparison_markdown(compared, series), end="")
    else:
        terminal.print_diff(compared, series)
    every = [one for state in states for one in state.warnings]
    print_warnings(one for one in every if one.kind not in {findings.NOTHING, findings.NO_STEPS})


def _diff_jobs(
    paths: list[str],
    readings: list[Reading],
    sessions: Sequence[Session],
    readers: Readers,
    *,
    json: bool,
    markdown: bool,
) -> None:
    """Compare all ranks of two jobs."""
    before, after = (
        job_answer(session, reading, readers)
        for session, reading in zip(sessions, readings, strict=True)
    )
    result = JobDiff(before, after)
    if json:
        print_json(document.job_diff_document(result, *paths))
    elif markdown:
        print(render.job_diff_markdown(result, *paths), end="")
    else:
        terminal.print_job_diff(result, *paths)


def _in_folder(path: str) -> list[str]:
    """The profiles of a folder in the order of their names, numbers by their size."""
    folder = Path(path)
    if not folder.is_dir():
        raise UsageError(f"one profile has no difference: give another one after {path}")
    files = [str(file) for file in folder.iterdir() if file.is_file() and file.name[0] != "."]
    profiles = [file for file in sorted(files, key=_natural) if _is_profile(file)]
    if len(profiles) < 2:
        raise UsageError(f"{path} holds fewer than two profiles: give them one by one")
    if len(profiles) < len(files):
        say(f"{path}: {len(files) - len(profiles)} files are no profiles, and left out")
    return profiles


def _is_profile(path: str) -> bool:
    """Whether some reader takes the file."""
    try:
        with faults_of(path):
            peakline.open(path).close()
    except InputError:
        return False
    except UnforeseenError as error:
        say(str(error))
        return False
    return True


def _natural(path: str) -> list[tuple[int, str]]:
    """``heap.10`` comes after ``heap.9``."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _NUMBER.split(path)]
