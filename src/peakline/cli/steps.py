"""``peakline steps``: how long steps take, what their time goes to, which stand out."""

from __future__ import annotations

import click

import peakline
from peakline import document, findings
from peakline.cli.options import Reading, answer_hosts, json_option, paths_argument, reading_options
from peakline.cli.ranks import Readers, is_job, job_answer, readers_options
from peakline.cli.verb import Verb
from peakline.render import terminal
from peakline.render.terminal.output import print_json


@click.command(
    cls=Verb,
    examples=r"""
    # what the time of the steps goes to
    peakline steps logs
    # for a script
    peakline steps run.xplane.pb --json
""",
)
@paths_argument
@reading_options(json_option)
@readers_options
def steps(path: str, reading: Reading, readers: Readers, *, json: bool) -> None:
    """Say how long steps take, what on, and which stand out.

    What the time of the median step goes to, which steps are slow and why, and what is worth
    fixing. Of several ranks each step over all of them, and who is longest in it.
    """
    result = reading.find(path)
    if is_job(result):
        answer = job_answer(result, reading, readers)
        if json:
            print_json(document.job_document(answer) | {"steps": document.job_steps_rows(answer)})
        else:
            terminal.print_job_table(answer, path, document.job_steps_table(answer))
        return

    def document_of(profile: peakline.Profile) -> dict[str, object] | None:
        if json:
            return document.steps_document(profile)
        terminal.print_steps(profile, findings.answer_time(profile))
        return None

    besides = frozenset({findings.NO_STEPS})
    answer_hosts(path, reading, document_of, json=json, besides=besides, result=result)
