"""``peakline steps``: how long steps take, what their time goes to, which stand out."""

from __future__ import annotations

import click

import peakline
from peakline.cli.options import (
    Reading,
    answer_document,
    answer_hosts,
    json_option,
    path_argument,
    reading_options,
)
from peakline.cli.verb import Verb


@click.command(
    cls=Verb,
    examples=r"""
    # what the time of the steps goes to
    peakline steps logs
    # for a script
    peakline steps run.xplane.pb --json
""",
)
@path_argument
@reading_options(json_option)
def steps(path: str, reading: Reading, *, json: bool) -> None:
    """Say how long steps take, what on, and which stand out.

    What the time of the median step goes to, which steps are slow and why, and what is worth
    fixing.
    """
    from peakline.findings.time_answer import NO_STEPS, answer_time

    def document_of(profile: peakline.Profile) -> dict[str, object] | None:
        if json:
            return steps_document(profile)
        from peakline.render.terminal.steps import print_steps

        print_steps(profile, answer_time(profile))
        return None

    answer_hosts(
        path, reading, document_of, json=json, besides=frozenset({NO_STEPS}), with_straggler=True
    )


def steps_document(profile: peakline.Profile) -> dict[str, object]:
    """What ``peakline steps --json`` prints for ``profile``."""
    from peakline.findings.time_answer import answer_time

    return answer_document(profile, answer_time(profile).as_json())
