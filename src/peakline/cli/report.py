"""``peakline report``: one page about a profile, to open, print and hand on."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

import click

from peakline import findings, graph
from peakline import report as page
from peakline.cli.options import (
    Reading,
    force_option,
    path_argument,
    programs_option,
    reading_options,
)
from peakline.cli.ranks import Readers, is_job, job_answer, of_one_rank, readers_options
from peakline.cli.verb import Verb
from peakline.render.terminal.output import deliver, print_warnings, say
from peakline.repository import only_file


@click.command(
    cls=Verb,
    examples=r"""
    # one page to share; of many ranks it is about all of them
    peakline report logs -o report.html
    # under another title, in place of an earlier one
    peakline report logs -o report.html --title "Run 7" --force
""",
)
@path_argument
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    required=True,
    help="The HTML file to write; - is standard output.",
)
@click.option("--allocator", metavar="NAME", help="Only this allocator.")
@click.option("--title", metavar="TEXT", help="What heads the page. Default: PATH.")
@reading_options(programs_option, force_option)
@readers_options
def report(
    path: str,
    output: str,
    allocator: str | None,
    title: str | None,
    reading: Reading,
    readers: Readers,
    *,
    force: bool,
) -> None:
    """Write one HTML page with all of it, which needs no network.

    About memory, time, programs and graphs, with figures, made to be printed and shared. Of several
    ranks, the hosts of a session or a folder with a profile for each, it is one page about all.
    """
    result = reading.find(path)
    if is_job(result):
        of_one_rank(path, result, {"allocator": allocator, "programs": reading.programs})
        job = job_answer(result, reading, readers)
        named = {"--title": title, "--session": reading.session}
        command = _command(path, output, named)
        deliver(
            lambda file: page.write_job_report(job, file, path, title=title, command=command),
            output,
            force=force,
            source=path,
            is_text=True,
        )
        return
    file = only_file(result, "choose one with --rank or --host")
    with reading.open_file(file, path) as profile:
        answer = findings.answer_memory(profile, allocator=allocator)
        named = {"--allocator": allocator, "--title": title}
        named |= {"--session": reading.session, "--host": reading.host}
        named |= {"--rank": None if reading.rank is None else str(reading.rank)}
        named |= {"--programs": reading.programs}
        command = _command(path, output, named)
        deliver(
            lambda file: page.write_report(
                profile, file, title=title, command=command, answer=answer
            ),
            output,
            force=force,
            source=profile.path,
            is_text=True,
        )
        has_time = findings.answer_time(profile).nothing != findings.NO_TIME
        if answer.nothing and not has_time and not graph.graph_names(profile):
            say(f"{profile.path}: {answer.nothing}")
        said = {findings.NOTHING, findings.NO_STEPS}
        print_warnings(one for one in profile.warnings if one.kind not in said)


def _command(path: str, output: str, named: Mapping[str, str | None]) -> str:
    """What is typed for this report."""
    words = ["peakline", "report", path, "-o", output]
    words += [word for name, value in named.items() if value for word in (name, value)]
    return shlex.join(words)
