"""``peakline ops``: the ops, or the GPU kernels, that take most time."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from peakline.analysis.profile_facts import profile_document, warnings_document
from peakline.cli.options import (
    Host,
    Json,
    MaxUnpacked,
    PathArgument,
    SessionId,
    Strict,
)

if TYPE_CHECKING:
    from peakline.api import Profile
    from peakline.profile.columns import Columns

__all__ = ["Sort", "ops"]


class Sort(Enum):
    """By what rows are ordered, the largest first."""

    SELF = "self"
    TOTAL = "total"
    COUNT = "count"
    MEDIAN = "median"
    MAX = "max"


_COLUMN = {
    Sort.SELF: "self_ps",
    Sort.TOTAL: "total_ps",
    Sort.COUNT: "occurrences",
    Sort.MEDIAN: "median_ps",
    Sort.MAX: "max_ps",
}


def ops(
    path: PathArgument,
    top: Annotated[
        int | None,
        typer.Option(
            "--top",
            metavar="N",
            min=1,
            help="So many rows each. Default: 20, in JSON all.",
        ),
    ] = None,
    sort: Annotated[
        Sort, typer.Option("--sort", help="The largest first: by own time, total time, runs, ...")
    ] = Sort.SELF,
    session: SessionId = None,
    host: Host = None,
    *,
    kernels: Annotated[bool, typer.Option("--kernels", help="GPU kernels instead of ops.")] = False,
    json: Json = False,
    strict: Strict = False,
    max_unpacked: MaxUnpacked = None,
) -> None:
    """List the ops that take most time, of the devices and of the host."""
    from peakline.cli.hosts import tell_hosts

    name = "kernels" if kernels else "op_stats"

    def tell(profile: Profile) -> dict[str, object] | None:
        table = _sorted(profile, name, sort)
        if json:
            rows = table.to_pylist() if table is not None else []
            return {
                "profile": profile_document(profile),
                "kernels" if kernels else "ops": rows if top is None else rows[:top],
                "warnings": warnings_document(profile.warnings),
            }
        from peakline.cli.ops_screen import print_kernels, print_ops

        (print_kernels if kernels else print_ops)(profile, table, top)
        return None

    tell_hosts(path, session, host, tell, strict=strict, max_unpacked=max_unpacked, json=json)


def _sorted(profile: Profile, name: str, sort: Sort) -> Columns | None:
    """The table, the largest first and among equals by name; None without one row."""
    import numpy as np

    if name not in profile.tables or not profile.has_rows(name):
        return None
    table = profile.columns(name)
    # A kernel calls nothing: all its time is its own.
    column = _COLUMN[sort] if _COLUMN[sort] in table else "total_ps"
    names = table.names("kernel" if name == "kernels" else "op")
    rank = np.argsort(np.argsort(np.array([*names.values, ""], object), kind="stable"))
    return table.take(np.lexsort((rank[names.codes], -table.array(column))))
