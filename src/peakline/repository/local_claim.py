"""A session's directory on a local file system that nobody else may fill meanwhile."""

# As in `peakline.repository.local`.
# ruff: noqa: D102, PTH103, PTH118, PTH208

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, BinaryIO

from peakline.repository.cleaning import MAKING, TEMPORARY, is_in_the_making, lock, settle
from peakline.repository.store import FileEntry, Taken, Unwritable
from peakline.repository.writing import publish

if TYPE_CHECKING:
    from peakline.repository.confined import Confinement

_ATTEMPTS = 100


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unwritable(error.strerror or str(error)) from error


class LocalClaim:
    """A directory under this process's lock.

    The lock is ``flock`` on the directory itself: it needs no file, two claims in one process
    exclude each other as those of two processes do, and it ends with the process however that
    ends. Where a file system has no such lock, only a directory that did not exist can be
    claimed: ``mkdir`` decides between two.
    """

    def __init__(self, path: str, confinement: Confinement | None = None) -> None:
        self._path = path
        above, self._name = os.path.split(path)
        try:
            self._parent = _made_directory(above, confinement)
            try:
                self._claim()
            except BaseException:
                os.close(self._parent)
                raise
        except FileExistsError:
            raise Unwritable("a file is where its directory should be") from None
        except OSError as error:
            raise Unwritable(error.strerror or str(error)) from None

    def _claim(self) -> None:
        for _ in range(_ATTEMPTS):
            if self._is_claimed():
                return
        raise Taken("others make and remove it all the time")

    def _is_claimed(self) -> bool:
        """One attempt; False when the directory was removed in the middle of it."""
        try:
            os.mkdir(self._name, MAKING, dir_fd=self._parent)
            self._made = True
        except FileExistsError:
            self._made = False
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self._directory = os.open(self._name, flags, dir_fd=self._parent)
        except FileNotFoundError:
            return False
        except OSError as error:
            if self._made:
                raise
            raise Taken("there is something else of that name") from error
        try:
            if not self._lock() or not self._still_there():
                os.close(self._directory)
                return False
            self._look_inside()
            self._made |= is_in_the_making(self._directory)  # by one who was killed
        except BaseException:
            os.close(self._directory)
            raise
        if self._made:
            with suppress(OSError):
                os.fsync(self._parent)
        return True

    def _lock(self) -> bool:
        """Lock the directory, or be sure that it is new; Taken otherwise.

        False where a new one is locked by who is quicker, or any for a moment by who removes what
        killed writers left.
        """
        import fcntl

        try:
            fcntl.flock(self._directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if self._made or lock(self._directory, shared=True):
                return False
            raise Taken("it is being written at this moment") from None
        except OSError:
            if not self._made:
                raise Taken("the directory is there, and its file system has no locks") from None
        return True

    def _still_there(self) -> bool:
        try:
            now = os.stat(self._name, dir_fd=self._parent, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return os.path.samestat(now, os.fstat(self._directory))

    def _look_inside(self) -> None:
        """Only what a killed writer left may be here: nothing, or its temporary files."""
        names = os.listdir(self._directory)
        if not all(TEMPORARY.fullmatch(name) for name in names):
            raise Taken("it has files already")
        for name in names:
            os.unlink(name, dir_fd=self._directory)

    def write(self, name: str, write: Callable[[BinaryIO], object]) -> FileEntry:
        with _writing():
            try:
                publish(self._directory, name, write)
            except FileExistsError:
                raise Taken("the file exists") from None
        return FileEntry(name, os.path.join(self._path, name))

    def names(self) -> list[str]:
        return os.listdir(self._directory)

    def remove(self, name: str) -> None:
        with _writing():
            os.unlink(name, dir_fd=self._directory)

    def release(self) -> None:
        if self._made:
            try:
                if self._still_there():
                    os.rmdir(self._name, dir_fd=self._parent)
            except OSError:  # it has files
                settle(self._directory)
        os.close(self._directory)
        os.close(self._parent)


def _made_directory(path: str, confinement: Confinement | None) -> int:
    """The directory ``path``, which is made where it is not, open."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    if confinement is None:
        os.makedirs(path, exist_ok=True)
        return os.open(path, flags)
    confinement.make_directories(path)
    return confinement.open(path, flags)
