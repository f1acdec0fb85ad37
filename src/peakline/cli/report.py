"""``peakline report``: one page about a profile, to open, print and hand on."""

from __future__ import annotations

import shlex

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
from peakline.cli.verb import Verb
from peakline.render.terminal.output import deliver, print_warnings, say


@click.command(
    cls=Verb,
    examples=r"""
    # one page to share
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
def report(
    path: str,
    output: str,
    allocator: str | None,
    title: str | None,
    reading: Reading,
    *,
    force: bool,
) -> None:
    """Write one HTML page with all of it, which needs no network.

    About memory, time, programs and graphs, with figures, made to be printed and shared.
    """
    with reading.open(path) as profile:
        answer = findings.answer_memory(profile, allocator=allocator)
        named = {"--allocator": allocator, "--title": title}
        named |= {"--session": reading.session, "--host": reading.host}
        named |= {"--rank": None if reading.rank is None else str(reading.rank)}
        named |= {"--programs": reading.programs}
        words = ["peakline", "report", path, "-o", output]
        words += [word for name, value in named.items() if value for word in (name, value)]
        deliver(
            lambda file: page.write_report(
                profile, file, title=title, command=shlex.join(words), answer=answer
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
