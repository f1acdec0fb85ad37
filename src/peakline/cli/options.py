"""The arguments and options that verbs share, and how they open what they read."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from peakline.text import one_line, parse_size

if TYPE_CHECKING:
    from collections.abc import Iterable

    from peakline.profile import ProfileWarning

__all__ = [
    "PATH_HELP",
    "Force",
    "Host",
    "Json",
    "MaxUnpacked",
    "Output",
    "PathArgument",
    "SessionId",
    "Strict",
    "print_warnings",
]

PATH_HELP = "A profile, graph or log file (- is standard input), a session or a log directory."
PathArgument = Annotated[str, typer.Argument(metavar="PATH", show_default=False, help=PATH_HELP)]
SessionId = Annotated[
    str | None,
    typer.Option(
        "--session", metavar="ID", help="The session of a log directory. Default: the newest."
    ),
]
Host = Annotated[
    str | None,
    typer.Option("--host", metavar="HOST", help="The host, where a session has several."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Strict = Annotated[
    bool, typer.Option("--strict", help="Fail (exit 3) when anything was lost or guessed.")
]
MaxUnpacked = Annotated[
    int | None,
    typer.Option(
        "--max-unpacked",
        metavar="SIZE",
        parser=parse_size,
        help="What a gzip file may expand to. Default: 200 times its size, at least 1 GiB.",
    ),
]
Output = Annotated[
    str | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write to FILE, not standard output."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace FILE where it exists.")]


def print_warnings(warnings: Iterable[ProfileWarning], *, besides: str = "") -> None:
    """Say on standard error what was lost or guessed; the kind ``besides`` was said already."""
    for kind, count, detail in warnings:
        if kind != besides:
            print(f"peakline: warning: {kind} ({count}): {one_line(detail)}", file=sys.stderr)
