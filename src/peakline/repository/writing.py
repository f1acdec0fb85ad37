"""Writing a file so that its name never stands for half a file."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from peakline.errors import UsageError

__all__ = ["write_atomically"]


def write_atomically(
    path: str, write: Callable[[BinaryIO], object], *, replace: bool = False
) -> None:
    """Create ``path`` with what ``write`` puts into the stream it is given.

    The bytes go to a temporary file beside it, which gets the name once it is whole and on the
    disk; when ``write`` raises, nothing is left behind. Raises UsageError when ``path`` exists
    and ``replace`` is false, or when it cannot be written.
    """
    place = Path(path)
    if place.is_dir():
        raise UsageError(f"{path}: is a directory")
    if not replace:
        _refuse_existing(place)
    temporary = place.with_name(f".{place.name}.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        if replace:
            temporary.replace(place)
        else:
            _name(temporary, place)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _name(temporary: Path, place: Path) -> None:
    """Give the file its name unless the name was taken meanwhile."""
    try:
        place.hardlink_to(temporary)
    except FileExistsError:
        _refuse_existing(place)
    except OSError:
        # The file system knows no links: a rename, which would replace, after a last look.
        _refuse_existing(place)
        temporary.replace(place)


def _refuse_existing(place: Path) -> None:
    if os.path.lexists(place):
        raise UsageError(f"{place}: exists; use --force to replace it")
