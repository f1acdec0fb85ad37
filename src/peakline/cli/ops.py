"""``peakline ops``: the ops, or the GPU kernels, that take most time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

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
from peakline.errors import UsageError

if TYPE_CHECKING:
    from peakline.tables import Columns

By = Literal["module", "shape"]

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
    # the kernels of a GPU; the modules of a PyTorch trace
    peakline ops trace.json --kernels
    peakline ops trace.json --by module
""",
)
@path_argument
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
    type=click.Choice(["module", "shape"]),
    help="Of a trace of PyTorch: the time of each module's ops, or of each op by the shapes of its "
    "inputs.",
)
@reading_options(
    click.option("--kernels", is_flag=True, help="GPU kernels instead of ops."), json_option
)
def ops(
    path: str,
    top: int | None,
    sort: str,
    by: By | None,
    reading: Reading,
    *,
    kernels: bool,
    json: bool,
) -> None:
    """List the ops that take most time, on devices and the host."""
    if by and kernels:
        raise UsageError("--by is about ops, --kernels about kernels; give one of them")
    if by == "module" and sort in {"median", "max"}:
        raise UsageError(f"--by module has no {sort}: sort by self, total or count")

    def document_of(profile: peakline.Profile) -> dict[str, object] | None:
        if json:
            return ops_document(profile, kernels=kernels, sort=sort, top=top, by=by)
        from peakline.render.terminal.ops import print_kernels, print_ops, print_ops_by

        if by is not None:
            print_ops_by(profile, _rows_by(profile, by, sort), by, top, sort)
            return None
        table = _sorted(profile, sort, kernels=kernels)
        (print_kernels if kernels else print_ops)(profile, table, top, sort)
        return None

    answer_hosts(path, reading, document_of, json=json)


def ops_document(
    profile: peakline.Profile,
    *,
    kernels: bool = False,
    sort: str = "self",
    top: int | None = None,
    by: By | None = None,
) -> dict[str, object]:
    """What ``peakline ops --json`` prints for ``profile``."""
    from peakline.findings.recording_advice import to_place_ops

    missing: dict[str, object] = {} if kernels else {"to_record": list(to_place_ops(profile))}
    if by is not None:
        found = _rows_by(profile, by, sort)[:top]
        return answer_document(profile, {"modules" if by == "module" else "ops": found, **missing})
    table = _sorted(profile, sort, kernels=kernels)
    rows = table.to_pylist() if table is not None else []
    rows = rows if top is None else rows[:top]
    return answer_document(profile, {"kernels" if kernels else "ops": rows, **missing})


def _rows_by(profile: peakline.Profile, by: By, sort: str) -> list[dict[str, Any]]:
    """The rows, the largest first."""
    from peakline.timing.op_places import rows_by

    return sorted(rows_by(profile, by), key=lambda row: -row[_COLUMN[sort]])


def _sorted(profile: peakline.Profile, sort: str, *, kernels: bool) -> Columns | None:
    """The table, the largest first; None without one row."""
    from peakline.render.document.ops import sorted_ops

    return sorted_ops(profile, "kernels" if kernels else "op_stats", _COLUMN[sort])
