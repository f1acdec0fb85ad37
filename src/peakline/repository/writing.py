"""Writing a file so that its name never stands for half a file."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from peakline.errors import ExistsError, UsageError

__all__ = ["TEMPORARY", "publish", "sync_directory", "write_atomically"]

TEMPORARY = re.compile(r"\.peakline\.[0-9a-f]{16}")
"""The name of a file that is being written where it cannot be without a name."""

_OPEN_FILES = "/proc/self/fd"
_NOT_UNNAMED = {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.ENOSYS}
_FILE_MODE = 0o666  # less what the process's umask takes away, as for any new file


def write_atomically(
    path: str, write: Callable[[BinaryIO], object], *, replace: bool = False
) -> None:
    """Create ``path`` with what ``write`` puts into the stream it is given.

    The file gets its name once it is whole and on the disk; when ``write`` raises or the process
    is killed, nothing is left behind. A device or a pipe is written to, not replaced. Raises
    ExistsError when ``path`` exists and ``replace`` is false, UsageError when it cannot be written.
    """
    place = Path(path)
    if place.is_dir():
        raise UsageError(f"{path}: is a directory")
    if place.is_char_device() or place.is_fifo():
        try:
            with place.open("wb") as stream:
                write(stream)
        except OSError as error:
            raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
        return
    if not replace and os.path.lexists(place):
        raise _exists(path)
    try:
        directory = os.open(place.parent, os.O_DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY))
        try:
            publish(directory, place.name, write, replace=replace)
        finally:
            os.close(directory)
        sync_directory(str(place.parent))
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"{path}: cannot be written: {reason}") from error


def _exists(path: str) -> ExistsError:
    return ExistsError(f"{path}: exists; use --force to replace it")


def publish(
    directory: int, name: str, write: Callable[[BinaryIO], object], *, replace: bool = False
) -> None:
    """Write the file ``name`` in the open ``directory``; it appears when it is on the disk.

    Raises FileExistsError when the name is taken and not ``replace``, OSError when the disk is
    full or the directory cannot be written.
    """
    unnamed = _unnamed_file(directory)
    if unnamed is None:
        with _temporary_file(directory) as (stream, temporary):
            _fill(stream, write)
            _name(directory, temporary, name, replace=replace)
    else:
        with os.fdopen(unnamed, "wb") as stream:
            _fill(stream, write)
            _link(directory, stream.fileno(), name, replace=replace)
    with suppress(OSError):  # a descriptor that is only a path cannot be synchronised
        os.fsync(directory)


def sync_directory(path: str) -> None:
    """Bring the names in a directory onto the disk, where the file system can."""
    with suppress(OSError):
        directory = os.open(path, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _fill(stream: BinaryIO, write: Callable[[BinaryIO], object]) -> None:
    write(stream)
    stream.flush()
    os.fsync(stream.fileno())


def _unnamed_file(directory: int) -> int | None:
    """A new file without a name, which vanishes with the process; None where there are none."""
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or not Path(_OPEN_FILES).is_dir():
        return None
    try:
        return os.open(".", flag | os.O_WRONLY | os.O_CLOEXEC, _FILE_MODE, dir_fd=directory)
    except OSError as error:
        if error.errno in _NOT_UNNAMED:
            return None
        raise


def _link(directory: int, file: int, name: str, *, replace: bool) -> None:
    """Give an unnamed file its name."""
    source = f"{_OPEN_FILES}/{file}"
    if not replace:
        os.link(source, name, dst_dir_fd=directory, follow_symlinks=True)
        return
    # A link never replaces: take any free name and rename.
    temporary = _temporary_name()
    os.link(source, temporary, dst_dir_fd=directory, follow_symlinks=True)
    try:
        os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        os.unlink(temporary, dir_fd=directory)
        raise


def _temporary_name() -> str:
    return f".peakline.{os.urandom(8).hex()}"


@contextmanager
def _temporary_file(directory: int) -> Iterator[tuple[BinaryIO, str]]:
    """A new file under a temporary name, which is gone at the end."""
    name = _temporary_name()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    file = os.open(name, flags, _FILE_MODE, dir_fd=directory)
    try:
        with os.fdopen(file, "wb") as stream:
            yield stream, name
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)


def _name(directory: int, temporary: str, name: str, *, replace: bool) -> None:
    """Give the file its name, unless the name was taken meanwhile."""
    if not replace:
        try:
            os.link(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
        except FileExistsError:
            raise
        except OSError:
            # The file system knows no links: a rename, which would replace, after a last look.
            with suppress(FileNotFoundError):
                os.stat(name, dir_fd=directory, follow_symlinks=False)
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name) from None
        else:
            return
    os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
