"""``peakline programs``: the programs that XLA compiled, their memory and their cost."""

from __future__ import annotations

import click

import peakline
from peakline import document
from peakline.cli.options import Reading, answer_hosts, json_option, path_argument, reading_options
from peakline.cli.verb import Verb
from peakline.render import terminal


@click.command(
    cls=Verb,
    examples=r"""
    # those of a JAX profile, that which needs most first
    peakline programs run.xplane.pb
    # what XLA dumped (XLA_FLAGS=--xla_dump_to=dump)
    peakline programs dump
    # for a script
    peakline programs dump --json --top 5
""",
)
@path_argument
@click.option("--module", metavar="NAME", help="This program in full: its name or id.")
@click.option(
    "--top",
    metavar="N",
    type=click.IntRange(min=1),
    help="So many rows each. Default: 20, in JSON all.",
)
@reading_options(json_option)
def programs(
    path: str, module: str | None, top: int | None, reading: Reading, *, json: bool
) -> None:
    """List the compiled programs: their memory and their cost.

    With what is live at the peak of each, by value, scope and source line.
    """
    in_full = module is not None

    def document_of(profile: peakline.Profile) -> dict[str, object] | None:
        chosen = document.chosen_programs(profile, module)
        if json:
            return document.programs_document(profile, chosen, top, in_full=in_full)
        if in_full:
            terminal.print_program(profile, chosen[0], top)
        else:
            terminal.print_programs(profile, chosen, top)
        return None

    answer_hosts(path, reading, document_of, json=json)
