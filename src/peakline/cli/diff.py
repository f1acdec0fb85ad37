"""``peakline diff``: what changed between two profiles."""

from __future__ import annotations

from typing import Annotated

import typer

from peakline.cli.options import Json, MaxUnpacked, Strict, print_warnings
from peakline.cli.output import print_json
from peakline.errors import UsageError

__all__ = ["diff"]

_STDIN = "-"


def diff(
    before: Annotated[
        str,
        typer.Argument(
            metavar="BEFORE",
            show_default=False,
            help="The earlier profile: a file, a session or a log directory.",
        ),
    ],
    after: Annotated[
        str,
        typer.Argument(
            metavar="AFTER",
            show_default=False,
            help="The later profile, of the same format or another.",
        ),
    ],
    allocator: Annotated[
        str | None,
        typer.Option(
            "--allocator", metavar="NAME", help="Only the allocator of that name in either profile."
        ),
    ] = None,
    session_before: Annotated[
        str | None,
        typer.Option(
            "--session-before", metavar="ID", help="The session of BEFORE. Default: the newest."
        ),
    ] = None,
    session_after: Annotated[
        str | None,
        typer.Option(
            "--session-after", metavar="ID", help="The session of AFTER. Default: the newest."
        ),
    ] = None,
    host_before: Annotated[
        str | None,
        typer.Option("--host-before", metavar="HOST", help="The host of BEFORE, of several."),
    ] = None,
    host_after: Annotated[
        str | None,
        typer.Option("--host-after", metavar="HOST", help="The host of AFTER, of several."),
    ] = None,
    *,
    json: Json = False,
    markdown: Annotated[
        bool,
        typer.Option("--markdown", help="Print Markdown, fit for a pull request."),
    ] = False,
    strict: Strict = False,
    max_unpacked: MaxUnpacked = None,
) -> None:
    """Say what changed from BEFORE to AFTER in memory and time: peaks, steps, ops, findings."""
    import peakline
    from peakline.analysis.answer import NOTHING
    from peakline.analysis.comparison import compare_profiles, profile_state
    from peakline.analysis.timing.answer import NO_STEPS

    if before == after == _STDIN:
        raise UsageError("only one of the two profiles can come from standard input")
    if json and markdown:
        raise UsageError("--json or --markdown, not both")
    states = []
    for path, session, host in (
        (before, session_before, host_before),
        (after, session_after, host_after),
    ):
        with peakline.open(
            path, session=session, host=host, strict=strict, max_unpacked_bytes=max_unpacked
        ) as profile:
            # An allocator that is named asks about memory alone.
            states.append(profile_state(profile, with_time=allocator is None))
    found = compare_profiles(*states, allocator=allocator)
    if json:
        print_json(found.as_json())
    elif markdown:
        from peakline.analysis.comparison_markdown import comparison_markdown

        print(comparison_markdown(found), end="")
    else:
        from peakline.cli.diff_screen import print_diff

        print_diff(found)
    for state in states:
        print_warnings(w for w in state.warnings if w.kind not in {NOTHING, NO_STEPS})
