"""``peakline summary``: memory and time on one screen, and what to fix first."""

from __future__ import annotations

import click

import peakline
from peakline import findings
from peakline.cli.options import (
    Reading,
    answer_hosts,
    json_option,
    paths_argument,
    programs_option,
    reading_options,
)
from peakline.cli.ranks import Readers, is_job, job_answer, readers_options
from peakline.cli.verb import Verb
from peakline.document.job import job_document
from peakline.render import terminal
from peakline.render.terminal.output import print_json


@click.command(
    cls=Verb,
    examples=r"""
    # the newest session of a log directory
    peakline summary logs
    # another session of it, and one of its hosts
    peakline summary logs --session first --host worker-0
    # for a script
    peakline summary run.xplane.pb --json
""",
)
@paths_argument
@reading_options(programs_option, json_option)
@readers_options
def summary(path: str, reading: Reading, readers: Readers, *, json: bool) -> None:
    """Show memory and time on one screen, and what to fix first.

    Of several ranks, the hosts of a session or a folder with a profile for each, it is one answer
    for all of them.
    """
    summarise(path, reading, readers, json=json)


def summarise(
    path: str, reading: Reading, readers: Readers | None = None, *, json: bool = False
) -> None:
    """Print the summary of what ``path`` means: of a profile, or of all ranks of a job."""
    result = reading.find(path)
    if is_job(result):
        answer = job_answer(result, reading, readers or Readers())
        if json:
            print_json(job_document(answer))
        else:
            terminal.print_job(answer, path)
        return

    def document_of(profile: peakline.Profile) -> dict[str, object] | None:
        if json:
            return findings.summary_document(profile, is_last=True)
        memory, time = findings.answers_of(profile, is_last=True)
        first = findings.priorities(memory.findings, time.findings)
        terminal.print_summary(profile, memory, time, first)
        return None

    said = frozenset({findings.NOTHING, findings.NO_STEPS})
    answer_hosts(path, reading, document_of, json=json, besides=said, result=result)
