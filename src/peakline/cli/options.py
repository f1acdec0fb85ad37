"""The arguments and options that verbs share, and how they tell what was lost."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from peakline.text import one_line, parse_size

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peakline.profile import ProfileWarning

__all__ = [
    "PATH_HELP",
    "Argument",
    "force_option",
    "host_option",
    "json_option",
    "max_unpacked_option",
    "output_option",
    "path_argument",
    "print_warnings",
    "session_option",
    "strict_option",
]


class Argument(click.Argument):
    """An argument with a help text, which Click's own has since 8.5."""

    def __init__(self, words: Sequence[str], *, help: str, **settings: Any) -> None:  # noqa: A002
        super().__init__(words, **settings)
        self.help = help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str]:  # noqa: ARG002  (Click's)
        """Its row in the help."""
        return self.human_readable_name, self.help or ""


PATH_HELP = "A profile, graph or log file (- is standard input), a session or a log directory."
path_argument = click.argument("path", cls=Argument, help=PATH_HELP)
session_option = click.option(
    "--session", metavar="ID", help="The session of a log directory. Default: the newest."
)
host_option = click.option("--host", metavar="HOST", help="The host, where a session has several.")
json_option = click.option("--json", is_flag=True, help="Print one JSON document.")
strict_option = click.option(
    "--strict", is_flag=True, help="Fail (exit 3) when anything was lost or guessed."
)
max_unpacked_option = click.option(
    "--max-unpacked",
    metavar="SIZE",
    type=parse_size,
    help="What a gzip file may expand to. Default: 200 times its size, at least 1 GiB.",
)
output_option = click.option(
    "--output", "-o", metavar="FILE", help="Write to FILE, not standard output."
)
force_option = click.option("--force", is_flag=True, help="Replace FILE where it exists.")


def print_warnings(warnings: Iterable[ProfileWarning], *, besides: str = "") -> None:
    """Say on standard error what was lost or guessed; the kind ``besides`` was said already."""
    for kind, count, detail in warnings:
        if kind != besides:
            print(f"peakline: warning: {kind} ({count}): {one_line(detail)}", file=sys.stderr)
