"""A session of a log directory, and what a listing found."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeVar

from peakline.errors import NotFoundError
from peakline.repository.files import HostFile, files_of_hosts
from peakline.repository.names import host_file_name
from peakline.repository.store import Folder, Problem, reading
from peakline.repository.stores import store_for
from peakline.suggest import there_is

if TYPE_CHECKING:
    from peakline.repository.confined import Confinement


class Entry(Protocol):
    """A directory or a file: whatever has a path."""

    @property
    def path(self) -> str:
        """Where it is."""


_E = TypeVar("_E", bound=Entry)


class Rule(Protocol):
    """Chooses those of some places (directories, files) that may be listed and read."""

    def __call__(self, entries: Iterable[_E], /) -> list[_E]:
        """Those that may, in the same order."""


@dataclass(frozen=True)
class Session:
    """One profiling session: a directory that holds the profiles of its hosts.

    ``session_id`` is the directory's name, ``name`` that of the run (``train/ID`` for a nested
    one, else the id), ``path`` the directory, a URL where it is remote. On a local file system
    the disk is read anew each time, a remote session answers from the listing that found it.
    """

    session_id: str
    name: str
    path: str
    storage_options: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)
    _folder: Folder | None = field(default=None, compare=False, repr=False)
    _rule: Rule | None = field(default=None, compare=False, repr=False)
    confinement: Confinement | None = field(default=None, compare=False, repr=False)
    """Where alone it, and its files, may lie."""

    def hosts(self) -> list[HostFile]:
        """The hosts, by name; other programs' files and hidden ones are no hosts.

        Where a host has several files, the plain XSpace counts before the compressed one, and
        that before another format. Hosts that the repository's rule refuses are left out. Raises
        NotFoundError when the session is gone, InputError when it cannot be read.
        """
        return self._ruled(self._all_hosts())

    def hosts_and_refused(self) -> tuple[list[HostFile], list[HostFile]]:
        """The hosts, and those that the repository's rule refuses; raises as `hosts`."""
        everyone = self._all_hosts()
        allowed = self._ruled(everyone)
        names = {file.host for file in allowed}
        return allowed, [file for file in everyone if file.host not in names]

    def _ruled(self, files: list[HostFile]) -> list[HostFile]:
        return files if self._rule is None else self._rule(files)

    def _all_hosts(self) -> list[HostFile]:
        with reading(f"session {self.name!r}"):
            return files_of_hosts(self._listed(), self.storage_options, self.confinement)

    def host(self, name: str) -> HostFile:
        """The host ``name``, with ``:`` or as its file spells it; NotFoundError lists them.

        Also one that the repository's rule refuses: whoever has a rule says so to the caller.
        """
        result = self._all_hosts()
        for candidate in result:
            if candidate.host in (name, host_file_name(name)):
                return candidate
        known = there_is(name, [candidate.host for candidate in self._ruled(result)])
        raise NotFoundError(f"session {self.name!r}: no host {name!r:.99}{known}")

    def stamp(self) -> Hashable:
        """Something that changes when a file is added or removed; locally it costs one ``stat``.

        Raises NotFoundError when the session is gone, InputError when it cannot be read.
        """
        with reading(f"session {self.name!r}"):
            return self._listed().stamp()

    def listed_stamp(self) -> Hashable:
        """`stamp` as the listing saw it that found the session; raises as that."""
        with reading(f"session {self.name!r}"):
            return self._listed().listed_stamp()

    def modified(self) -> float:
        """When its directory last changed, in seconds since the epoch; 0 where nobody can say."""
        return self._listed().modified()

    def _listed(self) -> Folder:
        if self._folder is not None:
            return self._folder
        return store_for(self.path, self.storage_options, self.confinement).folder(self.path)


@dataclass(frozen=True)
class Found:
    """The sessions of a log directory, newest first, and what had to be left out of them.

    ``newest_unreadable`` is the problem that stands before all sessions, if one does.
    """

    sessions: tuple[Session, ...]
    problems: tuple[Problem, ...]
    newest_unreadable: Problem | None = None
