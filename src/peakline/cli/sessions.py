"""``peakline sessions``: what a log directory holds."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import click

from peakline.cli.options import Argument, json_option, strict_option
from peakline.cli.verb import Verb
from peakline.document.hosts import sessions_table
from peakline.errors import (
    InputError,
    NotFoundError,
    PeaklineError,
    StrictError,
    UnforeseenError,
    UsageError,
    faults_of,
)
from peakline.render.terminal.output import print_json, print_left_out
from peakline.render.terminal.screen import Text, grid_of, show
from peakline.repository import Repository, extent_of, hosts, rank_files
from peakline.repository.store import Unreadable


@click.command(
    cls=Verb,
    examples=r"""
    # what a log directory holds
    peakline sessions logs
    # for a script
    peakline sessions logs --json
""",
)
@click.argument(
    "logdir", cls=Argument, help="A log directory, or its plugins/profile; also a URL (s3://...)."
)
@json_option
@strict_option
def sessions(logdir: str, *, json: bool, strict: bool) -> None:
    """List the sessions of a log directory, the newest first.

    With their hosts, size, last change and tools.
    """
    repository = Repository(logdir)
    rows, left_out = _rows(repository)
    if not (rows or left_out) and hosts(logdir):
        raise UsageError(f"{logdir}: is a session; its log directory is needed")
    if strict and left_out:
        raise StrictError(f"{logdir}: {left_out[0]}")
    if json:
        print_json(rows)
    elif rows:
        show([grid_of(sessions_table(rows), least=("tools",))])
    else:
        show([Text(f"{logdir}: {_instead(logdir)}", hang=2)])
    print_left_out(left_out)


def _instead(logdir: str) -> str:
    """What a directory without sessions has."""
    with suppress(PeaklineError, Unreadable):
        job = rank_files(logdir)
        if job is not None:
            count = len(job.hosts())
            return f"no sessions, but a profile for each rank of a job, {count} of {job.format}"
    return "no sessions here"


def _rows(repository: Repository) -> tuple[list[dict[str, Any]], list[str]]:
    """A row for every session, and what was left out."""
    from peakline.engine import Engine

    engine = Engine()
    result = repository.survey(nested=True)
    rows: list[dict[str, Any]] = []
    left_out = [str(problem) for problem in result.problems]
    for session in result.sessions:
        try:
            with faults_of(session.path):
                files = session.hosts()
                row = {
                    "session_id": session.name,
                    "hosts": [file.host for file in files],
                    "tools": engine.tools(session),
                    **extent_of(files).as_json(),
                }
                problem = engine.problem(session)
        except NotFoundError:
            continue  # it went away since it was listed
        except (InputError, UnforeseenError) as error:
            left_out.append(str(error))
            continue
        rows.append(row)
        left_out += [problem] if problem else []
    return rows, left_out
