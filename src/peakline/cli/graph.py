"""``peakline graph``: what the graphs of a file hold, and every rule that they break."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from peakline import document
from peakline.cli.options import Reading, json_option, path_argument, reading_options
from peakline.cli.verb import Verb
from peakline.errors import CheckFailed, InputError
from peakline.render import terminal
from peakline.render.terminal.output import print_json, print_warnings

if TYPE_CHECKING:
    from peakline.api import Profile
    from peakline.graph.rules import BrokenRule

_NOTHING = "no_graph"


@click.command(
    cls=Verb,
    examples=r"""
    # nodes, ops and functions of a GraphDef or a saved model
    peakline graph graph.pb
    # every rule that it breaks (exit 1 where it does)
    peakline graph graph.pb --check
""",
)
@path_argument
@click.option(
    "--consumer",
    metavar="N",
    default=2474,
    help="The reader's graph version, for --check. 2474 is TensorFlow 2.21.",
)
@reading_options(
    click.option("--check", is_flag=True, help="List every broken rule; exit 1 when there is one."),
    json_option,
)
def graph(path: str, consumer: int, reading: Reading, *, check: bool, json: bool) -> None:
    """Count what a graph holds, and check that it is well formed."""
    with reading.open(path) as profile:
        broken = _show(profile, consumer, check=check, as_json=json)
    errors = sum(one.is_error for one in broken)
    if check and errors:
        what = "one broken rule" if errors == 1 else f"{errors:,} broken rules"
        raise CheckFailed(f"{path}: {what}")


def _show(profile: Profile, consumer: int, *, check: bool, as_json: bool) -> list[BrokenRule]:
    from peakline.graph.check import check_graphs
    from peakline.graph.summary import summarize_graphs

    summary = summarize_graphs(profile)
    broken: list[BrokenRule] = []
    if not summary.graphs:
        if check:
            raise InputError(f"{profile.path}: {document.NO_GRAPH}, so none to check")
        profile.warn(_NOTHING, document.NO_GRAPH)
    elif check or as_json:
        broken = check_graphs(profile, consumer=consumer)
    if as_json:
        print_json(document.graph_document(profile, summary, broken))
    else:
        terminal.print_graph(profile, summary, broken if check else None)
    print_warnings(profile.warnings, besides=_NOTHING)
    return broken
