"""Log directories on a local file system, by the operating system's own calls.

A session's directory is claimed, so that nobody else may fill it meanwhile.
"""

# A listing calls the operating system thousands of times, and a Path costs more than such a call;
# the docstrings of the stores' methods are the protocol's.
# ruff: noqa: D102, PTH116, PTH118, PTH119, PTH120

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO

from peakline.deadline import check_deadline
from peakline.errors import NO_DESCRIPTOR, BusyError, ForbiddenError
from peakline.repository.cleaning import MAKING, TEMPORARY, is_in_the_making, lock, settle
from peakline.repository.names import (
    ENVIRONMENT,
    PACKAGES,
    RECORDING_SUFFIXES,
    host_of,
    recording_of,
)
from peakline.repository.store import (
    FileEntry,
    FileStatus,
    Folder,
    Kind,
    Missing,
    Outside,
    Problem,
    Taken,
    Unreadable,
    Unwritable,
)
from peakline.repository.writing import publish

if TYPE_CHECKING:
    from peakline.repository.confined import Confinement


# As in `peakline.repository.local`.
# ruff: noqa: D102, PTH103, PTH118, PTH208


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
        for attempt in range(_ATTEMPTS):
            if self._is_claimed():
                return
            # On a busy machine who is in the way may wait for a processor.
            time.sleep(min(attempt, 10) / 1000)
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
                self._unmake()
                raise
            raise Taken("there is something else of that name") from error
        try:
            if not self._lock() or not self._still_there():
                os.close(self._directory)
                return False
            self._look_inside()
            self._made |= is_in_the_making(self._directory)  # by one who was killed
        except BaseException:
            if self._made:
                self._unmake()
            os.close(self._directory)
            raise
        if self._made:
            with suppress(OSError):
                os.fsync(self._parent)
        return True

    def _unmake(self) -> None:
        """Take a new directory away that cannot be claimed, as no descriptor is left for it."""
        with suppress(OSError):
            os.rmdir(self._name, dir_fd=self._parent)

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


_SETTLED_NS = 2_000_000_000
"""A directory's time of change may stay the same for that long while files come and go."""

_MOST_KNOWN = 100_000
_PLUGINS, _PROFILE = "plugins", "profile"


_Change = tuple[int, ...]


def _change(status: os.stat_result) -> _Change:
    """What is another one when a file was added to a directory, or removed."""
    return status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns


def _remember(known: dict[str, _Change], path: str, change: _Change, *, holds: bool) -> None:
    """That the directory holds a profile since that change, where nothing can come after it."""
    if not holds or time.time_ns() - max(change[2:]) <= _SETTLED_NS:
        known.pop(path, None)
        return
    if len(known) >= _MOST_KNOWN:
        known.clear()
    known[path] = change


def _check_full(error: OSError) -> None:
    """Raise BusyError where as many files are open as may be: nothing is wrong with this one."""
    if error.errno in NO_DESCRIPTOR:
        raise BusyError(f"nothing can be read now: {error.strerror}") from None


def _unreadable(error: OSError) -> Unreadable:
    gone = isinstance(error, (FileNotFoundError, NotADirectoryError))
    return (Missing if gone else Unreadable)(error.strerror or str(error))


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        _check_full(error)
        raise _unreadable(error) from None
    except ForbiddenError as error:
        raise Outside(str(error)) from None


def _status(path: str, confinement: Confinement | None) -> os.stat_result:
    return os.stat(path) if confinement is None else confinement.status(path)


def _stat(path: str, confinement: Confinement | None) -> os.stat_result:
    with _reading():
        return _status(path, confinement)


@contextmanager
def _entries(path: str, confinement: Confinement | None) -> Iterator[Iterator[os.DirEntry[str]]]:
    """What is in a directory; Unreadable or Missing."""
    with _entries_and_place(path, confinement) as (entries, _):
        yield entries


@contextmanager
def _entries_and_place(
    path: str, confinement: Confinement | None
) -> Iterator[tuple[Iterator[os.DirEntry[str]], int | None]]:
    """And the directory's descriptor, where it is confined."""
    with _reading():
        if confinement is None:
            with os.scandir(path) as entries:
                yield entries, None
        else:
            with confinement.directory(path) as descriptor, os.scandir(descriptor) as entries:
                yield entries, descriptor


