"""``peakline graph``: what the graphs of a file hold, and every rule that they break."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from peakline.cli.options import (
    Host,
    Json,
    MaxUnpacked,
    PathArgument,
    SessionId,
    Strict,
    print_warnings,
)
from peakline.cli.output import print_json
from peakline.errors import CheckFailed

if TYPE_CHECKING:
    from peakline.analysis.graph.rules import BrokenRule
    from peakline.analysis.graph.summary import GraphSummary
    from peakline.api import Profile

__all__ = ["graph"]

_NOTHING = "no_graph"


def graph(
    path: PathArgument,
    consumer: Annotated[
        int,
        typer.Option(
            "--consumer",
            metavar="N",
            help="The reader's graph version, for --check. 2474 is TensorFlow 2.21.",
        ),
    ] = 2474,
    session: SessionId = None,
    host: Host = None,
    *,
    check: Annotated[
        bool, typer.Option("--check", help="List every broken rule; exit 1 when there is one.")
    ] = False,
    json: Json = False,
    strict: Strict = False,
    max_unpacked: MaxUnpacked = None,
) -> None:
    """Count the nodes, ops and functions of a graph, and check that it is well formed."""
    import peakline

    with peakline.open(
        path, session=session, host=host, strict=strict, max_unpacked_bytes=max_unpacked
    ) as profile:
        broken = _show(profile, consumer, check=check, as_json=json)
    errors = sum(one.is_error for one in broken)
    if check and errors:
        what = "one broken rule" if errors == 1 else f"{errors:,} broken rules"
        raise CheckFailed(f"{path}: {what}")


def _show(profile: Profile, consumer: int, *, check: bool, as_json: bool) -> list[BrokenRule]:
    from peakline.analysis.graph.summary import summarize_graphs

    summary = summarize_graphs(profile)
    broken: list[BrokenRule] = []
    if not summary.graphs:
        profile.warn(_NOTHING, "no graph in this profile")
    elif check or as_json:
        # Compiling and loading the kernels takes a moment: only when they are asked for.
        from peakline.analysis.graph.check import check_graphs

        broken = check_graphs(profile, consumer=consumer)
    if as_json:
        print_json(_document(profile, summary, broken))
    elif not summary.graphs:
        from peakline.text import one_line

        print(one_line(f"{profile.path}: no graph in this profile"))
    else:
        from peakline.cli.graph_screen import print_graph

        print_graph(profile, summary, broken if check else None)
    print_warnings(profile.warnings, besides=_NOTHING)
    return broken


def _document(
    profile: Profile, summary: GraphSummary, broken: list[BrokenRule]
) -> dict[str, object]:
    several = len(summary.graphs) > 1
    return {
        **summary.as_json(),
        "errors": [one.as_json(with_graph=several) for one in broken if one.is_error],
        "notes": [one.as_json(with_graph=several) for one in broken if not one.is_error],
        "warnings": [
            {"kind": kind, "count": count, "detail": detail}
            for kind, count, detail in profile.warnings
        ],
    }
