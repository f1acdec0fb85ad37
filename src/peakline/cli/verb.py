"""A verb as a command: its examples in the help, and what is near to a path that is not there."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import click

from peakline.cli.progress import drawn_progress
from peakline.errors import NotFoundError
from peakline.suggest import near

_URL = re.compile(r"[a-z][a-z0-9+.-]+(?:://|::)", re.IGNORECASE)
_NO_CHOICE = re.compile(r"'(.*?)' is not one of ")
_MOST_ENTRIES = 5000


class Verb(click.Command):
    """A command whose help ends in worked ``examples``: lines for a shell, comments with a ``#``
    before them. While it works it says on a terminal how far it is, unless it ``stays``: one that
    has no end, or a way of its own to say that.
    """

    def __init__(
        self, *words: Any, examples: str = "", stays: bool = False, **settings: Any
    ) -> None:
        super().__init__(*words, **settings)
        self._stays = stays
        self.examples = inspect.cleandoc(examples).splitlines()

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The examples; nothing of them is wrapped, so that they can be copied."""
        super().format_epilog(ctx, formatter)
        write_lines(formatter, "Examples", self.examples)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As Click; says how a place that has the verb's own name is meant."""
        try:
            return super().parse_args(ctx, args)
        except click.MissingParameter as error:
            name = self.name or ""
            if not args and os.path.lexists(name):
                raise click.UsageError(
                    f"{name} is a command; what is here of that name is ./{name}:"
                    f" peakline ./{name}",
                    ctx,
                ) from error
            raise
        except click.NoSuchOption as error:
            raise unknown_option(error, self, ctx) from error
        except click.BadOptionUsage as error:
            # Click leaves out which command it is about.
            error.ctx = error.ctx or ctx
            raise
        except click.BadParameter as error:
            if close := _near_choices(error):
                meant = " or ".join(map(repr, close))
                text = f"{error.message.rstrip('.')}; did you mean {meant}?"
                raise click.BadParameter(text, error.ctx, error.param, error.param_hint) from error
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Run the verb; a path that does not exist is answered with those near to it."""
        try:
            if self._stays or not sys.stderr.isatty():
                return super().invoke(ctx)
            with drawn_progress():
                return super().invoke(ctx)
        except NotFoundError as error:
            for path in _arguments(self, ctx):
                if str(error).startswith(f"{path}: no such ") and (close := near_paths(path)):
                    meant = " or ".join(close)
                    raise type(error)(f"{error}; did you mean {meant}?") from error
            raise


def unknown_option(
    error: click.NoSuchOption, command: click.Command, ctx: click.Context, hint: str = ""
) -> click.UsageError:
    """The error of Click, with the options that are near but for their dashes, else a hint."""
    options = {one.lstrip("-"): one for own in command.get_params(ctx) for one in own.opts}
    close = [options[one] for one in near(error.option_name.lstrip("-"), options)]
    meant = f"; did you mean {' or '.join(close)}?" if close else hint
    return click.UsageError(f"No such option {error.option_name!r}{meant}", ctx)


def _near_choices(error: click.BadParameter) -> list[str]:
    """The choices of an option that are near to what was given."""
    kind = None if error.param is None else error.param.type
    given = _NO_CHOICE.match(error.message)
    return (
        near(given[1], map(str, kind.choices)) if given and isinstance(kind, click.Choice) else []
    )


def write_lines(formatter: click.HelpFormatter, title: str, lines: Iterable[str]) -> None:
    """A section of the help whose lines are as they are."""
    with formatter.section(title):
        for line in lines:
            formatter.write(f"{'':{formatter.current_indent}}{line}".rstrip() + "\n")


def is_place(word: str) -> bool:
    """Whether a word names what a profile may be in: a file, a directory, a URL, standard input."""
    return word == "-" or bool(_URL.match(word)) or os.path.lexists(word)


def near_paths(path: str) -> list[str]:
    """What is in the directory of ``path`` under a name near to its own."""
    if not path or _URL.match(path):
        return []
    folder, name = os.path.split(path.rstrip("/"))
    # What is of that very name, such as a link that points nowhere, was not meant.
    try:
        with os.scandir(folder or ".") as entries:
            result = {entry.name for entry in islice(entries, _MOST_ENTRIES)}
    except (OSError, ValueError):
        return []
    return [str(Path(folder, one)) for one in near(name, sorted(result - {name}))]


def _arguments(command: click.Command, ctx: click.Context) -> Iterator[str]:
    """The texts that were given for the arguments."""
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            value = ctx.params.get(parameter.name or "")
            # Several PATHs are one text.
            value = getattr(value, "each", value)
            yield from (value if isinstance(value, tuple) else (str(value),))
