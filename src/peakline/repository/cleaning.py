"""What a killed process left, not what a living one is making: only that is removed.

Two things are Peakline's beyond doubt. A name that matches `TEMPORARY` is that of a file or folder
that has not got its own yet. A session's directory has the sticky bit, `MAKING`, from the call that
makes it until it is done: nobody else sets it there, and it needs no further file.

Who makes either holds ``flock`` on it, which ends with the process however that ends; where a file
system has no such lock nothing is removed. Who removes holds a shared one: a maker that finds it
locked so knows that it will be free in a moment. Everything is done in an open directory, by names
in it; no link is followed, and what belongs to another user stays.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from peakline.errors import ForbiddenError

if TYPE_CHECKING:
    from peakline.repository.confined import Confinement

TEMPORARY = re.compile(r"\.peakline\.[0-9a-f]{16}")
"""The name of what is being written where it cannot be without a name."""

MAKING = 0o1777
"""The mode to make a session's directory with, less what the umask takes away."""

_OPEN = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | os.O_CLOEXEC


def temporary_name() -> str:
    """A name that nobody has, and that `remove_temporary` removes once its maker is gone."""
    return f".peakline.{os.urandom(8).hex()}"


def lock(descriptor: int, *, shared: bool = False, wait: bool = False) -> bool:
    """Lock an open file or directory, for as long as it is open; False where that cannot be.

    ``shared`` with others who lock it so; ``wait`` until nobody else has it locked.
    """
    try:
        import fcntl

        mode = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        fcntl.flock(descriptor, mode if wait else mode | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True


def is_in_the_making(descriptor: int) -> bool:
    """Whether the session in that directory was never done."""
    return bool(os.fstat(descriptor).st_mode & stat.S_ISVTX)


def settle(descriptor: int) -> None:
    """The session in that directory is done."""
    mode = os.fstat(descriptor).st_mode
    if mode & stat.S_ISVTX:
        with suppress(OSError):  # another user's, who was killed: it stays as it is
            os.fchmod(descriptor, stat.S_IMODE(mode) & ~stat.S_ISVTX)


def remove_temporary(directory: int) -> int:
    """Remove the files, and folders of files, that killed writers left in ``directory``.

    Returns how many. What cannot be removed stays.
    """
    removed = 0
    for name in _names(directory):
        if not TEMPORARY.fullmatch(name):
            continue
        with _locked(directory, name) as descriptor:
            if descriptor is not None:
                with suppress(OSError):
                    _remove(directory, name, descriptor)
                    removed += 1
    return removed


def clean(path: str, confinement: Confinement | None = None) -> int:
    """`clean_sessions` of the directory ``path``; 0 where there is none, or it cannot be read."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    try:
        directory = os.open(path, flags) if confinement is None else confinement.open(path, flags)
    except (OSError, ForbiddenError):
        return 0
    try:
        return clean_sessions(directory)
    finally:
        os.close(directory)


def clean_sessions(directory: int) -> int:
    """Remove what killed writers left in ``directory``, which holds sessions.

    Of a session that has no file its directory goes, of another only what is not whole. Returns
    of how many sessions something was left.
    """
    cleaned = 0
    for name in _names(directory):
        if name.startswith("."):
            continue
        with suppress(OSError):
            mode = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode) and mode & stat.S_ISVTX:
                cleaned += _clean_session(directory, name)
    return cleaned


def _clean_session(directory: int, name: str) -> bool:
    with _locked(directory, name) as descriptor:
        if descriptor is None or not is_in_the_making(descriptor):
            return False
        for left in _names(descriptor):
            if TEMPORARY.fullmatch(left):  # whoever writes here has the directory's lock
                os.unlink(left, dir_fd=descriptor)
        try:
            os.rmdir(name, dir_fd=directory)
        except OSError:  # it has files
            settle(descriptor)
    return True


def _remove(directory: int, name: str, descriptor: int) -> None:
    """Remove a file, or a folder with the files in it."""
    if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.unlink(name, dir_fd=directory)
        return
    for inside in _names(descriptor):
        os.unlink(inside, dir_fd=descriptor)
    os.rmdir(name, dir_fd=directory)


@contextmanager
def _locked(directory: int, name: str) -> Iterator[int | None]:
    """Have the file or directory of that name open and locked; None where somebody has it."""
    try:
        descriptor = (
            -1 if _status(directory, name) is None else os.open(name, _OPEN, dir_fd=directory)
        )
    except OSError:
        descriptor = -1
    if descriptor < 0:
        yield None
        return
    try:
        # Its maker may have given it its own name, or removed it, before it was locked here.
        now = _status(directory, name) if lock(descriptor, shared=True) else None
        is_it = now is not None and os.path.samestat(now, os.fstat(descriptor))
        yield descriptor if is_it else None
    finally:
        os.close(descriptor)


def _status(directory: int, name: str) -> os.stat_result | None:
    """Of a file or directory that is this user's."""
    try:
        result = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError:
        return None
    known = stat.S_ISREG(result.st_mode) or stat.S_ISDIR(result.st_mode)
    return result if known and result.st_uid == os.geteuid() else None


def _names(directory: int) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []
