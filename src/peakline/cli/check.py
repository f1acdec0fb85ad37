"""``peakline check``: limits that a profile must pass, for continuous integration."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from peakline import check as limits
from peakline import compare, document, findings, jobs, render
from peakline.check.question import KEYS, Question, question_of
from peakline.check.units import (
    Amount,
    part_amount,
    share_amount,
    share_or_time,
    size_amount,
    time_amount,
)
from peakline.cli.options import Reading, each_path, json_option, paths_argument, reading_options
from peakline.cli.ranks import Readers, contributions, is_job, readers_options
from peakline.cli.verb import Verb
from peakline.errors import CheckFailed, NotFoundError, UsageError
from peakline.memory.allocator_names import recorded_name, shown_names
from peakline.render import ci, terminal
from peakline.render.terminal.output import print_json, print_warnings, say
from peakline.repository import only_file
from peakline.safe_text import write_commands
from peakline.text import counted

if TYPE_CHECKING:
    from peakline.api import Profile
    from peakline.check.history import Baseline
    from peakline.check.time import TimeState
    from peakline.check.verdict import Check
    from peakline.compare.state import MemoryState
    from peakline.render.ci import Outcome
    from peakline.repository import Session

_STDIN = "-"
_HEAD = 4096
_SAID = frozenset({"no_memory_events", "no_steps"})
"""Warnings that a check says itself, where they matter to it."""
_REPORTS = ("summary", "junit", "sarif", "annotations-file")

_Function = Callable[..., None]


def _limit(
    name: str, metavar: str, parse: Callable[[str], Amount], text: str
) -> Callable[[_Function], _Function]:
    return click.option(f"--{name}", metavar=metavar, type=parse, help=text)


@click.command(
    cls=Verb,
    examples=r"""
    # fail (exit 1) where a limit is exceeded
    peakline check logs --max-peak 12GiB --max-step-time 150ms
    # ... or what earlier runs needed, and remember this run
    peakline check logs --baseline baseline.json --update-baseline
    # ... or another profile needed
    peakline check after.xplane.pb --baseline before.xplane.pb
    # what continuous integration shows
    peakline check logs --max-peak 12GiB --junit peakline.xml
 """,
)
@paths_argument
@_limit("max-peak", "SIZE", size_amount, "The most that may be in use: 10MB, 64KiB, 1.5GiB.")
@_limit(
    "max-growth-per-step",
    "SIZE",
    size_amount,
    "The most that every step may leave in memory for good; 0 for nothing.",
)
@_limit(
    "max-fragmentation",
    "SHARE",
    part_amount,
    "The most of the free memory at the peak that may lie outside its largest piece: 0.3 or 30%.",
)
@_limit("max-program-peak", "SIZE", size_amount, "The most that a compiled program may need.")
@_limit(
    "max-limit",
    "SIZE",
    size_amount,
    "The memory in which the recorded program must run (peakline fit).",
)
@_limit("max-step-time", "TIME", time_amount, "The most that the median step may take: 150ms.")
@_limit("max-p95-step-time", "TIME", time_amount, "The most that 95% of the steps may take.")
@_limit(
    "max-input-wait",
    "SHARE",
    part_amount,
    "The most of the steps' time that may go to waiting for input: 10% or 0.1.",
)
@_limit(
    "max-compile",
    "AMOUNT",
    share_or_time,
    "The most of the steps' time, or of the mean step, that may go to compilation: 5% or 20ms.",
)
@_limit(
    "max-idle",
    "SHARE",
    part_amount,
    "The most of the steps' time in which the device may be idle for no known cause.",
)
@click.option(
    "--baseline",
    metavar="PATH",
    multiple=True,
    help="A profile whose figures may not be exceeded, or a file of figures that "
    "--update-baseline or --json wrote; several together show what noise is usual.",
)
@_limit(
    "tolerance",
    "SHARE",
    share_amount,
    "By how much the baseline may be exceeded: 5% or 0.05. Default: what its runs show is noise.",
)
@click.option(
    "--update-baseline",
    is_flag=True,
    help="Add this run to the file of --baseline if it passes; creates the file.",
)
@click.option(
    "--reset-baseline",
    is_flag=True,
    help="Begin the file of --baseline anew with this run, which is not compared with it.",
)
@click.option("--allocator", metavar="NAME", help="Only this allocator. Default: all.")
@click.option(
    "--config",
    metavar="FILE",
    help="A TOML file with limits. Default: [tool.peakline.check] of the next pyproject.toml "
    "from the working directory upward.",
)
@click.option("--no-config", is_flag=True, help="Read no limits from a pyproject.toml.")
@click.option(
    "--summary",
    metavar="FILE",
    help="Append the outcome in Markdown to FILE, as $GITHUB_STEP_SUMMARY wants it.",
)
@click.option("--junit", metavar="FILE", help="Write the outcome to FILE as JUnit's XML.")
@click.option("--sarif", metavar="FILE", help="Write the limits that failed to FILE as SARIF.")
@click.option(
    "--annotations",
    type=click.Choice(("github", "gitlab", "auto")),
    help="Print GitHub's workflow commands, or write GitLab's Code Quality report; auto: what the "
    "job runs on.",
)
@click.option(
    "--annotations-file", metavar="FILE", help="Where GitLab's Code Quality report is written."
)
@reading_options(json_option)
@readers_options
def check(path: str, reading: Reading, readers: Readers, *, json: bool, **given: Any) -> None:
    """Hold a profile's memory and time to limits and baselines; exit 1 when one fails.

    Of several ranks each limit is judged by the rank that breaks it most.
    """
    question = _question(given)
    reset, update = given["reset_baseline"], given["update_baseline"]
    target = _file_to_update(question, update=update, reset=reset)
    named = {option: given[option.replace("-", "_")] for option in _REPORTS}
    places = {option: place for option, place in named.items() if place is not None}
    annotations = ci.annotations_for(given["annotations"], given["annotations_file"])
    ci.check_places(places, (*each_path(path), *question.baselines))
    result = reading.find(path)
    if is_job(result):
        if question.baselines:
            raise UsageError(
                f"{path}: --baseline is of one of its {len(result.hosts())} ranks: choose it with "
                "--rank or --host"
            )
        worst = _check_ranks(path, result, reading, readers, question, json=json)
        _report(ci.Outcome(limits.near(path), worst), places, annotations, json=json)
        if "summary" in places:
            text = render.summary_markdown(path, worst, compare.MemoryState(()), names={})
            ci.append_text(places["summary"], text)
        _fail_where_broken(path, worst)
        return
    is_first = target is not None and not os.path.lexists(target)
    wanted = () if is_first or reset else question.baselines
    before = limits.joined([_baseline(one, reading) for one in wanted]) if wanted else None
    shown = ", ".join(wanted) or None
    with reading.open_file(only_file(result, "choose one with --host"), path) as profile:
        allocator = recorded_name(profile, question.allocator)
        everything = json or target is not None
        state, time, checks = limits.profile_checks(
            profile, question.limits, before, allocator, everything=everything
        )
        outcome = _outcome(profile, path, question, checks)
        figures = document.check_document(profile, question, checks, state, time)
        if json:
            print_json(figures)
        else:
            about = f"{profile.path} ({profile.format})"
            terminal.print_checks(about, checks, outcome.names, shown, question.origin_text)
        print_warnings(one for one in profile.warnings if one.kind not in _SAID)
        subject = profile.path
    if "summary" in places:
        names = outcome.names
        text = render.summary_markdown(subject, checks, state, names=names, baseline=shown)
        ci.append_text(places["summary"], text)
    _report(outcome, places, annotations, json=json)
    failed = [one for one in checks if not one.passed]
    if target is not None and not failed:
        _update(target, before, (state, time), figures["profile"])
    elif target is not None:
        how = "" if reset else "; --reset-baseline accepts this run"
        say(f"{target}: is as it was, for a limit failed{how}")
    _fail_where_broken(path, checks)


def _report(
    outcome: Outcome, places: dict[str, str], annotations: str | None, *, json: bool
) -> None:
    """Write what continuous integration shows."""
    # The runner reads commands on either stream; a document on standard output stays whole.
    commands = ci.write_reports(outcome, places, annotations)
    write_commands(commands, sys.stderr if json else sys.stdout)


def _fail_where_broken(path: str, checks: Sequence[Check]) -> None:
    failed = [one for one in checks if not one.passed]
    if failed:
        first = failed[0]
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        what = ": ".join(
            part
            for part in (path, first.rank, first.program or first.allocator, first.name)
            if part
        )
        raise CheckFailed(f"{what}: {first.reason}{more}")


def _question(given: dict[str, Any]) -> Question:
    """The limits of the command line, and of the file where it names none."""
    config = given["config"]
    if config is not None and given["no_config"]:
        raise UsageError("--config and --no-config exclude each other")
    settings = None
    if config is not None:
        settings = limits.read_settings(Path(config), KEYS)
    elif not given["no_config"]:
        settings = limits.find_settings(Path.cwd(), KEYS)
    return question_of({key: given[key.replace("-", "_")] for key in KEYS}, settings)


def _check_ranks(
    path: str,
    session: Session,
    reading: Reading,
    readers: Readers,
    question: Question,
    *,
    json: bool,
) -> list[Check]:
    """The limits held against all ranks, printed; each by the rank that breaks it most."""
    texts = {key.replace("-", "_"): text for key, text in limits.texts_of(question.limits).items()}
    if question.allocator is not None:
        texts["allocator"] = question.allocator
    job, ranks = jobs.by_rank(contributions(session, reading, readers, "check", texts))
    checks = limits.worst_checks(ranks)
    if json:
        print_json(document.job_check_document(job, ranks, question))
    else:
        form = job.profiles[0].format if job.profiles else ""
        about = f"{path} (job of {counted(len(ranks), 'rank')}, {form})"
        lines = document.member_lines(job)
        terminal.print_checks(about, checks, {}, None, question.origin_text, lines)
    return checks


def _baseline(path: str, reading: Reading) -> Baseline:
    """The figures of a baseline: of a profile, or as this program wrote them down."""
    from peakline.formats.common.files import SourceFile

    if path == _STDIN:
        raise UsageError("--baseline cannot come from standard input; name a file")
    reading = replace(reading, session=None, host=None)
    try:
        place = reading.file(path, choose="name the file of one")
    except NotFoundError as error:
        if os.path.lexists(path):
            raise
        raise NotFoundError(f"{error}; --update-baseline creates the file") from None
    if not Path(place).is_dir():
        file = SourceFile(place, max_unpacked_bytes=reading.max_unpacked)
        try:
            if limits.is_baseline(file.head[:_HEAD]):
                return limits.read_history(bytes(file.buffer), path)
        finally:
            file.close()
    with reading.open_file(place, path) as profile:
        memory = compare.with_programs(compare.state_of(profile.memory()), profile)
        return limits.baseline_of(
            memory, limits.time_state_of(findings.answer_time(profile), profile)
        )


def _file_to_update(question: Question, *, update: bool, reset: bool) -> str | None:
    """The one file of figures that this run is added to; None where none is wanted."""
    if not (update or reset):
        return None
    option = "--reset-baseline" if reset else "--update-baseline"
    if update and reset:
        raise UsageError("--update-baseline and --reset-baseline exclude each other")
    if len(question.baselines) != 1:
        raise UsageError(f"{option} needs one --baseline, the file to write")
    place = question.baselines[0]
    if place == _STDIN or Path(place).is_dir():
        raise UsageError(f"{option} writes a file; {place!r} is none")
    if Path(place).is_file():
        with Path(place).open("rb") as file:
            head = file.read(_HEAD)
        # What is damaged may be replaced by a reset, what may be a profile never.
        if head and not limits.is_baseline(head):
            raise UsageError(f"{place}: is no file of figures, and is not replaced; name another")
    return place


def _update(
    place: str, before: Baseline | None, run: tuple[MemoryState, TimeState], profile: Any
) -> None:
    after = limits.followed_by(before, *run)
    ci.write_text(place, limits.baseline_text(limits.baseline_document(after, profile)))
    count = len(after.runs)
    more = f"; noise is learned from {limits.LEARNED} on" if count < limits.LEARNED else ""
    say(f"{place}: this run was added, it holds {counted(count, 'run')}{more}")


def _outcome(profile: Profile, path: str, question: Question, checks: Sequence[Check]) -> Outcome:
    """The checks, with where to point at: the line that makes most, else the limit in its file."""
    places = [
        place or (None if check.passed else question.line_of(check.name))
        for check, place in zip(checks, limits.places_of(profile, checks), strict=True)
    ]
    return ci.Outcome(limits.near(path), checks, shown_names(profile), places)
