"""Where an answer goes: standard output, or a file that appears only when it is whole."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, BinaryIO, cast

from peakline import repository
from peakline.errors import UsageError
from peakline.render.terminal.layout import Text, show
from peakline.safe_text import CommandError, document_on, one_line
from peakline.text import counted

if TYPE_CHECKING:
    from peakline.tables import ProfileWarning


def print_json(document: object) -> None:
    """One JSON document on standard output; NaN and infinity, which JSON lacks, are refused."""
    import json

    print(json.dumps(document, indent=2, allow_nan=False))


def say(text: str) -> None:
    """What a person should know besides the answer: ``peakline: text`` on standard error, one line
    where that is no terminal.
    """
    show([Text(f"peakline: {text}", hang=2, is_whole=True)], sys.stderr)


def print_warnings(warnings: Iterable[ProfileWarning], *, besides: str = "") -> None:
    """Say on standard error, after the answer, what was lost or guessed, each once; the kind
    ``besides`` was said already. What nobody can do anything about is in the table ``warnings``.
    """
    counts: dict[tuple[str, str], int] = {}
    for kind, count, detail in warnings:
        if kind != besides:
            counts[kind, detail] = counts.get((kind, detail), 0) + count
    if not counts:
        return
    from peakline.tables.warning_kinds import KINDS

    lines = []
    for (code, detail), count in counts.items():
        known = KINDS.get(code)
        if known is None or known.is_printed:
            is_counted = known is not None and known.is_counted
            text = one_line(counted_text(detail, count) if is_counted else times(detail, count))
            lines.append(Text(f"peakline: warning: {text} [{code}]", "yellow", 2, is_whole=True))
    sys.stdout.flush()
    show(lines, sys.stderr)


def print_left_out(problems: Iterable[object]) -> None:
    """Say on standard error, after the answer, what it is without."""
    sys.stdout.flush()
    lines = [f"peakline: warning: left out: {one}" for one in problems]
    show([Text(line, "yellow", 2, is_whole=True) for line in lines], sys.stderr)


def counted_text(detail: str, count: int) -> str:
    """``3 records without a time``: the count before a noun in the plural, of which one is one.

    What comes before a colon at the begin is what it is about, such as an allocator.
    """
    about, colon, said = detail.partition(": ")
    if not colon or about.count(" ") > 1:
        about, colon, said = "", "", detail
    noun, _, rest = said.partition(" ")
    if count == 1:
        noun = f"{noun[:-3]}y" if noun.endswith("ies") else noun.removesuffix("s")
        for several, one in _ONE.items():
            rest = rest.replace(several, one, 1)
    return f"{about}{colon}{count:,} {noun} {rest}".rstrip()


_ONE = {
    "that match ": "that matches ",
    "that begin ": "that begins ",
    "which are ": "which is ",
    "that are ": "that is ",
    "are left out": "is left out",
}
"""Of one thing the verb is another."""


def times(detail: str, count: int) -> str:
    """A sentence, and how often it is so where that is more than once."""
    return detail if count == 1 else f"{detail} ({count:,} times)"


def deliver(
    write: Callable[[BinaryIO], object],
    output: str | None,
    *,
    force: bool,
    source: str | Iterable[str],
    is_text: bool,
) -> None:
    """Let ``write`` fill standard output (``output`` None or ``-``) or the file ``output``.

    Raises UsageError when the file exists and not ``force``, always when it is a ``source`` that
    the answer was read from, and where the log of a job would obey an answer that is no text.
    """
    if output is None or output == "-":
        sys.stdout.flush()
        with document_on(sys.stdout, is_text=is_text) as stream:
            try:
                write(cast("BinaryIO", stream))
            except CommandError as error:
                raise UsageError(
                    "a name in this answer is a command to what reads a job's log, and the answer "
                    "is no text; write it to a file with -o"
                ) from error
        sys.stdout.buffer.flush()
        if changes := getattr(stream, "changes", 0):
            say(
                f"warning: {counted(changes, 'character')} that a terminal or the log of a job "
                "obeys were written as escapes (\\u005b); a file named with -o has them as they are"
            )
        return
    from pathlib import Path

    target = Path(output)
    sources = [source] if isinstance(source, str) else source
    if target.exists() and any(Path(one).exists() and target.samefile(one) for one in sources):
        raise UsageError(f"{output}: is the profile itself; choose another name")
    repository.write_atomically(output, write, replace=force)
