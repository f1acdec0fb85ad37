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
from peakline import compare, document, findings, render
from peakline.check.question import KEYS, Question, question_of
from peakline.check.units import (
    Amount,
    part_amount,
    share_amount,
    share_or_time,
    size_amount,
    time_amount,
)
from peakline.cli.options import Reading, json_option, path_argument, reading_options
from peakline.cli.verb import Verb
from peakline.errors import CheckFailed, NotFoundError, UsageError
from peakline.memory.allocator_names import recorded_name, shown_names
from peakline.render import ci, terminal
from peakline.render.terminal.output import print_json, print_warnings, say
from peakline.safe_text import write_commands
from peakline.text import counted

if TYPE_CHECKING:
    from peakline.api import Profile
    from peakline.check.history import Baseline
    from peakline.check.time import TimeState
    from peakline.check.verdict import Check
    from peakline.compare.state import MemoryState
    from peakline.render.ci import Outcome

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
@path_argument
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
def check(path: str, reading: Reading, *, json: bool, **given: Any) -> None:
    """Hold a profile's memory and time to limits and baselines; exit 1 when one fails."""
    question = _question(given)
    reset, update = given["reset_baseline"], given["update_baseline"]
    target = _file_to_update(question, update=update, reset=reset)
    named = {option: given[option.replace("-", "_")] for option in _REPORTS}
    places = {option: place for option, place in named.items() if place is not None}
    annotations = ci.annotations_for(given["annotations"], given["annotations_file"])
    ci.check_places(places, (path, *question.baselines))
    is_first = target is not None and not os.path.lexists(target)
    wanted = () if is_first or reset else question.baselines
    before = limits.joined([_baseline(one, reading) for one in wanted]) if wanted else None
    shown = ", ".join(wanted) or None
    with reading.open(path) as profile:
        everything = json or target is not None
        state, time, checks = _checks(profile, question, before, everything=everything)
        outcome = _outcome(profile, path, question, checks)
        figures = document.check_document(profile, question, checks, state, time)
        if json:
            print_json(figures)
        else:
            terminal.print_checks(profile, checks, outcome.names, shown, question.origin_text)
        print_warnings(one for one in profile.warnings if one.kind not in _SAID)
        subject = profile.path
    if "summary" in places:
        names = outcome.names
        text = render.summary_markdown(subject, checks, state, names=names, baseline=shown)
        ci.append_text(places["summary"], text)
    # The runner reads commands on either stream; a document on standard output stays whole.
    commands = ci.write_reports(outcome, places, annotations)
    write_commands(commands, sys.stderr if json else sys.stdout)
    failed = [one for one in checks if not one.passed]
    if target is not None and not failed:
        _update(target, before, (state, time), figures["profile"])
    elif target is not None:
        how = "" if reset else "; --reset-baseline accepts this run"
        say(f"{target}: is as it was, for a limit failed{how}")
    if failed:
        first = failed[0]
        more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
        what = ": ".join(
            part for part in (path, first.program or first.allocator, first.name) if part
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


def _checks(
    profile: Profile, question: Question, before: Baseline | None, *, everything: bool
) -> tuple[MemoryState, TimeState, tuple[Check, ...]]:
    """The figures of a profile, of programs and time where they count, and the checks."""
    wanted = question.limits
    answer, time = profile.memory(), None
    state = compare.state_of(answer)
    if not state.allocators and answer.to_record:
        state = replace(state, nothing=f"{state.nothing}; {answer.to_record}")
    of_programs = before is not None and before.memory.programs
    if everything or wanted.max_program_peak_bytes is not None or of_programs:
        state = compare.with_programs(state, profile)
    if everything or wanted.has_time or (before is not None and before.time is not None):
        compared = profile if everything or before is not None else None
        time = limits.time_state_of(findings.answer_time(profile), compared)
    allocator = recorded_name(profile, question.allocator)
    checks = limits.check_limits(state, wanted, before, allocator=allocator, time=time)
    if wanted.max_limit_bytes is not None:
        checks += tuple(limits.limit_checks(profile, wanted, allocator))
    return state, time or limits.TimeState(), checks


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
