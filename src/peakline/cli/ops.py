"""``peakline ops``: the ops, or the GPU kernels, that take most time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

import peakline
from peakline import document
from peakline.cli.options import Reading, answer_hosts, json_option, paths_argument, reading_options
from peakline.cli.ranks import Readers, is_job, job_answer, readers_options
from peakline.cli.verb import Verb
from peakline.errors import UsageError
from peakline.render import terminal
from peakline.render.terminal.output import print_json

if TYPE_CHECKING:
    from peakline.timing.ops.places import By

_COLUMN = {
    "self": "self_ps",
    "total": "total_ps",
    "count": "occurrences",
    "median": "median_ps",
    "max": "max_ps",
}
"""By what rows are ordered, the largest first."""


@click.command(
    cls=Verb,
    examples=r"""
    # the ops, the longest self time first
    peakline ops logs --top 10
    # by how often they ran
    peakline ops run.xplane.pb --sort count
    # the kernels of a GPU; which of your own functions takes the time
    peakline ops trace.json --kernels
    peakline ops trace.json --by function
""",
)
@paths_argument
@click.option(
    "--top",
    metavar="N",
    type=click.IntRange(min=1),
    help="So many rows each. Default: 20, in JSON all.",
)
@click.option(
    "--sort",
    type=click.Choice(list(_COLUMN)),
    default="self",
    help="The largest first: by self time, total time, runs, ...",
)
@click.option(
    "--by",
    type=click.Choice(["function", "module", "shape", "type"]),
    help="The time of ops by type; by your own functions, where frames of Python or the sources of "
    "programs are recorded; of PyTorch also by module, or of each op by the shapes of its inputs.",
)
@reading_options(
    click.option("--kernels", is_flag=True, help="GPU kernels instead of ops."), json_option
)
@readers_options
def ops(
    path: str,
    top: int | None,
    sort: str,
    by: By | None,
    reading: Reading,
    readers: Readers,
    *,
    kernels: bool,
    json: bool,
) -> None:
    """List the ops that take most time, on devices and the host.

    Of several ranks: the median of the ranks, and the rank on which it is most.
    """
    if by and kernels:
        raise UsageError("--by is about ops, --kernels about kernels; give one of them")
    if by not in {None, "shape"} and sort in {"median", "max"}:
        raise UsageError(f"--by {by} has no {sort}: sort by self, total or count")

    result = reading.find(path)
    if is_job(result):
        if by not in {None, "function"} or sort != "self":
            raise UsageError("of several ranks ops are sorted by self time; choose one with --rank")
        answer = job_answer(result, reading, readers)
        side = by or ("kernel" if kernels else "op")
        if json:
            print_json(
                document.job_document(answer) | {"ops": document.job_ops_rows(answer, side)[:top]}
            )
        else:
            terminal.print_job_table(answer, path, document.job_ops_table(answer, side, top))
        return
    column = _COLUMN[sort]

    def document_of(profile: peakline.Profile) -> dict[str, object] | None:
        if json:
            return document.ops_document(profile, kernels=kernels, column=column, top=top, by=by)
        if by is not None:
            terminal.print_ops_by(profile, document.ops_rows(profile, by, column), by, top, sort)
        elif kernels:
            table = document.sorted_ops(profile, "kernels", column)
            terminal.print_kernels(profile, table, top, sort)
        else:
            table = document.sorted_ops(profile, "op_stats", column)
            terminal.print_ops(profile, table, top, sort)
        return None

    answer_hosts(path, reading, document_of, json=json, result=result)
