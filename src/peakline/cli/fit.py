"""``peakline fit``: in how much memory the recorded program runs, and with which settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from peakline import document, findings, jobs, memory
from peakline.cli.options import PATH_HELP, Argument, Paths, Reading, json_option, reading_options
from peakline.cli.ranks import Readers, contributions, is_job, readers_options
from peakline.cli.verb import Verb
from peakline.errors import UsageError
from peakline.memory.allocator_names import recorded_name
from peakline.memory.fit.model import Question, question_of
from peakline.render import terminal
from peakline.render.terminal.output import print_json, print_warnings
from peakline.repository import job_of_files, only_file
from peakline.text import parse_size

if TYPE_CHECKING:
    from peakline.api import Profile
    from peakline.memory.fit.model import Fit
    from peakline.tables import ProfileWarning


@click.command(
    cls=Verb,
    examples=r"""
    # the least memory in which the recorded program runs
    peakline fit run.xplane.pb
    # whether it runs on a smaller device
    peakline fit run.xplane.pb --limit 16GB --limit 80MiB
    # from the recorded batch size to the largest that fits
    peakline fit run.xplane.pb --limit 16GB --batch 32
""",
)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, cls=Argument, help=PATH_HELP)
@click.option(
    "--limit",
    "limits",
    metavar="SIZE",
    type=parse_size,
    multiple=True,
    help="What happens under this limit: 8GiB, 512MB or bytes. May be repeated.",
)
@click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    help="A setting of the allocator, such as allow_growth=false. May be repeated.",
)
@click.option(
    "--batch",
    metavar="N[:M]",
    help="The recorded batch size N, and another one M: an estimate. Default: the largest that"
    " fits.",
)
@click.option("--allocator", metavar="NAME", help="Only this allocator.")
@reading_options(json_option)
@readers_options
def fit(
    paths: tuple[str, ...],
    limits: tuple[int, ...],
    settings: tuple[str, ...],
    batch: str | None,
    allocator: str | None,
    reading: Reading,
    readers: Readers,
    *,
    json: bool,
) -> None:
    """Say in how much memory the program runs, and how to set it up.

    The recorded allocations are replayed. Several PATHs are recordings of one program, whose
    answers are put together, unless they are ranks. Of several ranks it is what each needs, and
    which fails first.
    """
    question = question_of(limits, settings, batch)
    results = [reading.find(path) for path in paths]
    files = [result for result in results if isinstance(result, str)]
    if len(paths) == len(files) > 1 and job_of_files(files) is not None:
        paths = (Paths(paths),)
        results = [reading.find(paths[0])]
    for path, result in zip(paths, results, strict=True):
        if is_job(result):
            if len(paths) > 1:
                raise UsageError(
                    f"{path}: {len(result.hosts())} ranks, and one PATH is for these: choose one "
                    "with --rank or --host"
                )
            texts = {"limit": [str(one) for one in limits], "settings": list(settings)}
            more = {"batch": batch, "allocator": allocator}
            given = texts | {name: text for name, text in more.items() if text is not None}
            job, ranks = jobs.by_rank(contributions(result, reading, readers, "fit", given))
            if json:
                print_json(document.job_fit_document(job, ranks))
            else:
                terminal.print_job_fit(job, ranks, path)
            return
    warnings: list[ProfileWarning] = []
    documents: list[dict[str, object]] = []
    by_allocator: dict[str, list[Fit]] = {}
    for place, (path, result) in enumerate(zip(paths, results, strict=True)):
        with reading.open_file(only_file(result, "choose one with --host"), path) as profile:
            fits, answer = _answer(profile, question, allocator, json=json, is_first=not place)
            warnings += [one for one in profile.warnings if one.kind != findings.NOTHING]
        documents.append(answer)
        for one in fits:
            by_allocator.setdefault(one.allocator, []).append(one)
    together = [memory.range_over(fits) for fits in by_allocator.values()] if len(paths) > 1 else []
    if json:
        several = {"recordings": documents, "together": together}
        print_json(several if len(paths) > 1 else documents[0])
    else:
        terminal.print_together(together)
    print_warnings(warnings)


def _answer(
    profile: Profile, question: Question, allocator: str | None, *, json: bool, is_first: bool
) -> tuple[list[Fit], dict[str, object]]:
    """The answer for one recording, printed unless it is wanted as JSON."""
    name = recorded_name(profile, allocator)
    fits, failed = memory.fits_of(profile, question, allocator=name)
    answer = document.fit_document(profile, fits, failed)
    if not json:
        if not is_first:
            print()
        terminal.print_fit(profile, fits, failed)
    return fits, answer
