"""Where an answer goes: standard output, or a file that appears only when it is whole."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, BinaryIO

from peakline.errors import UsageError
from peakline.text import one_line

if TYPE_CHECKING:
    from peakline.tables import ProfileWarning


def print_json(document: object) -> None:
    """One JSON document on standard output; NaN and infinity, which JSON lacks, are refused."""
    import json

    print(json.dumps(document, indent=2, allow_nan=False))


def print_warnings(warnings: Iterable[ProfileWarning], *, besides: str = "") -> None:
    """Say on standard error what was lost or guessed; the kind ``besides`` was said already."""
    for kind, count, detail in warnings:
        if kind != besides:
            print(f"peakline: warning: {kind} ({count}): {one_line(detail)}", file=sys.stderr)


def deliver(
    write: Callable[[BinaryIO], object], output: str | None, *, force: bool, source: str
) -> None:
    """Let ``write`` fill standard output (``output`` None or ``-``) or the file ``output``.

    Raises UsageError when the file exists and not ``force``, and always when it is the
    ``source`` that the answer was read from.
    """
    if output is None or output == "-":
        sys.stdout.flush()
        write(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    from pathlib import Path

    from peakline.repository import write_atomically

    target = Path(output)
    if target.exists() and Path(source).exists() and target.samefile(source):
        raise UsageError(f"{output}: is the profile itself; choose another name")
    write_atomically(output, write, replace=force)
