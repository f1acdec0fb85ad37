"""``peakline diff``: what changed between two profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from peakline.cli.options import Json, MaxUnpacked, Strict, print_warnings
from peakline.cli.output import print_json
from peakline.errors import UsageError

if TYPE_CHECKING:
    from peakline.api import Profile

__all__ = ["diff", "profile_document", "warnings_document"]

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
    strict: Strict = False,
    max_unpacked: MaxUnpacked = None,
) -> None:
    """Say what changed from BEFORE to AFTER: peaks, what makes them, growth, churn, findings."""
    import peakline
    from peakline.analysis.answer import NOTHING
    from peakline.analysis.diff import compare

    if before == after == _STDIN:
        raise UsageError("only one of the two profiles can come from standard input")
    with (
        peakline.open(
            before,
            session=session_before,
            host=host_before,
            strict=strict,
            max_unpacked_bytes=max_unpacked,
        ) as old,
        peakline.open(
            after,
            session=session_after,
            host=host_after,
            strict=strict,
            max_unpacked_bytes=max_unpacked,
        ) as new,
    ):
        answers = old.memory(), new.memory()
        found = compare(*answers)
        if allocator is not None:
            found = found.only(allocator)
        if json:
            print_json(
                {
                    "before": profile_document(old),
                    "after": profile_document(new),
                    **found.as_json(),
                    "warnings": {
                        "before": warnings_document(old),
                        "after": warnings_document(new),
                    },
                }
            )
        else:
            from peakline.cli.diff_screen import print_diff

            print_diff(old, new, answers, found)
        for profile in (old, new):
            print_warnings(profile.warnings, besides=NOTHING)


def profile_document(profile: Profile) -> dict[str, object]:
    """Which profile an answer is about, as in ``peakline memory --json``."""
    return {
        "path": profile.path,
        "format": profile.format,
        "host": profile.host,
        "duration_ps": profile.duration_ps,
    }


def warnings_document(profile: Profile) -> list[dict[str, object]]:
    """What was lost or guessed, as in ``peakline memory --json``."""
    return [
        {"kind": kind, "count": count, "detail": detail} for kind, count, detail in profile.warnings
    ]
