"""Where an answer goes: standard output, or a file that appears only when it is whole."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import BinaryIO

from peakline.errors import UsageError

__all__ = ["deliver", "print_json"]


def print_json(document: object) -> None:
    """One JSON document on standard output; NaN and infinity, which JSON lacks, are refused."""
    import json

    print(json.dumps(document, indent=2, allow_nan=False))


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
