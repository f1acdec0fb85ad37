"""Writing a file, or a folder of them, so that its name never stands for half a file."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import stat
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import BinaryIO

from peakline.errors import ExistsError, OutputError, UsageError
from peakline.repository.cleaning import lock, remove_temporary, temporary_name

_NO_ROOM = frozenset(
    (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE, errno.EMFILE, errno.ENFILE)
)
"""What the system says when a file that may be written cannot take more, or be open too."""

_OPEN_FILES = "/proc/self/fd"
_NOT_UNNAMED = {errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT, errno.ENOSYS}
_MOST_LINKS = 40  # as many as Linux follows
_FILE_MODE = 0o666  # less what the process's umask takes away, as for any new file


def check_output(path: str, *, replace: bool) -> None:
    """Raises what `write_atomically` would for the name ``path`` alone, before any work is done.

    ExistsError for a file that is there, unless ``replace``; UsageError for a directory or socket.
    """
    _place_of(path, replace=replace)


def write_atomically(
    path: str, write: Callable[[BinaryIO], object], *, replace: bool = False
) -> None:
    """Create ``path`` with what ``write`` puts into the stream it is given.

    The file gets its name once it is whole and on the disk; when ``write`` raises or the process
    is killed, nothing is left behind and a file that was there is as it was. Only a regular file
    is ever replaced: a link stays and the file that it leads to is replaced, and a device, a pipe
    or an open file (``/dev/stdout``, ``/dev/fd/3``) is written to. Raises ExistsError when
    ``path`` exists and ``replace`` is false, UsageError when it cannot be such a name (a
    directory, a socket, in no directory, not allowed), OutputError when the disk is full or
    nobody reads the pipe.
    """
    try:
        place, descriptor = _place_of(path, replace=replace)
        if descriptor is not None:
            with os.fdopen(os.dup(descriptor), "wb") as stream:
                write(stream)
        elif place.exists() and not place.is_file():
            # Never cut: a regular file may have taken the name since the look at it.
            with os.fdopen(os.open(place, os.O_WRONLY | os.O_CLOEXEC), "wb") as stream:
                if stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
                    raise UsageError(f"{path}: another file took the name meanwhile; try again")
                write(stream)
        else:
            remove_left(place.parent)
            directory = os.open(place.parent, os.O_DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY))
            try:
                publish(directory, place.name, write, replace=replace)
            finally:
                os.close(directory)
            sync_directory(str(place.parent))
    except FileExistsError:
        raise _exists(path) from None
    except OSError as error:
        raise unwritable(path, error) from error


def _place_of(path: str, *, replace: bool) -> tuple[Path, int | None]:
    """Where the content of ``path`` goes, and the descriptor where it is one of our open files."""
    place = Path(path)
    descriptor = _own_descriptor(place)
    if descriptor is not None:
        return place, descriptor
    try:
        mode = place.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG
    except OSError as error:
        raise unwritable(path, error) from error
    if stat.S_ISDIR(mode):
        raise UsageError(f"{path}: is a directory")
    if stat.S_ISSOCK(mode):
        raise UsageError(f"{path}: is a socket")
    if stat.S_ISREG(mode):
        if replace:
            place = Path(os.path.realpath(place))
        elif os.path.lexists(place):  # a link that takes the name from now on is not followed
            raise _exists(path)
    return place, None


def _own_descriptor(place: Path) -> int | None:
    """The number of the open file that ``place`` is a name of: 1 for ``/dev/stdout``.

    Its name may lead to a regular file, which the shell has opened and may be appending to.
    """
    try:
        for _ in range(_MOST_LINKS):
            if not place.is_symlink():
                return None
            if os.path.realpath(place.parent) == os.path.realpath(_OPEN_FILES):
                return int(place.name)
            place = place.parent / place.readlink()
    except OSError:
        return None
    return None


def unwritable(path: str, error: OSError) -> OutputError | UsageError:
    """What to raise for ``error``: OutputError where another time or place has room for the same.

    UsageError where ``path`` is a wrong one.
    """
    kind = OutputError if error.errno in _NO_ROOM else UsageError
    return kind(f"{path}: cannot be written: {error.strerror or error}")


def _exists(path: str) -> ExistsError:
    return ExistsError(f"{path}: exists; use --force to replace it")


def publish(
    directory: int, name: str, write: Callable[[BinaryIO], object], *, replace: bool = False
) -> None:
    """Write the file ``name`` in the open ``directory``; it appears when it is on the disk.

    ``write`` may read again what it has written: nobody else has the file until then.
    Raises FileExistsError when the name is taken and not ``replace``, OSError when the disk is
    full or the directory cannot be written.
    """
    unnamed = _unnamed_file(directory)
    if unnamed is None:
        with _temporary_file(directory) as (stream, temporary):
            _fill(stream, write)
            _name(directory, temporary, name, replace=replace)
    else:
        with os.fdopen(unnamed, "w+b") as stream:
            _fill(stream, write)
            _link(directory, stream.fileno(), name, replace=replace)
    with suppress(OSError):  # a descriptor that is only a path cannot be synchronised
        os.fsync(directory)


def remove_left(folder: Path) -> None:
    """Remove what killed writers left in a folder, where it can be read."""
    with suppress(OSError):
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            remove_temporary(directory)
        finally:
            os.close(directory)


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
        return os.open(".", flag | os.O_RDWR | os.O_CLOEXEC, _FILE_MODE, dir_fd=directory)
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
    lock(file)
    temporary = temporary_name()
    os.link(source, temporary, dst_dir_fd=directory, follow_symlinks=True)
    try:
        os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        os.unlink(temporary, dir_fd=directory)
        raise


@contextmanager
def _temporary_file(directory: int) -> Iterator[tuple[BinaryIO, str]]:
    """A new file under a temporary name, which is gone at the end."""
    name, file = _locked_file(directory)
    try:
        with os.fdopen(file, "w+b") as stream:
            yield stream, name
    finally:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=directory)


def _locked_file(directory: int) -> tuple[str, int]:
    """A new file that nobody takes for one that was left."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    while True:
        name = temporary_name()
        file = os.open(name, flags, _FILE_MODE, dir_fd=directory)
        # Who looks for what was left may have locked it first, and will have removed it then.
        lock(file, wait=True)
        if os.fstat(file).st_nlink:
            return name, file
        os.close(file)


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


