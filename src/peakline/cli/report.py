"""``peakline report``: one page about a profile's memory, to open, print and hand on."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated

import typer

from peakline.cli.options import (
    Force,
    Host,
    MaxUnpacked,
    PathArgument,
    SessionId,
    Strict,
    print_warnings,
)
from peakline.cli.output import deliver
from peakline.text import one_line

__all__ = ["report"]


def report(
    path: PathArgument,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            show_default=False,
            help="The HTML file to write; - is standard output.",
        ),
    ],
    allocator: Annotated[
        str | None,
        typer.Option("--allocator", metavar="NAME", help="Only this allocator."),
    ] = None,
    title: Annotated[
        str | None,
        typer.Option("--title", metavar="TEXT", help="What heads the page. Default: PATH."),
    ] = None,
    session: SessionId = None,
    host: Host = None,
    *,
    force: Force = False,
    strict: Strict = False,
    max_unpacked: MaxUnpacked = None,
) -> None:
    """Write one HTML page about memory that opens without a network."""
    import peakline
    from peakline.analysis.answer import NOTHING, answer_memory
    from peakline.report import write_report

    with peakline.open(
        path, session=session, host=host, strict=strict, max_unpacked_bytes=max_unpacked
    ) as profile:
        answer = answer_memory(profile, allocator=allocator)
        named = {"--allocator": allocator, "--title": title, "--session": session, "--host": host}
        words = ["peakline", "report", path, "-o", output]
        words += [word for name, value in named.items() if value for word in (name, value)]
        deliver(
            lambda file: write_report(
                profile, file, title=title, command=shlex.join(words), answer=answer
            ),
            output,
            force=force,
            source=profile.path,
        )
        if answer.nothing:
            print(one_line(f"{profile.path}: {answer.nothing}"), file=sys.stderr)
        print_warnings(profile.warnings, besides=NOTHING)