def _holds_profile(place: int, name: str) -> bool:
    """Whether a directory in the open one ``place``, and no link, has a file of a host's name."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, dir_fd=place)
        try:
            with os.scandir(descriptor) as entries:
                return any(host_of(entry.name) and entry.is_file() for entry in entries)
        finally:
            os.close(descriptor)
    except OSError as error:
        _check_full(error)
        return False  # who asks for it learns why


@dataclass(frozen=True, slots=True)
class LocalFolder:
    """A directory. ``known`` remembers the change since which one is known to hold a profile.

    ``listed`` is its `stamp` as the listing saw it that found it: of ten thousand sessions, to look
    at each again takes most of a second.
    """

    name: str
    path: str
    known: dict[str, _Change] = field(compare=False, repr=False)
    confinement: Confinement | None = field(default=None, compare=False, repr=False)
    listed: _Change | None = field(default=None, compare=False, repr=False)

    def files(self) -> Iterator[FileEntry]:
        with _entries(self.path, self.confinement) as entries:
            for entry in entries:
                try:
                    is_file = entry.is_file()
                except OSError:
                    is_file = True  # a link that cannot be followed: opening it says why
                if is_file:
                    yield FileEntry(entry.name, os.path.join(self.path, entry.name))

    def holds_profile(self) -> bool:
        change = self.listed_stamp()
        if self.known.get(self.path) == change:
            return True
        holds = any(host_of(entry.name) for entry in self.files())
        _remember(self.known, self.path, change, holds=holds)
        return holds

    def holds_recording(self) -> bool:
        return any(recording_of(entry.name) for entry in self.files())

    def stamp(self) -> _Change:
        return _change(_stat(self.path, self.confinement))

    def listed_stamp(self) -> _Change:
        return self.stamp() if self.listed is None else self.listed

    def listed_modified(self) -> float:
        return self.modified() if self.listed is None else self.listed[2] / 1e9

    def modified(self) -> float:
        try:
            return _stat(self.path, self.confinement).st_mtime
        except Unreadable:
            return 0.0


class LocalStore:
    """The local file system, or what of it lies inside of ``confinement``. It remembers which
    directories it has seen a profile in; as long as one does not change, a listing with ``look``
    gives the same object again.
    """

    def __init__(self, confinement: Confinement | None = None) -> None:
        self._confinement = confinement
        self._known: dict[str, _Change] = {}
        self._last: tuple[str, dict[str, LocalFolder]] = ("", {})

    def join(self, path: str, *names: str) -> str:
        return os.path.join(path, *names)

    def kind(self, path: str) -> Kind | None:
        try:
            with _reading():
                try:
                    mode = _status(path, self._confinement).st_mode
                except FileNotFoundError:
                    return None
        except ValueError as error:
            raise Unreadable(str(error)) from None
        if stat.S_ISREG(mode):
            return "file"
        return "directory" if stat.S_ISDIR(mode) else "other"

    def folder(self, path: str) -> Folder:
        return self._folder(os.path.basename(path), path)

    def folders(
        self, path: str, *, look: bool = False, own: bool = False
    ) -> Iterator[Folder | Problem]:
        has_recording = False
        before = self._last[1] if look and self._last[0] == path else {}
        now: dict[str, LocalFolder] = {}
        base = os.path.join(path, "")
        with _entries_and_place(path, self._confinement) as (entries, descriptor):
            for entry in entries:
                name = entry.name
                if name[0] == ".":
                    continue
                place = f"{base}{name}"
                try:
                    if not entry.is_dir():
                        # In the listing that is read anyway: who looks again reads all names twice.
                        has_recording |= name.endswith(RECORDING_SUFFIXES) and _is_recording(entry)
                        continue
                    listed = None
                    if not entry.is_symlink():
                        listed = _change(entry.stat(follow_symlinks=False))
                        known = before.get(name)
                        if known is not None and known.listed == listed:
                            now[name] = known
                            yield known
                            continue
                        if look and descriptor is not None and self._known.get(place) != listed:
                            # By the directory's own descriptor: a tenth of the calls that it takes
                            # by its path.
                            holds = _holds_profile(descriptor, name)
                            _remember(self._known, place, listed, holds=holds)
                    folder = self._folder(name, place, listed)
                    if look and listed is not None and self._known.get(place) == listed:
                        now[name] = folder
                    yield folder
                except OSError as error:
                    yield Problem(name, place, str(_unreadable(error)))
        if own and has_recording:
            listed = _change(self._stat(path))
            itself = before.get(os.curdir)
            if itself is None or itself.listed != listed:
                itself = self._folder(_name_of(path), path, listed)
            now[os.curdir] = itself
            yield itself
        if look:
            self._last = (path, now)

    def nested(self, logdir: str) -> Iterator[tuple[str, Folder | Problem]]:
        """Links are followed, each directory is looked at once, installed programs are not."""
        seen: set[tuple[int, int]] = set()
        waiting: list[Folder] = [self.folder(logdir)]
        while waiting:
            check_deadline()
            place = waiting.pop()
            run = os.path.relpath(place.path, logdir)
            if run == os.curdir:
                run = ""
            try:
                status = self._stat(place.path)
                if (status.st_dev, status.st_ino) in seen:
                    continue
                seen.add((status.st_dev, status.st_ino))
                inside = list(self.folders(place.path, own=True))
            except Unreadable as error:
                yield os.path.dirname(run), Problem(place.name, place.path, str(error))
                continue
            for result in inside:
                if isinstance(result, Problem):
                    yield run, result
                elif result.path == place.path:
                    yield os.path.dirname(run), result
                elif result.name != _PLUGINS:
                    if not self._is_installed(result):
                        waiting.append(result)
                elif run:
                    with suppress(Missing):
                        for folder in self.folders(self.join(result.path, _PROFILE)):
                            yield run, folder

    def tree(self, path: str, depth: int) -> Iterator[tuple[str, FileEntry]]:
        """Links are followed, each directory is looked at once, installed programs are not."""
        seen: set[tuple[int, int]] = set()
        waiting: list[tuple[str, Folder, int]] = [("", self.folder(path), 0)]
        while waiting:
            check_deadline()
            run, place, above = waiting.pop()
            with suppress(Unreadable):
                status = self._stat(place.path)
                if (status.st_dev, status.st_ino) in seen:
                    continue
                seen.add((status.st_dev, status.st_ino))
                for entry in place.files():
                    yield f"{run}{entry.name}", entry
                if above < depth:
                    waiting += (
                        (f"{run}{inside.name}/", inside, above + 1)
                        for inside in self.folders(place.path)
                        if isinstance(inside, LocalFolder) and not self._is_installed(inside)
                    )

    def _folder(self, name: str, path: str, listed: _Change | None = None) -> LocalFolder:
        return LocalFolder(name, path, self._known, self._confinement, listed)

    def _stat(self, path: str) -> os.stat_result:
        return _stat(path, self._confinement)

    def _is_installed(self, folder: Folder) -> bool:
        """Whether the directory is one of installed programs, not of anybody's runs."""
        if folder.name in PACKAGES:
            return True
        if self._confinement is None:
            return any(os.path.lexists(os.path.join(folder.path, name)) for name in ENVIRONMENT)
        with suppress(Unreadable), _reading(), self._confinement.directory(folder.path) as place:
            return any(_is_in(place, name) for name in ENVIRONMENT)
        return False

    def stamp(self, path: str) -> Hashable:
        status = self._stat(path)
        return path, status.st_size, status.st_mtime_ns, status.st_ino

    def status(self, path: str) -> FileStatus:
        status = self._stat(path)
        return FileStatus(status.st_size, status.st_mtime)

    def claim(self, path: str) -> LocalClaim:
        return LocalClaim(path, self._confinement)


def _is_recording(entry: os.DirEntry[str]) -> bool:
    return recording_of(entry.name) is not None and entry.is_file()


def _name_of(path: str) -> str:
    """What a directory is called, also where its path is ``.``."""
    name = os.path.basename(path)
    return (
        name if name not in {"", os.curdir, os.pardir} else os.path.basename(os.path.realpath(path))
    )


def _is_in(directory: int, name: str) -> bool:
    """Whether an open directory has something of that name, as `os.path.lexists`."""
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except OSError:
        return False
    return True