@contextmanager
def whole_folder(output: str, stale: Collection[str], *, force: bool) -> Iterator[Path]:
    """A folder to write into, which becomes ``output`` when the block ends well.

    A new folder is made beside ``output`` and gets its name; into one that is there the files are
    moved, and with ``force``, which one with files needs, replace those of the same names. Files
    named in ``stale`` that were not written are removed, others stay. When the block raises, or
    the process gets SIGTERM, ``output`` is as it was.
    Raises ExistsError for a folder with files without ``force``, UsageError for what is no folder,
    cannot be written, or has something else than a file under a name to replace, OutputError when
    the disk is full.
    """
    place = Path(output)
    if place.exists() and not place.is_dir():
        raise UsageError(f"{output}: is no folder")
    is_there = place.is_dir()
    if is_there and not force and any(place.iterdir()):
        raise ExistsError(f"{output}: is not empty; use --force to replace files in it")
    # In a folder that is there, which may be a file system of its own, files can be moved.
    parent = place if is_there else place.parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        remove_left(parent)
        temporary, descriptor = _locked_folder(parent)
    except OSError as error:
        raise unwritable(output, error) from error
    try:
        with _ended_by_sigterm():
            yield temporary
            try:
                if is_there:
                    _move(temporary, place, stale)
                else:
                    temporary.rename(place)
            except OSError as error:
                raise unwritable(output, error) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        os.close(descriptor)


def _locked_folder(parent: Path) -> tuple[Path, int]:
    """A new folder that nobody takes for one that was left."""
    while True:
        folder = parent / temporary_name()
        folder.mkdir()
        with suppress(FileNotFoundError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            # Who looks for what was left may have locked it first, and will have removed it then.
            lock(descriptor, wait=True)
            if folder.exists():
                return folder, descriptor
            os.close(descriptor)


def _move(source: Path, target: Path, stale: Collection[str]) -> None:
    files = {path.name for path in source.iterdir()}
    for name in sorted(files.union(stale)):
        place = target / name
        if place.is_symlink() or (place.exists() and not place.is_file()):
            raise UsageError(f"{place}: is no regular file, and is not replaced")
    for name in stale:
        if name not in files:
            (target / name).unlink(missing_ok=True)
    for name in sorted(files):
        (source / name).replace(target / name)


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Within the block SIGTERM ends the process as an exception does, so that it is cleaned up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
