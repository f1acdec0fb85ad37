"""``peakline summary``: memory and time on one screen, and what to fix first."""

from __future__ import annotations

import click

import peakline
from peakline import findings
from peakline.cli.options import (
    Reading,
    answer_hosts,
    json_option,
    path_argument,
    programs_option,
    reading_options,
)
from peakline.cli.verb import Verb
from peakline.render import terminal


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
@path_argument
@reading_options(programs_option, json_option)
def summary(path: str, reading: Reading, *, json: bool) -> None:
    """Show memory and time on one screen, and what to fix first."""
    summarise(path, reading, json=json)


def summarise(path: str, reading: Reading, *, json: bool = False) -> None:
    """Print the summary of every host that ``path`` means."""

    def document_of(profile: peakline.Profile) -> dict[str, object] | None:
        if json:
            return findings.summary_document(profile, is_last=True)
        memory, time = findings.answers_of(profile, is_last=True)
        first = findings.priorities(memory.findings, time.findings)
        terminal.print_summary(profile, memory, time, first)
        return None

    said = frozenset({findings.NOTHING, findings.NO_STEPS})
    answer_hosts(path, reading, document_of, json=json, besides=said, with_straggler=True)
