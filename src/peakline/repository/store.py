"""Where log directories lie: what the layout needs of a file system, and who offers it.

`Store` is the plug-in point. `peakline.repository.local` implements it with the operating
system's calls, `peakline.repository.remote` over any fsspec file system.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO, Literal, NamedTuple, Protocol

from peakline.errors import ForbiddenError, InputError, NotFoundError

Kind = Literal["file", "directory", "other"]


class Unreadable(Exception):
    """A place cannot be read: ``str()`` is the reason, without the place."""


class Missing(Unreadable):
    """There is nothing at the place."""


class Outside(Unreadable):
    """A link leads out of where the caller may read."""


@contextmanager
def reading(what: str) -> Iterator[None]:
    """What a store raises in the block, as NotFoundError or InputError about ``what``, or as
    ForbiddenError.
    """
    try:
        yield
    except Missing:
        raise NotFoundError(f"{what} is gone") from None
    except Outside as error:
        raise ForbiddenError(str(error)) from None
    except Unreadable as error:
        raise InputError(f"{what} cannot be read: {error}") from error


class Unwritable(Exception):
    """A file or directory cannot be written: ``str()`` is the reason, without the place."""


class Taken(Exception):
    """The name belongs to somebody else already: ``str()`` is how."""


class FileStatus(NamedTuple):
    """How large a file is in bytes, and when it last changed, in seconds since the epoch.

    None is what the file system does not give.
    """

    bytes: int | None
    modified: float | None


class FileEntry(NamedTuple):
    """A file of a folder. ``stamp`` identifies its content where the listing gives it.

    So does ``status``: it is None where the file has to be looked at.
    """

    name: str
    path: str
    stamp: Hashable | None = None
    status: FileStatus | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that was left out of a listing: its name, its path, and why."""

    name: str
    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"


class Folder(Protocol):
    """A directory that may be a session. A link counts as what it points to.

    Locally every answer is read from the disk anew; of a URL it is answered from the one
    listing that found the folder.
    """

    @property
    def name(self) -> str:
        """The last part of the path."""

    @property
    def path(self) -> str:
        """The directory, a URL where it is remote."""

    def files(self) -> Iterator[FileEntry]:
        """The files, in no order; Unreadable or Missing."""

    def holds_profile(self) -> bool:
        """Whether it has a host's profile; Unreadable or Missing."""

    def holds_recording(self) -> bool:
        """Whether it has a recording of PyTorch; Unreadable or Missing."""

    def stamp(self) -> Hashable:
        """Changes when a file is added or removed; Unreadable or Missing."""

    def modified(self) -> float:
        """When it last changed, in seconds since the epoch."""

    def listed_stamp(self) -> Hashable:
        """`stamp` as the listing saw it that found the folder, which costs nothing."""

    def listed_modified(self) -> float:
        """And `modified`."""


class Claim(Protocol):
    """A session's directory that nobody else may fill meanwhile."""

    def write(self, name: str, write: Callable[[BinaryIO], object]) -> FileEntry:
        """A new file, under its name only when it is whole; Taken, Unwritable."""

    def names(self) -> Iterable[str]:
        """The names of the files that are there now."""

    def remove(self, name: str) -> None:
        """Take away a file that was written here; Unwritable."""

    def release(self) -> None:
        """Let go of it; a directory that was made for nothing is removed."""


class Store(Protocol):
    """A file system, as far as log directories need it."""

    def join(self, path: str, *names: str) -> str:
        """The path of something inside ``path``."""

    def kind(self, path: str) -> Kind | None:
        """What ``path`` is, None where there is nothing; Unreadable, or Missing inside a file."""

    def folder(self, path: str) -> Folder:
        """The directory ``path``, which need not exist."""

    def folders(
        self, path: str, *, look: bool = False, own: bool = False
    ) -> Iterable[Folder | Problem]:
        """The directories in ``path`` with no dot at their beginning; Unreadable or Missing.

        With ``own`` the last is ``path`` itself, if recordings of PyTorch lie in it. With ``look``
        the caller will ask each whether it holds a profile: a store that finds that out sooner
        while it lists does so.
        """

    def nested(self, logdir: str) -> Iterable[tuple[str, Folder | Problem]]:
        """The folders of ``<logdir>/RUN/plugins/profile`` for every RUN, and every folder in which
        recordings of PyTorch lie, each with the run that it is in; Unreadable.
        """

    def tree(self, path: str, depth: int) -> Iterable[tuple[str, FileEntry]]:
        """The files in ``path`` and in the folders below it, ``depth`` of them inside one another,
        each with its path below ``path``; folders that cannot be read have none.
        """

    def stamp(self, path: str) -> Hashable:
        """What identifies the content of the file ``path``; Unreadable or Missing."""

    def status(self, path: str) -> FileStatus:
        """The size of the file ``path`` and when it last changed; Unreadable or Missing."""

    def claim(self, path: str) -> Claim:
        """Make the directory ``path``, or take an empty one; Taken, Unwritable."""
