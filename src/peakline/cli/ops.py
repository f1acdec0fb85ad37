"""``peakline ops``: the ops, or the GPU kernels, that take most time."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from peakline.tables import Columns

_COLUMN = {
    "self": "self_ps",
    "total": "total_ps",
    "count": "occurrences",
    "median": "median_ps",
    "max": "max_ps",
}
"""By what rows are ordered, the largest first."""


@click.command()
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
@reading_options(
    click.option("--kernels", is_flag=True, help="GPU kernels instead of ops."), json_option
)
def ops(
    path: str,
    top: int | None,
    sort: str,
    reading: Reading,
    *,
    kernels: bool,
    json: bool,
) -> None:
    """List the ops that take most time, of the devices and of the host."""

    def document_of(profile: peakline.Profile) -> dict[str, object] | None:
        if json:
            return ops_document(profile, kernels=kernels, sort=sort, top=top)
        from peakline.render.terminal.ops import print_kernels, print_ops

        table = _sorted(profile, sort, kernels=kernels)
        (print_kernels if kernels else print_ops)(profile, table, top)
        return None

    answer_hosts(path, reading, document_of, json=json)


def ops_document(
    profile: peakline.Profile, *, kernels: bool = False, sort: str = "self", top: int | None = None
) -> dict[str, object]:
    """What ``peakline ops --json`` prints for ``profile``."""
    table = _sorted(profile, sort, kernels=kernels)
    rows = table.to_pylist() if table is not None else []
    rows = rows if top is None else rows[:top]
    return answer_document(profile, {"kernels" if kernels else "ops": rows})


def _sorted(profile: peakline.Profile, sort: str, *, kernels: bool) -> Columns | None:
    """The table, the largest first and among equals by name; None without one row."""
    import numpy as np

    name = "kernels" if kernels else "op_stats"
    if name not in profile.tables or not profile.has_rows(name):
        return None
    table = profile.columns(name)
    # A kernel calls nothing: all its time is its own.
    column = _COLUMN[sort] if _COLUMN[sort] in table else "total_ps"
    names = table.names("kernel" if name == "kernels" else "op")
    rank = np.argsort(np.argsort(np.array([*names.values, ""], object), kind="stable"))
    return table.take(np.lexsort((rank[names.codes], -table.array(column))))
