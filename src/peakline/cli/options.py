"""The arguments and options that verbs share, and how they open what they read."""

from __future__ import annotations

import re
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

import typer

from peakline.cli.text import one_line
from peakline.errors import UsageError

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
    "parse_duration",
    "parse_size",
    "print_warnings",
]

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGTPE]?)(i?)B?", re.IGNORECASE)


def parse_size(text: str) -> int:
    """A size such as 10MB, 64KiB, 1.5GiB or 4096 in bytes; UsageError for anything else."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is no size; write 10MB, 64KiB, 1.5GiB or a number of bytes")
    number, prefix, binary = match.groups()
    power = " KMGTPE".index((prefix or " ").upper())
    size: Decimal = Decimal(number) * (1024 if binary else 1000) ** power
    return int(size)


_DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)\s*(ms|s|min|m|h)", re.IGNORECASE)
_UNIT_MS = {"ms": 1, "s": 1000, "min": 60_000, "m": 60_000, "h": 3_600_000}


def parse_duration(text: str) -> int:
    """A time such as 500ms, 2s, 1.5min or 1h in milliseconds; UsageError for anything else."""
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is no time; write 500ms, 2s, 5min or 1h")
    return int(Decimal(match[1]) * _UNIT_MS[match[2].lower()])


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
